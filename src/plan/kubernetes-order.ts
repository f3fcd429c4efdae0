// Two parts of the package: all of it would cost every plan two milliseconds.
import lt from 'semver/functions/lt.js';
import parse from 'semver/functions/parse.js';

/**
 * True when going from `installed` to `wanted` deletes the cluster's data. An empty `wanted` is no wish. A version that is
 * none cannot be ordered; the driver refuses it, and nothing is deleted for its sake.
 */
export function isDowngrade(installed: string | undefined, wanted: string): boolean {
  const from = parse(installed);
  const to = parse(wanted);
  return from !== null && to !== null && lt(to, from);
}

/** As `isDowngrade`, where `installed` may be `''`: a cluster of an unknown version, which any version may turn out to be lower than. */
export function mayDowngrade(installed: string | undefined, wanted: string): boolean {
  return installed === '' ? parse(wanted) !== null : isDowngrade(installed, wanted);
}
