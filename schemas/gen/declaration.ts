import { readFileSync } from 'node:fs';
import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import {
  type Effect,
  type Field,
  type FieldType,
  PLATFORMS,
  type Platform,
  type SettingFlag,
} from '../../src/settings/field.ts';

export const DECLARATION = 'schemas/settings/v19.json';
/** The words of schemas/README.md. Anything else that starts with `x-rd-` is a typing mistake. */
export const WORDS = [
  'x-rd-default-on',
  'x-rd-synonyms',
  'x-rd-unit',
  'x-rd-format',
  'x-rd-since',
  'x-rd-formerly',
  'x-rd-platforms',
  'x-rd-effect',
  'x-rd-flag',
  'x-rd-requires',
  'x-rd-lockable',
  'x-rd-sensitive',
  'x-rd-machine-only',
] as const;

/** A setting with what only the reference page shows. */
export interface Declared {
  field: Field;
  formerly: readonly string[];
  requires: readonly string[];
}

export function readSchema(file: string): JsonObject {
  const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
  if (!isObject(value)) throw new Error(`${file}: a schema must be an object`);
  return value;
}

/** Every leaf of the declaration, in its order. Throws a plain error for a declaration that says something impossible. */
export function declaredSettings(schema: JsonObject, prefix = ''): Declared[] {
  return Object.entries(object(schema.properties, `${prefix}properties`)).flatMap(([name, node]) => {
    const path = `${prefix}${name}`;
    const leaf = object(node, path);
    if (isObject(leaf.properties)) return declaredSettings(leaf, `${path}.`);
    return [declared(path, leaf)];
  });
}

function declared(path: string, leaf: JsonObject): Declared {
  for (const word of Object.keys(leaf)) {
    if (word.startsWith('x-rd-') && !WORDS.some((known) => known === word))
      throw new Error(`${path}: unknown word ${word}`);
  }
  if (leaf.default === undefined) throw new Error(`${path}: no default`);
  if (typeof leaf.description !== 'string') throw new Error(`${path}: no description`);
  if (typeof leaf['x-rd-since'] !== 'number') throw new Error(`${path}: no x-rd-since`);
  const effect = leaf['x-rd-effect'] === undefined ? {} : object(leaf['x-rd-effect'], path);
  const platforms = platformList(leaf['x-rd-platforms'], PLATFORMS);
  const flag = settingFlag(leaf, platforms);
  const field: Field = {
    // The union of paths is generated from this same list.
    path: path as Field['path'],
    type: fieldType(path, leaf),
    default: leaf.default,
    ...defaultsOn(leaf),
    ...(Array.isArray(leaf.enum) ? { enum: strings(leaf.enum) } : {}),
    ...(isObject(leaf['x-rd-synonyms']) ? { synonyms: leaf['x-rd-synonyms'] as Record<string, string> } : {}),
    ...(typeof leaf.minimum === 'number' ? { min: leaf.minimum } : {}),
    ...(typeof leaf.maximum === 'number' ? { max: leaf.maximum } : {}),
    ...(typeof leaf['x-rd-unit'] === 'string' ? { unit: leaf['x-rd-unit'] } : {}),
    ...(typeof leaf['x-rd-format'] === 'string' ? { format: leaf['x-rd-format'] } : {}),
    platforms,
    effect: { lima: effectOf(path, effect.lima), wsl: effectOf(path, effect.wsl) },
    ...(flag ? { flag } : {}),
    lockable: leaf['x-rd-lockable'] !== false,
    sensitive: leaf['x-rd-sensitive'] === true,
    ...(leaf['x-rd-machine-only'] === true ? { machineOnly: true } : {}),
    since: leaf['x-rd-since'],
    description: leaf.description,
  };
  return { field, formerly: strings(leaf['x-rd-formerly']), requires: strings(leaf['x-rd-requires']) };
}

function settingFlag(leaf: JsonObject, platforms: readonly Platform[]): SettingFlag | undefined {
  const flag = leaf['x-rd-flag'];
  if (!isObject(flag)) return undefined;
  if (typeof flag.name !== 'string') throw new Error('x-rd-flag: no name');
  const values = flag.values ?? leaf.enum;
  return {
    name: flag.name,
    aliases: strings(flag.aliases),
    platforms: platformList(flag.platforms, platforms),
    hidden: flag.hidden === true,
    ...(values === undefined ? {} : { values: strings(values) }),
  };
}

function defaultsOn(leaf: JsonObject): Pick<Field, 'defaultByPlatform' | 'defaultFromKernel'> {
  const rows = Array.isArray(leaf['x-rd-default-on']) ? leaf['x-rd-default-on'].filter(isObject) : [];
  const byPlatform = new Map<Platform, JsonValue>();
  const fromKernel = new Map<Platform, number>();
  for (const row of rows) {
    const [platform] = platformList([row.platform ?? null], []);
    if (!platform || row.value === undefined) throw new Error('x-rd-default-on: a row needs platform and value');
    byPlatform.set(platform, row.value);
    if (typeof row.kernel === 'number') fromKernel.set(platform, row.kernel);
  }
  return {
    ...(byPlatform.size ? { defaultByPlatform: Object.fromEntries(byPlatform) } : {}),
    ...(fromKernel.size ? { defaultFromKernel: Object.fromEntries(fromKernel) } : {}),
  };
}

function fieldType(path: string, leaf: JsonObject): FieldType {
  if (leaf.type === 'boolean' || leaf.type === 'integer' || leaf.type === 'string') return leaf.type;
  if (leaf.type === 'array') return 'string[]';
  if (leaf.type === 'object' && isObject(leaf.additionalProperties)) {
    if (leaf.additionalProperties.type === 'boolean') return 'map<string,boolean>';
    if (leaf.additionalProperties.type === 'string') return 'map<string,string>';
  }
  throw new Error(`${path}: no such type`);
}

function effectOf(path: string, value: JsonValue | undefined): Effect {
  if (value === undefined || value === 'none') return 'none';
  if (value === 'live' || value === 'restart' || value === 'restart-or-reset') return value;
  throw new Error(`${path}: no such effect`);
}

function platformList(value: JsonValue | undefined, otherwise: readonly Platform[]): readonly Platform[] {
  if (value === undefined) return otherwise;
  return strings(value).map((name) => {
    const platform = PLATFORMS.find((known) => known === name);
    if (!platform) throw new Error(`no such platform: ${name}`);
    return platform;
  });
}

function strings(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function object(value: JsonValue | undefined, where: string): JsonObject {
  if (!isObject(value)) throw new Error(`${where}: must be an object`);
  return value;
}
