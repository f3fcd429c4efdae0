import { RdError } from '../../src/errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import type { FieldType } from '../../src/settings/field.ts';
import { membersOfToday, type SettingMember } from '../../src/settings/member.ts';
import { nearest } from '../../src/settings/nearest.ts';
import { own } from '../../src/settings/own.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';

/** One deployment profile at one version. */
export interface DeploymentTree {
  /** In the order of the schema, the version first; entries of maps sorted. */
  members: DeploymentMembers;
  /** What was left out, one sentence each. Names settings, never their values. */
  warnings: string[];
}

/**
 * The settings as a tree of typed values, read by the names and types that their version had; without a version they are of
 * the newest, and the tree says so. Names that are no settings, `null` and empty sections are left out with a warning. Values
 * are not judged beyond their type, because the reader of the profile may be newer or on another platform.
 * @throws RdError `ERR_PROFILE_INVALID` with every value of the wrong type (`details`): its path and what was expected.
 */
export async function deploymentTree(settings: JsonObject): Promise<DeploymentTree> {
  const reading: Reading = { warnings: [], problems: [] };
  const version = versionOf(settings, reading);
  const members = readSection(settings, await membersAt(version), '', reading);
  if (reading.problems.length > 0) {
    throw new RdError('ERR_PROFILE_INVALID', 'the settings contain values that deployment profiles cannot represent:', {
      details: reading.problems,
    });
  }
  return {
    members: new Map([['version', { kind: 'integer', value: version }], ...members]),
    warnings: reading.warnings,
  };
}

interface Reading {
  warnings: string[];
  problems: string[];
}

/** The application does not start with a profile that has no version, or none that it understands. */
function versionOf(settings: JsonObject, { problems }: Reading): number {
  if (!Object.hasOwn(settings, 'version')) return SCHEMA_VERSION;
  const version = own(settings, 'version') ?? null;
  if (typeof version === 'number' && Number.isSafeInteger(version) && version > 0) return version;
  const expected = `expected a whole number from 1, the version of the settings (${SCHEMA_VERSION} is the newest)`;
  problems.push(typeof version === 'number' ? `version: ${expected}` : mismatch('version', expected, version));
  return SCHEMA_VERSION;
}

/** The names of a version, of the newest for later ones. The shapes of older versions are large, and most settings are of the newest. */
export async function membersAt(version: number): Promise<SettingMember[]> {
  if (version >= SCHEMA_VERSION) return membersOfToday();
  const { membersOfVersion } = await import('../../src/settings/members.ts');
  return membersOfVersion(version);
}

/** Everything but the version. */
function readSection(
  object: JsonObject,
  known: readonly SettingMember[],
  path: string,
  reading: Reading,
): DeploymentMembers {
  const members = new Map<string, DeploymentValue>();
  const names = known.map(({ name }) => name);
  for (const name of Object.keys(object)) {
    if (!names.includes(name)) reading.warnings.push(unknown(path, name, names));
  }
  for (const member of known) {
    const value = own(object, member.name);
    const at = path === '' ? member.name : `${path}.${member.name}`;
    if (value === undefined || at === 'version') continue;
    if (value === null) reading.warnings.push(`${at} is null and was left out.`);
    else {
      const read = readMember(value, member, at, reading);
      if (read) members.set(member.name, read);
    }
  }
  return members;
}

function readMember(
  value: JsonValue,
  member: SettingMember,
  path: string,
  reading: Reading,
): DeploymentValue | undefined {
  const complain = (problem: string) => void reading.problems.push(problem);
  if (member.kind === 'ended') return naturalValue(value, path, complain);
  if (member.kind === 'setting') {
    // Version 6 switched extensions on and off here, and version 7 named their tags.
    if (path === 'extensions' && isObject(value)) return map(value, ['boolean', 'string'], path, complain);
    return typedValue(value, member.type, path, complain);
  }
  if (!isObject(value)) {
    complain(mismatch(path, 'an object with settings', value));
    return undefined;
  }
  const members = readSection(value, member.members, path, reading);
  if (members.size > 0) return { kind: 'section', members };
  if (Object.keys(value).length === 0) reading.warnings.push(`${path} contains no settings and was left out.`);
  return undefined;
}

function unknown(path: string, name: string, names: readonly string[]): string {
  const close = nearest(name, names);
  const hint = close === undefined ? '' : ` Did you mean ${entryPath(path, close)}?`;
  return `${entryPath(path, name)} is not a setting and was left out.${hint}`;
}

/** What a deployment profile holds, in the kinds that its formats know. */
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
type EntryKind = 'boolean' | 'string';

/** Takes a mistake: `kubernetes.port: expected a number, got a string`. */
type Complain = (problem: string) => void;

/** A value as the type of its setting wants it; every mistake goes to `complain`. */
function typedValue(value: JsonValue, type: FieldType, path: string, complain: Complain): DeploymentValue | undefined {
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
function naturalValue(value: JsonValue, path: string, complain: Complain): DeploymentValue | undefined {
  if (typeof value === 'boolean') return { kind: 'boolean', value };
  if (typeof value === 'string') return { kind: 'string', value };
  if (typeof value === 'number') return integer(value, path, complain);
  if (Array.isArray(value)) return list(value, path, complain);
  return isObject(value) ? map(value, ['boolean', 'string'], path, complain) : undefined;
}

/** Entries in the order of their lower-cased keys, the same on every computer. */
function map(object: JsonObject, kinds: readonly EntryKind[], path: string, complain: Complain): DeploymentValue {
  const members = new Map<string, DeploymentValue>();
  for (const [key, value] of sortedByName(Object.entries(object))) {
    if (typeof value === 'boolean' && kinds.includes('boolean')) members.set(key, { kind: 'boolean', value });
    else if (typeof value === 'string' && kinds.includes('string')) members.set(key, { kind: 'string', value });
    else complain(mismatch(entryPath(path, key), kinds.map((kind) => EXPECTED[kind]).join(' or '), value));
  }
  return { kind: 'map', members };
}

/** `kubernetes: expected an object with settings, got a list`. Says the kind alone: a value may be a secret. */
function mismatch(path: string, expected: string, value: JsonValue): string {
  return `${path}: expected ${expected}, got ${kindOf(value)}`;
}

const EXPECTED: Readonly<Record<EntryKind, string>> = { boolean: 'true or false', string: 'a string' };

function integer(value: number, path: string, complain: Complain): DeploymentValue | undefined {
  // No minus in front of a zero.
  if (Number.isSafeInteger(value)) return { kind: 'integer', value: value + 0 };
  complain(
    Number.isInteger(value) || !Number.isFinite(value)
      ? `${path}: expected a number from ${Number.MIN_SAFE_INTEGER} to ${Number.MAX_SAFE_INTEGER}; larger numbers lose digits when JSON is read`
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

/** Pairs of a name and anything, sorted as the compatible tool sorts names: in lower case and by code points. */
export function sortedByName<T>(pairs: Iterable<readonly [string, T]>): [string, T][] {
  const keyed = Array.from(pairs, ([name, value]) => ({ name, value, key: lowerCase(name) }));
  // Units of UTF-16 have another order than code points, but not among letters of ASCII, which nearly all names are made of.
  const compare = keyed.every(({ key }) => ASCII.test(key)) ? byUnits : byCodePoints;
  return keyed.sort((a, b) => compare(a.key, b.key) || byUnits(a.name, b.name)).map(({ name, value }) => [name, value]);
}

const ASCII = /^[\0-\x7f]*$/;

/** Each character by itself, and as one: no final sigma, and `i` for `İ`. */
function lowerCase(name: string): string {
  if (ASCII.test(name)) return name.toLowerCase();
  return Array.from(name, (char) => String.fromCodePoint(char.toLowerCase().codePointAt(0) ?? 0)).join('');
}

function byUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Bytes of UTF-8 have the order of the code points. */
function byCodePoints(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** What a terminal acts on, what does not show, and an unpaired surrogate. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\ufffe\uffff]/u;
const HIDDEN_UNITS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\ud800-\udfff\ufffe\uffff]/gu;
const LONGEST_KEY = 80;

/** Dotted path of an entry of a map or of an unknown name, for messages: `WSL.integrations.Ubuntu`, `WSL.integrations["a\nb"]`. */
export function entryPath(path: string, key: string): string {
  if (key !== '' && key.length <= LONGEST_KEY && !HIDDEN.test(key)) return path === '' ? key : `${path}.${key}`;
  const short = key.length <= LONGEST_KEY ? key : `${key.slice(0, LONGEST_KEY)}…`;
  const shown = JSON.stringify(short).replace(HIDDEN_UNITS, (characters) =>
    Array.from(
      { length: characters.length },
      (_, at) => `\\u${characters.charCodeAt(at).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
  return `${path}[${shown}]`;
}
