import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../src/json.ts';
import { setLeaf } from '../../src/settings/leaf-paths.ts';
import { validateShape } from '../../src/settings/older-shapes.ts';
import { put } from '../../src/settings/own.ts';
import { pastSchema } from './past-schema.ts';

/** Settings versions of the releases that have deployment profiles. */
export const FLEET_VERSIONS = Array.from({ length: 14 }, (_, index) => index + 6);

/** The part of a JSON schema that the generators respect. */
interface Node {
  type?: string | string[];
  properties?: Record<string, Node>;
  additionalProperties?: Node | boolean;
  enum?: string[];
  minimum?: number;
  maximum?: number;
}

/** The texts of a profile where its schema does not restrict them. */
export interface Texts {
  value: fc.Arbitrary<string>;
  /** Of a list; defaults to value. */
  entry?: fc.Arbitrary<string>;
  /** Of a map. */
  key: fc.Arbitrary<string>;
}

/**
 * A deployment profile of this version: some of its settings, each with the type and in the range of the schema. Text formats and
 * rules between settings are ignored, because no file format knows them.
 */
export function profileArbitrary(version: number, texts: Texts): fc.Arbitrary<JsonObject> {
  const values: Record<string, fc.Arbitrary<JsonValue>> = {};
  for (const [path, node] of settingsOf(version)) values[path] = settingValue(node, texts);
  return fc
    .tuple(fc.subarray(Object.keys(values), { maxLength: 12 }), fc.record(values))
    .map(([paths, chosen]) => profileOf(version, paths, chosen));
}

/** A profile with every setting of this version. */
export function fullProfileArbitrary(version: number, texts: Texts): fc.Arbitrary<JsonObject> {
  const settings = settingsOf(version);
  return fc.tuple(...settings.map(([, node]) => settingValue(node, texts))).map((values) => {
    const chosen = Object.fromEntries(settings.map(([path], index) => [path, values[index] ?? null]));
    return profileOf(version, Object.keys(chosen), chosen);
  });
}

function profileOf(version: number, paths: readonly string[], chosen: Record<string, JsonValue>): JsonObject {
  const profile: JsonObject = { version };
  for (const path of paths) setLeaf(profile, path, chosen[path] ?? null);
  return profile;
}

/** Every setting by its dotted path except the version. Schemas cover several versions, so each setting is looked up. */
function settingsOf(version: number): [string, Node][] {
  const schema =
    [19, 16, 14, 10, 6].find((each) => each <= Math.max(version, 6) && (each !== 19 || version === 19)) ?? 6;
  const root: Node =
    schema === 19 ? JSON.parse(readFileSync(resolve('schemas/settings/v19.json'), 'utf8')) : pastSchema(schema);
  const known = leaves(root).map(([path, node]): [string, Node] =>
    version === 6 && path === 'extensions' ? [path, EXTENSIONS_OF_6] : [path, node],
  );
  return known.filter(([path, node]) => {
    if (path === 'version') return false;
    const document: JsonObject = { version };
    setLeaf(document, path, sample(node));
    return version === 19 || validateShape(document, version).length === 0;
  });
}

/** Version 6 enabled and disabled extensions; its schema also covers version 7, which stored tags. */
const EXTENSIONS_OF_6: Node = { type: 'object', additionalProperties: { type: 'boolean' } };

function leaves(node: Node, path = ''): [string, Node][] {
  if (!node.properties) return [[path, node]];
  return Object.entries(node.properties).flatMap(([name, below]) =>
    leaves(below, path === '' ? name : `${path}.${name}`),
  );
}

function sample(node: Node): JsonValue {
  if (node.enum) return node.enum[0] ?? null;
  return { boolean: true, integer: node.minimum ?? 0, string: '', array: [], object: {} }[String(node.type)] ?? null;
}

function settingValue(node: Node, texts: Texts): fc.Arbitrary<JsonValue> {
  if (node.enum) return fc.constantFrom(...node.enum);
  switch (node.type) {
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return fc.integer({ min: node.minimum ?? 0, max: Math.min(node.maximum ?? 0xffff_ffff, 0xffff_ffff) });
    case 'string':
      return texts.value;
    case 'array':
      return fc.array(texts.entry ?? texts.value, { maxLength: 4 });
    case 'object':
      return mapOf(entryOf(node, texts), texts);
    default:
      throw new Error(`no generator for the type ${String(node.type)}`);
  }
}

function entryOf({ additionalProperties }: Node, texts: Texts): fc.Arbitrary<JsonValue> {
  const types = typeof additionalProperties === 'object' ? [additionalProperties.type ?? []].flat() : [];
  return fc.oneof(...types.map((type) => settingValue({ type }, texts)));
}

/** Including keys that every object inherits. */
function mapOf(entry: fc.Arbitrary<JsonValue>, texts: Texts): fc.Arbitrary<JsonObject> {
  return fc.uniqueArray(fc.tuple(texts.key, entry), { maxLength: 4, selector: ([key]) => key }).map((entries) => {
    const map: JsonObject = {};
    for (const [key, value] of entries) put(map, key, value);
    return map;
  });
}
