// Only two parts of the package: loading all of it would cost every plan two milliseconds.
import lt from 'semver/functions/lt.js';
import parse from 'semver/functions/parse.js';

/**
 * True when going from `installed` to `wanted` deletes the cluster's data. An empty `wanted` expresses no preference.
 * An invalid version has no order; the driver rejects it, and nothing is deleted.
 */
export function isDowngrade(installed: string | undefined, wanted: string): boolean {
  const from = parse(installed);
  const to = parse(wanted);
  return from !== null && to !== null && lt(to, from);
}

/**
 * Like `isDowngrade`, where `installed` may be `''`: a cluster of unknown version, for which any version may be a
 * downgrade.
 */
export function mayDowngrade(installed: string | undefined, wanted: string): boolean {
  return installed === '' ? parse(wanted) !== null : isDowngrade(installed, wanted);
}
