import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import type { FieldType } from '../../src/settings/field.ts';
import { entryPath } from './entry-path.ts';
import { sortedByName } from './name-order.ts';

/** What a deployment profile holds, in the kinds that its formats know (tool facts, 7.3). */
export type DeploymentValue =
  | { kind: 'boolean'; value: boolean }
  /** Neither below nor beyond what a number of JavaScript holds exactly. */
  | { kind: 'integer'; value: number }
  | { kind: 'string'; value: string }
  | { kind: 'strings'; value: readonly string[] }
  /** Written even when nothing is in it. */
  | { kind: 'map'; members: DeploymentMembers }
  /** Never empty. */
  | { kind: 'section'; members: DeploymentMembers };
export type DeploymentMembers = ReadonlyMap<string, DeploymentValue>;

/** What an entry of a map may be. */
export type EntryKind = 'boolean' | 'string';

/** Takes a mistake: `kubernetes.port: expected a number, got a string`. */
export type Complain = (problem: string) => void;

/** A value as the type of its setting wants it; every mistake goes to `complain`. */
export function typedValue(
  value: JsonValue,
  type: FieldType,
  path: string,
  complain: Complain,
): DeploymentValue | undefined {
  const wrong = (expected: string): undefined => void complain(mismatch(path, expected, value));
  switch (type) {
    case 'boolean':
      return typeof value === 'boolean' ? { kind: 'boolean', value } : wrong(EXPECTED.boolean);
    case 'integer':
      return typeof value === 'number' ? integer(value, path, complain) : wrong('a number');
    case 'string':
      return typeof value === 'string' ? { kind: 'string', value } : wrong(EXPECTED.string);
    case 'string[]':
      return Array.isArray(value) ? list(value, path, complain) : wrong('a list of strings');
    case 'map<string,boolean>':
      return isObject(value) ? map(value, ['boolean'], path, complain) : wrong('an object with entries');
    case 'map<string,string>':
      return isObject(value) ? map(value, ['string'], path, complain) : wrong('an object with entries');
  }
}

/** A value whose setting came to an end: as what it is. */
export function naturalValue(value: JsonValue, path: string, complain: Complain): DeploymentValue | undefined {
  if (typeof value === 'boolean') return { kind: 'boolean', value };
  if (typeof value === 'string') return { kind: 'string', value };
  if (typeof value === 'number') return integer(value, path, complain);
  if (Array.isArray(value)) return list(value, path, complain);
  return isObject(value) ? map(value, ['boolean', 'string'], path, complain) : undefined;
}

/** Entries in the order of their lower-cased keys, the same on every computer. */
export function map(
  object: JsonObject,
  kinds: readonly EntryKind[],
  path: string,
  complain: Complain,
): DeploymentValue {
  const members = new Map<string, DeploymentValue>();
  for (const [key, value] of sortedByName(Object.entries(object))) {
    if (typeof value === 'boolean' && kinds.includes('boolean')) members.set(key, { kind: 'boolean', value });
    else if (typeof value === 'string' && kinds.includes('string')) members.set(key, { kind: 'string', value });
    else complain(mismatch(entryPath(path, key), kinds.map((kind) => EXPECTED[kind]).join(' or '), value));
  }
  return { kind: 'map', members };
}

/** `kubernetes: expected an object with settings, got a list`. Says the kind alone: a value may be a secret. */
export function mismatch(path: string, expected: string, value: JsonValue): string {
  return `${path}: expected ${expected}, got ${kindOf(value)}`;
}

const EXPECTED: Readonly<Record<EntryKind, string>> = { boolean: 'true or false', string: 'a string' };

function integer(value: number, path: string, complain: Complain): DeploymentValue | undefined {
  // No minus in front of a zero.
  if (Number.isSafeInteger(value)) return { kind: 'integer', value: value + 0 };
  complain(
    Number.isInteger(value) || !Number.isFinite(value)
      ? `${path}: expected a number from ${Number.MIN_SAFE_INTEGER} to ${Number.MAX_SAFE_INTEGER}; the digits of one beyond are lost when JSON is read`
      : `${path}: expected a whole number, got one with a fraction`,
  );
  return undefined;
}

function list(entries: readonly JsonValue[], path: string, complain: Complain): DeploymentValue {
  const value: string[] = [];
  for (const [index, entry] of entries.entries()) {
    if (typeof entry === 'string') value.push(entry);
    else complain(mismatch(`${path}[${index}]`, EXPECTED.string, entry));
  }
  return { kind: 'strings', value };
}

function kindOf(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (isObject(value)) return 'an object';
  return { string: 'a string', number: 'a number', boolean: 'a boolean' }[
    typeof value as 'string' | 'number' | 'boolean'
  ];
}
