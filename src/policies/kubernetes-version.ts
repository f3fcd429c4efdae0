import { leafAt, setLeaf } from '../settings/leaf-paths.ts';
import { copyOfObject } from '../settings/own.ts';
import type { Settings } from '../settings/settings.gen.ts';
import { invalidPolicy, ofOwnProfile, type Policies } from './policy.ts';

const PATH = 'kubernetes.version';

/**
 * Holds the cluster version of a profile against those that are offered. One in a defaults profile that is not gives way to the
 * service's own choice, with a warning; a locked one that is asked for stops the start.
 * @param firstRun the defaults profile has just been applied.
 * @returns the settings to begin with.
 * @throws RdError `ERR_PROFILE_INVALID` with the text of the compatible application (tool facts, 8.3).
 */
export function withOfferedVersion(
  settings: Settings,
  { defaults, locked, own }: Policies,
  around: { firstRun: boolean; versions: readonly string[] | undefined; warnings: string[] },
): Settings {
  const { versions, firstRun, warnings } = around;
  const { version, enabled } = settings.kubernetes;
  // While the list is not known nobody can say that a version is not on it.
  if (versions === undefined || versions.length === 0 || version === '' || versions.includes(version)) return settings;
  if (locked && leafAt(locked.settings, PATH) !== undefined) {
    if (!enabled) return settings;
    const error = invalidPolicy(`Locked kubernetes version '${version}' isn't available. (${locked.source})`, [
      `Available are ${versions.slice(0, 10).join(', ')}${versions.length > 10 ? ', …' : ''}`,
    ]);
    throw own ? ofOwnProfile(error) : error;
  }
  if (!firstRun || !defaults || leafAt(defaults.settings, PATH) === undefined) return settings;
  warnings.push(`${defaults.source}: kubernetes.version ${version} is not available; the default is used.`);
  const chosen = copyOfObject(settings);
  setLeaf(chosen, PATH, '');
  // A copy of settings in which one text was replaced by another.
  return chosen as Settings;
}
