import semver from 'semver';

/**
 * True when going from `installed` to `wanted` deletes the cluster's data. An empty `wanted` is no wish. A version that is
 * none cannot be ordered; the driver refuses it, and nothing is deleted for its sake.
 */
export function isDowngrade(installed: string | undefined, wanted: string): boolean {
  const from = semver.parse(installed);
  const to = semver.parse(wanted);
  return from !== null && to !== null && semver.lt(to, from);
}
