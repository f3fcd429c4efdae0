import type { JsonValue } from '../../src/json.ts';
import { RELEASES } from '../../src/settings/releases.ts';
import type { Effect } from './finding.ts';
import type { System } from './system.ts';

/** What is wrong with the version of a profile. */
export interface VersionFault {
  effect: Effect;
  reason: string;
  /** Nothing else of the profile is looked at. */
  end: boolean;
}

/** Settings facts, 1.6 and 4.3; the registry has no fractions, which `holding.ts` tells. */
export function versionFault(version: JsonValue | undefined, { release }: System): VersionFault | undefined {
  if (version === undefined) return stop('it is missing, and without it the application does not start');
  if (typeof version !== 'number') return stop('it is not a number');
  if (version <= 0) return stop('it is not above 0');
  if (version > release.settingsVersion) return { effect: 'refused', reason: newerReason(version), end: false };
  if (Number.isInteger(version)) return undefined;
  return { effect: 'changed', reason: 'with a fraction no step of a migration runs', end: false };
}

/** The same words for every release before the first that knows the version. */
function newerReason(version: number): string {
  const first = RELEASES.find(({ settingsVersion }) => settingsVersion >= version);
  if (first) return `settings version ${version} is known to ${first.name} and later`;
  const { name = '', settingsVersion = 0 } = RELEASES.at(-1) ?? {};
  return `settings version ${version} is newer than ${settingsVersion}, which ${name} knows`;
}

function stop(reason: string): VersionFault {
  return { effect: 'refused', reason, end: true };
}
