import { RdError } from '../../src/errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import type { Field } from '../../src/settings/field.ts';
import { type SchemaNode, schemaTree } from '../../src/settings/fields.ts';
import { nearest } from '../../src/settings/nearest.ts';
import { own } from '../../src/settings/own.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';

/** What a deployment profile holds, in the kinds that its formats know (cli facts, 7.3). */
export type DeploymentValue =
  | { kind: 'boolean'; value: boolean }
  | { kind: 'integer'; value: number }
  | { kind: 'string'; value: string }
  | { kind: 'strings'; value: readonly string[] }
  /** Written even when nothing is in it. */
  | { kind: 'map'; members: DeploymentMembers }
  /** Never empty. */
  | { kind: 'section'; members: DeploymentMembers };
export type DeploymentMembers = ReadonlyMap<string, DeploymentValue>;

export interface DeploymentTree {
  members: DeploymentMembers;
  /** What was left out or changed, one sentence each. Names settings, never their values. */
  warnings: string[];
}

/**
 * The settings as a tree of typed values, read by the schema: names that are no settings are left out, `null` and empty
 * sections too, and a version is added where none is given. Values are not judged beyond their type, because the reader of
 * the profile may be newer or on another platform.
 * @throws RdError `ERR_PROFILE_INVALID` with every value of the wrong type: its path and what was expected.
 */
export function deploymentTree(settings: JsonObject): DeploymentTree {
  const reading: Reading = { warnings: [], problems: [] };
  const withVersion = Object.hasOwn(settings, 'version') ? settings : { version: SCHEMA_VERSION, ...settings };
  if (withVersion.version === null) {
    reading.warnings.push('version is null, so the profile gets none and will not be accepted by the application.');
  }
  const members = readSection(withVersion, schemaTree(), [], reading);
  const [first] = reading.problems;
  if (first === undefined) return { members, warnings: reading.warnings };
  if (reading.problems.length === 1) throw new RdError('ERR_PROFILE_INVALID', first);
  throw new RdError('ERR_PROFILE_INVALID', 'the settings hold values of the wrong type:', {
    details: reading.problems,
  });
}

interface Reading {
  warnings: string[];
  problems: string[];
}

function readSection(
  object: JsonObject,
  nodes: ReadonlyMap<string, SchemaNode>,
  above: readonly string[],
  reading: Reading,
): DeploymentMembers {
  const members = new Map<string, DeploymentValue>();
  for (const name of Object.keys(object)) {
    if (!nodes.has(name)) reading.warnings.push(unknown([...above, name], nodes));
  }
  for (const [name, node] of nodes) {
    const value = own(object, name);
    if (value === undefined || value === null) continue;
    const names = [...above, name];
    const read = 'field' in node ? readField(value, node.field, reading) : undefined;
    if (read) members.set(name, read);
    if ('field' in node) continue;
    if (!isObject(value)) {
      reading.problems.push(mismatch(names.join('.'), 'an object with settings', value));
      continue;
    }
    const inner = readSection(value, node.section, names, reading);
    if (inner.size > 0) members.set(name, { kind: 'section', members: inner });
  }
  return members;
}

function unknown(names: readonly string[], siblings: ReadonlyMap<string, SchemaNode>): string {
  const close = nearest(names.at(-1) ?? '', siblings.keys());
  const hint = close === undefined ? '' : ` Did you mean ${[...names.slice(0, -1), close].join('.')}?`;
  return `${names.join('.')} is no setting and was left out.${hint}`;
}

function readField(value: JsonValue, field: Field, reading: Reading): DeploymentValue | undefined {
  const { path, type } = field;
  const wrong = (expected: string): undefined => void reading.problems.push(mismatch(path, expected, value));
  switch (type) {
    case 'boolean':
      return typeof value === 'boolean' ? { kind: 'boolean', value } : wrong('true or false');
    case 'integer':
      return typeof value === 'number' ? { kind: 'integer', value: whole(value, path, reading) } : wrong('a number');
    case 'string':
      return typeof value === 'string' ? { kind: 'string', value } : wrong('a string');
    case 'string[]':
      return Array.isArray(value) ? readList(value, path, reading) : wrong('a list of strings');
    case 'map<string,boolean>':
    case 'map<string,string>':
      if (!isObject(value)) return wrong('an object with entries');
      return readMap(value, path, type === 'map<string,boolean>' ? 'boolean' : 'string', reading);
  }
}

/** Fractions are cut off, as the compatible tool does. */
function whole(value: number, path: string, reading: Reading): number {
  const cut = Math.trunc(value);
  if (cut !== value) reading.warnings.push(`${path} is no whole number; its fraction was cut off.`);
  // No minus in front of a zero.
  return cut + 0;
}

function readList(list: readonly JsonValue[], path: string, reading: Reading): DeploymentValue {
  const value: string[] = [];
  for (const [index, entry] of list.entries()) {
    if (typeof entry === 'string') value.push(entry);
    else reading.problems.push(mismatch(`${path}[${index}]`, 'a string', entry));
  }
  return { kind: 'strings', value };
}

/** An entry is written as what it is; one of another type than the setting's is said, because readers refuse it. */
function readMap(
  map: JsonObject,
  path: string,
  expected: 'boolean' | 'string',
  reading: Reading,
): Extract<DeploymentValue, { kind: 'map' }> {
  const members = new Map<string, DeploymentValue>();
  const keys = Object.keys(map).sort((a, b) => compare(a.toLowerCase(), b.toLowerCase()) || compare(a, b));
  for (const key of keys) {
    const value = own(map, key) ?? null;
    const place = `${path}.${key}`;
    const before = reading.problems.length;
    const entry = readEntry(value, place, expected, reading);
    if (!entry) continue;
    members.set(key, entry);
    if (typeof value !== expected && reading.problems.length === before) {
      reading.warnings.push(`${place} is ${kindOf(value)}; the application expects ${EXPECTED[expected]}.`);
    }
  }
  return { kind: 'map', members };
}

const EXPECTED = { boolean: 'true or false', string: 'a string' } as const;

function readEntry(
  value: JsonValue,
  place: string,
  expected: 'boolean' | 'string',
  reading: Reading,
): DeploymentValue | undefined {
  if (typeof value === 'boolean') return { kind: 'boolean', value };
  if (typeof value === 'string') return { kind: 'string', value };
  if (typeof value === 'number') return { kind: 'integer', value: whole(value, place, reading) };
  if (Array.isArray(value)) return readList(value, place, reading);
  if (isObject(value)) return readMap(value, place, expected, reading);
  reading.problems.push(mismatch(place, EXPECTED[expected], value));
  return undefined;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function mismatch(path: string, expected: string, value: JsonValue): string {
  return `${path}: expected ${expected}, got ${kindOf(value)}`;
}

/** The kind alone: a value may be a secret. */
function kindOf(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (isObject(value)) return 'an object';
  return { string: 'a string', number: 'a number', boolean: 'a boolean' }[
    typeof value as 'string' | 'number' | 'boolean'
  ];
}
