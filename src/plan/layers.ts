import type { DriverInfo, Support } from '../drivers/driver.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import type { Platform } from '../settings/field.ts';
import { FIELDS } from '../settings/fields.gen.ts';
import { leafAt, setLeaf } from '../settings/leaf-paths.ts';
import { copyOfObject } from '../settings/own.ts';
import type { SettingPath } from '../settings/settings.gen.ts';

/** A deployment profile as a layer of settings. */
export interface ProfileLayer {
  /** Path of the file, or the registry key. */
  source: string;
  /** Settings version that it was written for. */
  version: number;
  /** What it says, at the newest version. */
  settings: JsonObject;
}

/** What lies below and above the stored settings, and does not change while a service runs. */
export interface LayerFacts {
  platform: Platform;
  /** Settings of a first run on this computer. */
  builtIn: JsonObject;
  /** Path of the file that holds the stored settings. */
  settingsFile: string;
  /** Places of deployment profiles that were looked at, best first; the last one is that of the profiles, if there are any. */
  looked: readonly string[];
  defaultsProfile?: ProfileLayer;
  lockedProfile?: ProfileLayer;
  /** When the settings began, and with which defaults profile; absent where nobody recorded it. */
  firstRun?: FirstRun;
}

export interface FirstRun {
  /** RFC 3339. */
  at: string;
  /** Source of the defaults profile that counted then. */
  defaults?: string;
}

/** The document of `GET /v2/settings/layers`. A secret that is not empty reads `{ "sensitive": true }`. */
export interface SettingLayers extends LayerFacts {
  kind: 'SettingLayers';
  formatVersion: 1;
  /** Who told: a running service, the files of one that does not run, or another application. */
  basis: 'service' | 'files' | 'application';
  /** What counts: of a service now, of files at the next start. */
  inForce: JsonObject;
  /** What the settings file holds; absent before the first run. */
  stored?: JsonObject;
  /** What the driver does with each setting; absent while none is known. */
  driver?: {
    name: string;
    simulated: boolean;
    support: Readonly<Record<SettingPath, Support>>;
    /** Settings that it applies to what runs, where others restart. */
    liveFields: readonly SettingPath[];
  };
}

/** The layers for whoever asks, secrets masked. */
export function settingLayers(
  facts: LayerFacts,
  told: { basis: SettingLayers['basis']; inForce: JsonObject; stored?: JsonObject; driver?: DriverInfo },
): SettingLayers {
  const { basis, inForce, stored, driver } = told;
  const { defaultsProfile, lockedProfile } = facts;
  return {
    kind: 'SettingLayers',
    formatVersion: 1,
    basis,
    ...facts,
    builtIn: masked(facts.builtIn),
    ...(defaultsProfile ? { defaultsProfile: { ...defaultsProfile, settings: masked(defaultsProfile.settings) } } : {}),
    ...(lockedProfile ? { lockedProfile: { ...lockedProfile, settings: masked(lockedProfile.settings) } } : {}),
    inForce: masked(inForce),
    ...(stored ? { stored: masked(stored) } : {}),
    ...(driver ? { driver: driverPart(driver) } : {}),
  };
}

function driverPart({ name, simulated, support, liveFields }: DriverInfo): NonNullable<SettingLayers['driver']> {
  return { name, simulated, support, liveFields };
}

const SECRETS = FIELDS.filter(({ sensitive }) => sensitive).map(({ path }) => path);

function masked(settings: JsonObject): JsonObject {
  const copy = copyOfObject(settings);
  for (const path of SECRETS) {
    const value = leafAt(copy, path);
    if (value !== undefined && value !== '') setLeaf(copy, path, { sensitive: true } satisfies JsonValue);
  }
  return copy;
}
