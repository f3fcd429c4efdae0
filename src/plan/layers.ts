import type { DriverInfo, SupportMatrix } from '../drivers/driver.ts';
import type { JsonObject } from '../json.ts';
import type { Blocks } from '../settings/blocks.gen.ts';
import { blocksOf } from '../settings/blocks.ts';
import type { ManagedPath, Platform } from '../settings/field.ts';
import { maskSettings } from './secrets.ts';

/** A deployment profile as a layer of settings. */
export interface ProfileLayer {
  /** Path of the file, or the registry key. */
  source: string;
  /** The profile's settings version. */
  version: number;
  /** The profile's settings, migrated to the newest version. */
  settings: JsonObject;
}

/** The layers below and above the stored settings, which do not change while a service runs. */
export interface LayerFacts {
  platform: Platform;
  /** Settings of a first run on this computer. */
  builtIn: JsonObject;
  /** Path of the stored settings. */
  settingsFile: string;
  /** Searched locations of deployment profiles, highest precedence first; the last one holds the profiles, if any exist. */
  looked: readonly string[];
  defaultsProfile?: ProfileLayer;
  lockedProfile?: ProfileLayer;
  /** The first run and its defaults profile; absent where not recorded. */
  firstRun?: FirstRun;
}

export interface FirstRun {
  /** RFC 3339. */
  at: string;
  /** Source of the defaults profile applied on the first run. */
  defaults?: string;
}

/**
 * The document of `GET /v2/settings/layers`, with the blocks in force, which are absent for another application. A non-empty secret reads
 * `{ "sensitive": true }`.
 */
export interface SettingLayers extends LayerFacts, Partial<Blocks> {
  kind: 'SettingLayers';
  formatVersion: 1;
  /** The source of the layers: a running service, the files without one, or another application. */
  basis: 'service' | 'files' | 'application';
  /** The settings in force: now for a service, at the next start for files. */
  inForce: JsonObject;
  /** The stored settings; absent before the first run. */
  stored?: JsonObject;
  /** The driver's support of each setting; absent if no driver is known. */
  driver?: {
    name: string;
    simulated: boolean;
    support: SupportMatrix;
    /** Settings that the driver applies without a restart. */
    liveFields: readonly ManagedPath[];
  };
}

/** Returns the layers, with secrets masked. */
export function settingLayers(
  facts: LayerFacts,
  current: Pick<SettingLayers, 'basis' | 'inForce' | 'stored' | keyof Blocks> & { driver?: DriverInfo },
): SettingLayers {
  const { basis, inForce, stored, driver } = current;
  const { defaultsProfile, lockedProfile } = facts;
  return {
    kind: 'SettingLayers',
    formatVersion: 1,
    basis,
    ...facts,
    builtIn: maskSettings(facts.builtIn),
    ...(defaultsProfile
      ? { defaultsProfile: { ...defaultsProfile, settings: maskSettings(defaultsProfile.settings) } }
      : {}),
    ...(lockedProfile ? { lockedProfile: { ...lockedProfile, settings: maskSettings(lockedProfile.settings) } } : {}),
    inForce: maskSettings(inForce),
    ...(stored ? { stored: maskSettings(stored) } : {}),
    ...blocksOf(current),
    ...(driver ? { driver: driverPart(driver) } : {}),
  };
}

function driverPart({ name, simulated, support, liveFields }: DriverInfo): NonNullable<SettingLayers['driver']> {
  return { name, simulated, support, liveFields };
}
