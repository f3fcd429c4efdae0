import { existsSync } from 'node:fs';
import type { Policies } from '../../profiles/policies/policy.ts';
import type { JsonObject } from '../json.ts';
import { keepAside } from '../os/atomic-file.ts';
import { defaultSettings } from '../settings/defaults.ts';
import type { Platform } from '../settings/field.ts';
import { lockRecord } from '../settings/locks.ts';
import { changedPaths, mergeSettings } from '../settings/merge.ts';
import type { Settings } from '../settings/settings.gen.ts';
import type { Places } from './places.ts';
import { loadSettings, usableSettings } from './settings-file.ts';

/** Host facts that affect settings. */
export interface SettingsHost {
  platform: Platform;
  arch: string;
  osRelease?: string;
  memoryBytes?: number;
}

export interface StartupSettings {
  settings: Settings;
  /** The settings before the locked profile was applied. */
  stored: Settings;
  /** The file is not JSON: it must not become the backup of the next write. */
  fileIsGarbled: boolean;
  /** The settings are those of the settings file; otherwise a notice states their source. */
  isFromFile: boolean;
  /** The file does not hold these settings yet. */
  unsaved: boolean;
  /** Record of locked fields. */
  locks: JsonObject;
  /** There were no previous settings: the administrator's defaults have been applied. */
  firstRun: boolean;
  /** Notices for the user. */
  notices: string[];
}

/**
 * Returns the initial settings: the file, or on a first run the defaults with the administrator's; the locked profile overrides either. A missing or
 * invalid file is replaced by the backup from before the last change. Profiles are read first: a bad one stops the start before any file is touched.
 * @throws RdError `ERR_SETTINGS_FILE`, `ERR_IO`.
 */
export async function startupSettings(
  places: Places,
  policies: Policies,
  host: SettingsHost,
  now: number,
): Promise<StartupSettings> {
  const loaded = await loadSettings(places.settingsFile, places.previousSettingsFile, host);
  const notices = [...policies.warnings];
  const { kind } = loaded;
  if (kind === 'loaded' && loaded.ignored.length > 0) {
    const names = loaded.ignored.map((path) => `"${path}"`).join(', ');
    notices.push(`${places.settingsFile}: unknown settings ${names} are ignored.`);
  }
  const isGone = kind === 'missing' && existsSync(places.previousSettingsFile);
  const recovered = kind === 'garbled' || isGone ? await recover(kind, places, host, now) : undefined;
  if (recovered) notices.push(recovered.notice);
  const stored =
    kind === 'loaded' ? loaded.settings : (recovered?.settings ?? firstSettings(host, policies.defaults?.settings));
  const { locked } = policies;
  const settings = locked ? mergeSettings(stored, locked.settings) : stored;
  return {
    settings,
    stored,
    fileIsGarbled: kind === 'garbled',
    isFromFile: kind === 'loaded',
    unsaved: kind !== 'loaded' || changedPaths(stored, settings).length > 0,
    locks: locked ? lockRecord(locked.settings) : {},
    firstRun: kind !== 'loaded' && !recovered?.settings,
    notices,
  };
}

/**
 * Finds the settings from before the last change. A file that is not JSON is set aside; it keeps its name until the next write, so that a start after
 * a crash sees the same. A missing file may have been deleted by mistake or by another program; the notice tells how to get defaults.
 */
async function recover(
  kind: 'garbled' | 'missing',
  { settingsFile, previousSettingsFile }: Places,
  host: SettingsHost,
  now: number,
): Promise<{ settings?: Settings; notice: string }> {
  const problem =
    kind === 'missing'
      ? `The settings file ${settingsFile} was missing`
      : `The settings file was not JSON. It is kept as ${await keepAside(settingsFile, now)}`;
  const settings = await usableSettings(previousSettingsFile, host);
  if (settings) {
    const notice = `${problem}, and the settings from before the last change are in effect again.`;
    const way = `To start with default settings, stop the service and delete ${previousSettingsFile} together with it.`;
    return { settings, notice: kind === 'missing' ? `${notice} ${way}` : notice };
  }
  const defaults = `${problem}, and default settings are in effect`;
  if (!existsSync(previousSettingsFile))
    return { notice: `${defaults}: there is no copy from before the last change.` };
  // The next change would overwrite the backup.
  const other = await keepAside(previousSettingsFile, now);
  return {
    notice: `${defaults}: the copy from before the last change is not usable either, and is kept as ${other}.`,
  };
}

function firstSettings(host: SettingsHost, defaults: JsonObject | undefined): Settings {
  const settings = defaultSettings(host);
  return defaults ? mergeSettings(settings, defaults) : settings;
}
