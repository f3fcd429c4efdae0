import { readFileSync } from 'node:fs';
import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import {
  type Effect,
  type Field,
  type FieldType,
  type PastSetting,
  PLATFORMS,
  type Platform,
  type SettingField,
} from '../../src/settings/field.ts';

export const DECLARATION = 'schemas/settings/v19.json';
/** Earlier names of settings, and removed settings. */
export const PAST_DECLARATION = 'schemas/settings/past.json';
/** The keywords of schemas/README.md. The validators' compiler rejects any other. */
export const WORDS = [
  'x-rd-default-on',
  'x-rd-synonyms',
  'x-rd-unit',
  'x-rd-format',
  'x-rd-since',
  'x-rd-platforms',
  'x-rd-effect',
  'x-rd-flag',
  'x-rd-requires',
  'x-rd-lockable',
  'x-rd-sensitive',
  'x-rd-machine-only',
  'x-rd-part',
  'x-rd-type',
] as const;

/** A node of the declaration: a section has `properties`, anything else is a setting. */
interface DeclarationNode {
  type: 'object' | 'boolean' | 'integer' | 'string' | 'array';
  properties?: Record<string, DeclarationNode>;
  additionalProperties?: { type: 'boolean' | 'string'; enum?: string[] };
  description: string;
  default: JsonValue;
  enum?: string[];
  minimum?: number;
  maximum?: number;
  'x-rd-default-on'?: { platform: Platform; value: JsonValue; kernel?: number }[];
  'x-rd-synonyms'?: Record<string, string>;
  'x-rd-unit'?: string;
  'x-rd-format'?: string;
  'x-rd-since'?: number;
  'x-rd-platforms'?: Platform[];
  'x-rd-effect'?: { lima?: Effect; wsl?: Effect };
  'x-rd-flag'?: { name: string; aliases?: string[]; platforms?: Platform[]; hidden?: boolean; values?: string[] };
  'x-rd-requires'?: string[];
  'x-rd-lockable'?: boolean;
  'x-rd-sensitive'?: boolean;
  'x-rd-machine-only'?: boolean;
}

/** A field with the facts that only the reference page shows. */
export interface Declared<F extends Field = SettingField> {
  field: F;
  formerly: readonly string[];
  requires: readonly string[];
}

/** A block of a profile that the compatible application does not have. */
export interface Block {
  name: string;
  /** The file that declares it. */
  file: string;
  schema: JsonObject;
  /** The fields of the block. */
  declared: readonly Declared<Field>[];
}

export function readSchema(file: string): JsonObject {
  const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
  if (!isObject(value)) throw new Error(`${file}: a schema must be an object`);
  return value;
}

/** Returns every setting of the declaration, in its order. The compiler checks the facts where `fields.gen.ts` is read. */
export function declareSettings(): Declared[] {
  return declaredIn(readSchema(DECLARATION), '');
}

/** Returns every field of a schema, in its order. Paths begin with `prefix`. */
export function declaredIn(schema: JsonObject, prefix: string): Declared[] {
  return fieldsBelow(schema as unknown as DeclarationNode, prefix, pastSettings());
}

/** Returns every row of the past, in its order. The compiler checks them where `past.gen.ts` is read. */
export function pastSettings(): PastSetting[] {
  return JSON.parse(readFileSync(PAST_DECLARATION, 'utf8'));
}

function fieldsBelow({ properties = {} }: DeclarationNode, prefix: string, past: readonly PastSetting[]): Declared[] {
  return Object.entries(properties).flatMap(([name, node]) => {
    const path = `${prefix}${name}`;
    if (node.properties) return fieldsBelow(node, `${path}.`, past);
    const formerly = past.filter(({ now }) => now === path).map((row) => row.path);
    return [{ field: fieldOf(path, node), formerly, requires: node['x-rd-requires'] ?? [] }];
  });
}

function fieldOf(path: string, node: DeclarationNode): SettingField {
  const platforms = node['x-rd-platforms'] ?? PLATFORMS;
  const { lima = 'none', wsl = 'none' } = node['x-rd-effect'] ?? {};
  const rows = node['x-rd-default-on'] ?? [];
  const kernels = rows.filter(({ kernel }) => kernel !== undefined);
  const flag = node['x-rd-flag'];
  return withoutUndefined({
    path,
    type: fieldType(path, node),
    default: node.default,
    defaultByPlatform: rows.length === 0 ? undefined : byPlatform(rows, ({ value }) => value),
    defaultFromKernel: kernels.length === 0 ? undefined : byPlatform(kernels, ({ kernel }) => kernel),
    enum: node.enum ?? node.additionalProperties?.enum,
    synonyms: node['x-rd-synonyms'],
    min: node.minimum,
    max: node.maximum,
    unit: node['x-rd-unit'],
    format: node['x-rd-format'],
    platforms,
    effect: { lima, wsl },
    flag: flag && {
      name: flag.name,
      aliases: flag.aliases ?? [],
      platforms: flag.platforms ?? platforms,
      hidden: flag.hidden ?? false,
      ...withoutUndefined({ values: flag.values ?? node.enum }),
    },
    lockable: node['x-rd-lockable'] ?? true,
    sensitive: node['x-rd-sensitive'] ?? false,
    machineOnly: node['x-rd-machine-only'],
    since: node['x-rd-since'],
    description: node.description,
    // Cast, because the union of paths is generated from this list.
  }) as unknown as SettingField;
}

function byPlatform<T extends { platform: Platform }>(rows: readonly T[], value: (row: T) => unknown) {
  return Object.fromEntries(rows.map((row) => [row.platform, value(row)]));
}

function fieldType(path: string, { type, additionalProperties }: DeclarationNode): FieldType {
  if (type === 'array') return 'string[]';
  if (type !== 'object') return type;
  if (!additionalProperties) throw new Error(`${path}: a map needs additionalProperties`);
  return additionalProperties.type === 'boolean' ? 'map<string,boolean>' : 'map<string,string>';
}

function withoutUndefined(object: object): object {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}
