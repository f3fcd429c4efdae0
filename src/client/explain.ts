import type { JsonValue } from '../json.ts';
import type { SettingLayers } from '../plan/layers.ts';
import type { Effect, Field, FieldType, Platform } from '../settings/field.ts';
import { FIELDS } from '../settings/fields.gen.ts';
import { leafAt } from '../settings/leaf-paths.ts';
import { equal } from '../settings/own.ts';
import { expectedValue } from '../settings/rules/value.ts';
import { layersOf } from './explained-layers.ts';

type LayerName = 'built-in default' | 'defaults profile' | 'stored' | 'locked profile';

/** One layer of one setting. */
export interface ExplainedLayer {
  layer: LayerName;
  /** Absent where the layer does not set it. A secret is `{ "sensitive": true }`. */
  value?: JsonValue;
  /** Its origin: a file, a registry key, `schema`. */
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
  /** The value in force; absent where the application does not have the setting. */
  value?: JsonValue;
  /** The layer that wins. */
  from: LayerName;
  locked: boolean;
  /** Lowest first. */
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
  /** With dashes. */
  flag?: string;
  docs: string;
}

/** The document of `rdctl explain SECTION -o json`. */
export interface SectionExplanation {
  kind: 'SectionExplanation';
  formatVersion: 1;
  basis: SettingLayers['basis'];
  /** Empty for all settings. */
  path: string;
  settings: { path: string; value?: JsonValue; from: LayerName; locked: boolean; isDefault: boolean }[];
}

/** A setting's description and the origin of its value. */
export function explainSetting(field: Field, layers: SettingLayers): Explanation {
  const { path, description, type, enum: allowed, synonyms, min, max, unit, platforms, lockable } = field;
  const explained = layersOf(field, layers);
  const value = leafAt(layers.inForce, path);
  const support = layers.driver?.support[path];
  const reason = support?.reason;
  return {
    kind: 'Explanation',
    formatVersion: 1,
    basis: layers.basis,
    path,
    description,
    ...(value === undefined ? {} : { value }),
    from: winner(explained),
    locked: winner(explained) === 'locked profile',
    layers: explained,
    type,
    expected: expectedValue(field),
    ...(allowed ? { allowed } : {}),
    ...(synonyms ? { synonyms } : {}),
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max }),
    ...(unit === undefined ? {} : { unit }),
    platforms,
    lockable,
    effect: effectOf(field, layers),
    ...(layers.driver && support
      ? {
          driver: {
            name: layers.driver.name,
            level: support.level,
            ...('partlyLive' in support && support.partlyLive ? { partlyLive: true } : {}),
            ...(reason === undefined ? {} : { reason }),
          },
        }
      : {}),
    ...(field.flag && !field.flag.hidden ? { flag: `--${field.flag.name}` } : {}),
    // The heading's anchor, as common renderers generate it.
    docs: `docs/settings.md#${path.toLowerCase().replaceAll(/[^a-z0-9]/g, '')}`,
  };
}

/** The settings of a section, each with its value and the winning layer. */
export function explainSection(path: string, layers: SettingLayers): SectionExplanation {
  const below = FIELDS.filter((field) => field.path !== 'version' && isBelow(field.path, path));
  return {
    kind: 'SectionExplanation',
    formatVersion: 1,
    basis: layers.basis,
    path,
    settings: below.map((field) => {
      const from = winner(layersOf(field, layers));
      const value = leafAt(layers.inForce, field.path);
      const isDefault = equal(value, leafAt(layers.builtIn, field.path));
      return {
        path: field.path,
        ...(value === undefined ? {} : { value }),
        from,
        locked: from === 'locked profile',
        isDefault,
      };
    }),
  };
}

function isBelow(path: string, section: string): boolean {
  return section === '' || path.startsWith(`${section}.`);
}

function winner(layers: readonly ExplainedLayer[]): LayerName {
  return layers.find(({ wins }) => wins)?.layer ?? 'built-in default';
}

function effectOf({ path, effect }: Field, { platform, driver }: SettingLayers): Effect {
  if (driver && driver.support[path].level !== 'enforced') return 'none';
  const usual = platform === 'win32' ? effect.wsl : effect.lima;
  return usual === 'restart' && driver?.liveFields.includes(path) ? 'live' : usual;
}
