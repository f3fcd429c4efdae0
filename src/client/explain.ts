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
  /** Absent where the layer says nothing about the setting. A secret is `{ "sensitive": true }`. */
  value?: JsonValue;
  /** Where it comes from: a file, a registry key, `schema`. */
  source: string;
  wins: boolean;
  /** What else there is to know, as a clause. */
  note?: string;
}

/** The document of `rdctl explain SETTING -o json`. */
export interface Explanation {
  kind: 'Explanation';
  formatVersion: 1;
  basis: SettingLayers['basis'];
  path: string;
  description: string;
  /** In force; absent where the application does not have the setting. */
  value?: JsonValue;
  /** The layer that decides. */
  from: LayerName;
  locked: boolean;
  /** Lowest first. */
  layers: ExplainedLayer[];
  type: FieldType;
  /** What it takes, as a phrase. */
  expected: string;
  allowed?: readonly string[];
  /** Other spellings that are accepted, and what they mean. */
  synonyms?: Readonly<Record<string, string>>;
  min?: number;
  max?: number;
  unit?: string;
  /** Host platforms on which it can be changed. */
  platforms: readonly Platform[];
  lockable: boolean;
  /** What a change costs by default, as a clause; a plan knows more. */
  effect: Effect;
  driver?: {
    name: string;
    level: 'enforced' | 'stored' | 'unsupported';
    /** What runs takes some changes without a restart; a plan tells which. */
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

/** Where a setting has its value from, and what it is. */
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
    // As the usual renderers make an anchor of the heading.
    docs: `docs/settings.md#${path.toLowerCase().replaceAll(/[^a-z0-9]/g, '')}`,
  };
}

/** The settings below a section, each with its value and the layer that decides. */
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
