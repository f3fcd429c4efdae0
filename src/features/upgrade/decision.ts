import semver from 'semver';

/** What to do about the release that was found. */
export type Decision =
  | { do: 'install'; way: 'newer' | 'older' }
  /** `older`: the base has only that. `prerelease`: it is newer, but nobody asked for one. */
  | { do: 'nothing'; because: 'current' | 'older' | 'prerelease' };

export interface Versions {
  current: string;
  found: string;
  /** The user named this version, and means it. */
  named: boolean;
}

/**
 * Decides whether a release replaces the running program. A lower version or a prerelease must be named: what a mirror calls its latest may be
 * an old release with known holes, correctly signed in its time.
 */
export function decide({ current, found, named }: Versions): Decision {
  const order = semver.compare(found, current);
  if (order === 0) return { do: 'nothing', because: 'current' };
  if (named) return { do: 'install', way: order > 0 ? 'newer' : 'older' };
  if (order < 0) return { do: 'nothing', because: 'older' };
  const isUnstable = (version: string) => semver.prerelease(version) !== null;
  if (isUnstable(found) && !isUnstable(current)) return { do: 'nothing', because: 'prerelease' };
  return { do: 'install', way: 'newer' };
}
