import type { JsonObject } from '../json.ts';
import { defaultSettings } from '../settings/defaults.ts';
import type { Platform } from '../settings/field.ts';
import { lockRecord } from '../settings/locks.ts';
import { changedPaths, mergeSettings } from '../settings/merge.ts';
import type { Settings } from '../settings/settings.gen.ts';
import { removeLeftovers } from './atomic-file.ts';
import type { Places } from './places.ts';
import type { PolicyPlace } from './policies.ts';
import { readPolicies } from './policies.ts';
import { loadSettings } from './settings-file.ts';

/** The computer, as far as settings depend on it. */
export interface SettingsHost {
  platform: Platform;
  arch: string;
  osRelease?: string;
  memoryBytes?: number;
}

export interface StartupSettings {
  settings: Settings;
  /** No usable settings file was there. */
  firstRun: boolean;
  /** The file does not hold these settings yet. */
  unsaved: boolean;
  /** Record of locked fields, and the file that locks them. */
  locks: JsonObject;
  lockedBy?: string;
  /** What a person should know. */
  notices: string[];
}

/**
 * The settings to begin with: the file, or on a first run the defaults with the administrator's; the locked profile over
 * either. Nothing is written but a file that cannot be used, which gets another name.
 * @throws RdError `ERR_SETTINGS_FILE`, `ERR_PROFILE_INVALID`, `ERR_IO`.
 */
export async function startupSettings(
  places: Places,
  policyPlaces: readonly PolicyPlace[],
  host: SettingsHost,
  now: number,
): Promise<StartupSettings> {
  // Profiles first: a bad one stops the start before any file is touched.
  const policies = await readPolicies(policyPlaces, host);
  await removeLeftovers(places.settingsFile);
  await removeLeftovers(places.previousSettingsFile);
  const loaded = await loadSettings(places.settingsFile, host, now);
  const notices = [...policies.warnings];
  if (loaded.kind === 'set-aside') {
    notices.push(
      `The settings file could not be used: ${loaded.reason}. It was set aside as ${loaded.movedTo}, and default settings ` +
        `are in force. The settings before the last change are in ${places.previousSettingsFile}, if there were any.`,
    );
  }
  const stored = loaded.kind === 'loaded' ? loaded.settings : firstSettings(host, policies.defaults?.settings);
  const { locked } = policies;
  const settings = locked ? mergeSettings(stored, locked.settings) : stored;
  return {
    settings,
    firstRun: loaded.kind !== 'loaded',
    unsaved: loaded.kind !== 'loaded' || changedPaths(stored, settings).length > 0,
    locks: locked ? lockRecord(locked.settings) : {},
    ...(locked ? { lockedBy: locked.file } : {}),
    notices,
  };
}

function firstSettings(host: SettingsHost, defaults: JsonObject | undefined): Settings {
  const settings = defaultSettings(host);
  return defaults ? mergeSettings(settings, defaults) : settings;
}
