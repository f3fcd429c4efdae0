import semver from 'semver';

/** The action for a release that was found. */
export type Decision =
  | { do: 'install'; way: 'newer' | 'older' }
  /** `older`: the base has only an older release. `prerelease`: the release is newer, but nobody asked for a prerelease. */
  | { do: 'nothing'; because: 'current' | 'older' | 'prerelease' };

export interface Versions {
  current: string;
  found: string;
  /** Whether the user named this version explicitly. */
  named: boolean;
}

/**
 * Decides whether a release replaces the running program. A lower version or a prerelease must be named: the latest release of a mirror may be an old
 * one with known holes, correctly signed in its time.
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
