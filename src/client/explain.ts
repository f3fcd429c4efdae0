import type { Support } from '../drivers/driver.ts';
import { RdError } from '../errors.ts';
import { defined, type JsonObject, type JsonValue } from '../json.ts';
import { supportOf } from '../plan/drift.ts';
import type { HistoryEntry } from '../plan/history.ts';
import type { ProfileLayer, SettingLayers } from '../plan/layers.ts';
import { isBlockPath, treeOf } from '../settings/blocks.ts';
import { type Effect, type Field, type FieldType, PLATFORM_NAMES, type Platform } from '../settings/field.ts';
import { MANAGED_FIELDS } from '../settings/fields.ts';
import { leafAt } from '../settings/leaf-paths.ts';
import { equal } from '../settings/own.ts';
import { expectedValue } from '../settings/value-rules.ts';
import type { FieldManager } from '../state/field-managers.ts';
import { type ManagedBy, managedBy, managersAt } from './managers.ts';

type LayerName = 'built-in default' | 'defaults profile' | 'stored' | 'locked profile';

/** A layer of a setting. */
export interface ExplainedLayer {
  layer: LayerName;
  /** Value of the layer; absent if it does not set one. A secret is `{ "sensitive": true }`. */
  value?: JsonValue;
  /** Origin of the layer: a file, a registry key, or `schema`. */
  source: string;
  wins: boolean;
  /** An additional note, as a clause. */
  note?: string;
}

/** The document of `rdctl explain SETTING -o json`. */
export interface Explanation {
  kind: 'Explanation';
  formatVersion: 1;
  basis: SettingLayers['basis'];
  path: string;
  description: string;
  /** The value in force; absent if the application does not have the setting. */
  value?: JsonValue;
  /** The layer that wins. */
  from: LayerName;
  locked: boolean;
  /** Layers, lowest first. */
  layers: ExplainedLayer[];
  type: FieldType;
  /** Accepted values, as a phrase. */
  expected: string;
  allowed?: readonly string[];
  /** Accepted synonyms and their meaning. */
  synonyms?: Readonly<Record<string, string>>;
  min?: number;
  max?: number;
  unit?: string;
  /** Host platforms on which it can be changed. */
  platforms: readonly Platform[];
  lockable: boolean;
  /** The default cost of a change; a plan is more precise. */
  effect: Effect;
  driver?: {
    name: string;
    level: 'enforced' | 'stored' | 'unsupported';
    /** A running backend accepts some changes without a restart; a plan says which. */
    partlyLive?: true;
    reason?: string;
  };
  /** The last change in the history of this home. */
  lastChange?: Pick<HistoryEntry, 'generation' | 'at' | 'by'>;
  /** The writer of the value in force; absent if nothing has set it since the first start. */
  managedBy?: ManagedBy | LockedBy;
  /** The writer of each entry of a map that something has set. */
  managedEntries?: Record<string, ManagedBy>;
  /** The flag of the setting, with dashes. */
  flag?: string;
  docs: string;
}

/** An administrator manages a locked setting. */
interface LockedBy {
  how: 'policy';
  /** The file or registry key. */
  locked: string;
}

/** Explains who manages a setting. `managers` has those of all fields of this home. */
export function explainManagers(
  { path, locked, layers, value }: Pick<Explanation, 'path' | 'locked' | 'layers' | 'value'>,
  managers: readonly FieldManager[],
): Pick<Explanation, 'lastChange' | 'managedBy' | 'managedEntries'> {
  const last = managers.findLast((manager) => manager.path === path);
  const lastChange = last && { lastChange: { generation: last.generation, at: last.at, by: last.by } };
  if (locked) {
    const source = layers.find(({ wins }) => wins)?.source ?? '';
    return { ...lastChange, managedBy: { how: 'policy', locked: source } };
  }
  const found = managersAt(managers, path, value);
  const whole = found.find(({ key }) => key === undefined);
  const entries = found.flatMap((manager) => (manager.key === undefined ? [] : [[manager.key, managedBy(manager)]]));
  return {
    ...lastChange,
    ...(whole ? { managedBy: managedBy(whole) } : {}),
    ...(entries.length === 0 ? {} : { managedEntries: Object.fromEntries(entries) }),
  };
}

/** The document of `rdctl explain SECTION -o json`. */
export interface SectionExplanation {
  kind: 'SectionExplanation';
  formatVersion: 1;
  basis: SettingLayers['basis'];
  /** Path of the section; empty for all settings. */
  path: string;
  settings: { path: string; value?: JsonValue; from: LayerName; locked: boolean; isDefault: boolean }[];
}

/**
 * Describes a setting, or a field of a block, and the origin of its value.
 * @throws RdError `ERR_NOT_FOUND` for a block of another application, which has none.
 */
export function explainSetting(field: Field, layers: SettingLayers): Explanation {
  const { path, description, type, enum: allowed, synonyms, min, max, unit, platforms, lockable } = field;
  if (!isThere(field, layers)) {
    throw new RdError('ERR_NOT_FOUND', `${path} is a setting of rdctl, and this application has none.`);
  }
  const explained = layersOf(field, layers);
  const value = leafAt(inForce(layers), path);
  return {
    kind: 'Explanation',
    formatVersion: 1,
    basis: layers.basis,
    path,
    description,
    ...defined({ value }),
    from: winner(explained),
    locked: winner(explained) === 'locked profile',
    layers: explained,
    type,
    expected: expectedValue(field),
    ...(allowed ? { allowed } : {}),
    ...(synonyms ? { synonyms } : {}),
    ...defined({ min, max, unit }),
    platforms,
    lockable,
    effect: effectOf(field, layers),
    ...(layers.driver ? { driver: driverFacts(layers.driver.name, supportOf(layers.driver, path)) } : {}),
    ...(field.flag && !field.flag.hidden ? { flag: `--${field.flag.name}` } : {}),
    docs: docsOf(path),
  };
}

function driverFacts(name: string, support: Support): NonNullable<Explanation['driver']> {
  return {
    name,
    level: support.level,
    ...('partlyLive' in support && support.partlyLive ? { partlyLive: true } : {}),
    ...defined({ reason: support.reason }),
  };
}

/** Lists the settings of a section, each with its value and the winning layer. */
export function explainSection(path: string, layers: SettingLayers): SectionExplanation {
  const below = MANAGED_FIELDS.filter(
    (field) => field.path !== 'version' && isBelow(field.path, path) && isThere(field, layers),
  );
  return {
    kind: 'SectionExplanation',
    formatVersion: 1,
    basis: layers.basis,
    path,
    settings: below.map(explainField),
  };

  function explainField(field: Field) {
    const from = winner(layersOf(field, layers));
    const value = leafAt(inForce(layers), field.path);
    const isDefault = equal(value, leafAt(layers.builtIn, field.path) ?? field.default);
    return { path: field.path, ...present(value), from, locked: from === 'locked profile', isDefault };
  }
}

/** Returns the anchor of the heading that documents a path, as common renderers generate it. */
function docsOf(path: string): string {
  return `docs/settings.md#${path.toLowerCase().replaceAll(/[^a-z0-9]/g, '')}`;
}

function isBelow(path: string, section: string): boolean {
  return section === '' || path.startsWith(`${section}.`);
}

function winner(layers: readonly ExplainedLayer[]): LayerName {
  return layers.find(({ wins }) => wins)?.layer ?? 'built-in default';
}

function effectOf({ path, effect }: Field, { platform, driver }: SettingLayers): Effect {
  if (driver && supportOf(driver, path).level !== 'enforced') return 'none';
  const usual = platform === 'win32' ? effect.wsl : effect.lima;
  return usual === 'restart' && driver?.liveFields.includes(path) ? 'live' : usual;
}

/** Whether the application has the field; false for a block of another application. */
function isThere({ path }: Field, layers: SettingLayers): boolean {
  return !isBlockPath(path) || leafAt(inForce(layers), path) !== undefined;
}

/** Returns the settings and blocks in force. */
function inForce({ inForce: settings, ...layers }: SettingLayers): JsonObject {
  return treeOf({ ...layers, settings });
}

/** Returns the layers of one field, lowest first; exactly one wins. No deployment profile sets a block. */
function layersOf(field: Field, layers: SettingLayers): ExplainedLayer[] {
  const { path } = field;
  if (isBlockPath(path)) {
    const value = leafAt(inForce(layers), path);
    const changed = !equal(value, field.default);
    return [
      { layer: 'built-in default', value: field.default, source: 'schema', wins: !changed },
      { layer: 'stored', ...present(changed ? value : undefined), source: 'the state of the service', wins: changed },
    ];
  }
  const { builtIn, stored, settingsFile, defaultsProfile, lockedProfile } = layers;
  const locked = lockedProfile && leafAt(lockedProfile.settings, path);
  const kept = stored && leafAt(stored, path);
  const first = defaultsProfile && leafAt(defaultsProfile.settings, path);
  const wins =
    locked !== undefined
      ? 'locked'
      : kept !== undefined
        ? 'stored'
        : first !== undefined && !stored
          ? 'first'
          : 'default';
  return [
    {
      layer: 'built-in default',
      ...present(leafAt(builtIn, path)),
      source: 'schema',
      wins: wins === 'default',
      ...withNote(defaultNote(field, layers)),
    },
    ...(defaultsProfile
      ? [
          profileLayer(
            'defaults profile',
            defaultsProfile,
            first,
            wins === 'first',
            first === undefined ? undefined : firstRunNote(layers),
          ),
        ]
      : []),
    {
      layer: 'stored',
      ...present(kept),
      source: settingsFile,
      wins: wins === 'stored',
      ...withNote(storedNote(layers, kept, leafAt(builtIn, path))),
    },
    ...(lockedProfile ? [profileLayer('locked profile', lockedProfile, locked, wins === 'locked', undefined)] : []),
  ];
}

function profileLayer(
  layer: 'defaults profile' | 'locked profile',
  { source }: ProfileLayer,
  value: JsonValue | undefined,
  wins: boolean,
  note: string | undefined,
): ExplainedLayer {
  return { layer, ...present(value), source, wins, ...withNote(note) };
}

function defaultNote(field: Field, { platform, builtIn, basis }: SettingLayers): string | undefined {
  const { path, defaultByPlatform, defaultFromKernel } = field;
  if (path === 'virtualMachine.memoryInGB' && basis !== 'application' && field.platforms.includes(platform)) {
    return 'a quarter of system memory, from 1 to 6 GiB, on first run';
  }
  if (defaultByPlatform?.[platform] === undefined) return undefined;
  const own = equal(leafAt(builtIn, path), defaultByPlatform[platform]);
  const kernel = defaultFromKernel?.[platform];
  if (kernel === undefined) return `the default on ${PLATFORM_NAMES[platform]}`;
  return `the default on ${PLATFORM_NAMES[platform]} ${own ? 'with' : 'before'} kernel ${kernel}${own ? ' or later' : ''}`;
}

/** Explains why a defaults profile is not in force: it applies once, and the settings may predate it. */
function firstRunNote({ defaultsProfile, stored, firstRun, basis }: SettingLayers): string {
  if (basis === 'application') return 'applies only on the first run of the application';
  if (!stored) return 'applies at the first start';
  if (!firstRun) return 'applies only on first run; the origin of these settings is not recorded';
  if (firstRun.defaults === defaultsProfile?.source) return `applied at the first run, ${firstRun.at}`;
  return `not applied: the settings were created ${firstRun.at} ${firstRun.defaults === undefined ? 'without a defaults profile' : `with ${firstRun.defaults}`}`;
}

function storedNote(
  { stored, basis }: SettingLayers,
  value: JsonValue | undefined,
  usual: JsonValue | undefined,
): string | undefined {
  if (!stored) return 'nothing is stored before the first run';
  if (value === undefined) return basis === 'application' ? 'it does not have this setting' : 'not in the file';
  return equal(value, usual) ? 'same as the default' : undefined;
}

function present(value: JsonValue | undefined): { value?: JsonValue } {
  return value === undefined ? {} : { value };
}

function withNote(note: string | undefined): { note?: string } {
  return note === undefined ? {} : { note };
}
