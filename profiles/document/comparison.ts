import { defined, isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { sameValue } from '../../src/settings/canonical.ts';
import type { Platform, SettingField } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { type Finding, formatFindings } from '../../src/settings/issue.ts';
import { leafAt, setLeaf } from '../../src/settings/leaf-paths.ts';
import { isLocked } from '../../src/settings/locks.ts';
import { copyOfObject, equal, own } from '../../src/settings/own.ts';
import type { SettingPath } from '../../src/settings/settings.gen.ts';
import {
  type FormatName,
  type ImportedPart,
  type Importer,
  type Loss,
  type Part,
  PROFILE_LIMIT,
  partOfName,
} from '../formats/format.ts';
import { importerFor } from '../formats/index.ts';
import { type DocumentPart, type LoadContext, readPart } from './load.ts';
import { readSource, type Source, type UnreadSecret } from './source.ts';

/** A side of a comparison, at the newest version. */
export interface Side {
  settings: JsonObject;
  /** Settings that are locked on this side. */
  locked: readonly SettingPath[];
  /** Whether the side has all settings; the other side then decides which are compared. */
  whole: boolean;
  /** Whether the side knows which settings are locked; otherwise locks are not compared. */
  locks: boolean;
}

/** A setting, or a map entry, that differs. A side without a value does not mention it. */
export interface ValueDifference {
  path: SettingPath;
  /** Key of a map entry. */
  key?: string;
  /** Whether the values are secrets. */
  sensitive: boolean;
  before?: JsonValue;
  after?: JsonValue;
}

interface LockDifference {
  path: SettingPath;
  before: boolean;
  after: boolean;
}

export interface Comparison {
  values: ValueDifference[];
  locks: LockDifference[];
}

/**
 * Compares two sets of settings, in schema order; different spellings of one value are equal. With `part`, only the settings of that part are
 * compared; a setting that is in different parts of the two sides differs in its lock.
 */
export function compareSettings(before: Side, after: Side, part?: Part): Comparison {
  const a = part ? partOf(before, part) : before;
  const b = part ? partOf(after, part) : after;
  const both = before.locks && after.locks;
  const locks = both ? lockDifferences(before, after) : [];
  const elsewhere = part ? locks.filter(({ path }) => mentions(before, path) && mentions(after, path)) : [];
  const compared = FIELDS.filter(({ path }) => path !== 'version' && !elsewhere.some((each) => each.path === path));
  return {
    values: compared.flatMap((field) => valueDifferences(field, a, b)),
    locks: part ? elsewhere : locks,
  };
}

function mentions({ settings }: Side, path: SettingPath): boolean {
  return leafAt(settings, path) !== undefined;
}

function partOf({ settings, locked, ...side }: Side, part: Part): Side {
  const wanted = FIELDS.filter(({ path }) => locked.includes(path) === (part === 'locked'));
  return { ...side, settings: onlyPaths(settings, wanted), locked };
}

function onlyPaths(settings: JsonObject, fields: readonly SettingField[]): JsonObject {
  const result: JsonObject = {};
  for (const { path } of fields) {
    const value = leafAt(settings, path);
    if (value !== undefined) setLeaf(result, path, value);
  }
  return result;
}

function valueDifferences({ path, type, sensitive }: SettingField, a: Side, b: Side): ValueDifference[] {
  const before = leafAt(a.settings, path);
  const after = leafAt(b.settings, path);
  if (isNotCompared(before, a, b) || isNotCompared(after, b, a)) return [];
  if (type.startsWith('map<') && isMap(before) && isMap(after) && (before || after)) {
    const entries = entryDifferences(before ?? {}, after ?? {}, a, b);
    const found = entries.map((entry) => ({ path, sensitive, ...entry }));
    // Entries do not show whether an empty map is mentioned.
    if (found.length > 0 || (before && after)) return found;
  }
  if (sameValue(path, before, after)) return [];
  return [{ path, sensitive, ...defined({ before, after }) }];
}

/** Whether a setting is not compared: this side lacks it, and only the other side has all settings. */
function isNotCompared(value: JsonValue | undefined, side: Side, other: Side): boolean {
  return value === undefined && other.whole && !side.whole;
}

function isMap(value: JsonValue | undefined): value is JsonObject | undefined {
  return value === undefined || isObject(value);
}

function entryDifferences(
  before: JsonObject,
  after: JsonObject,
  a: Side,
  b: Side,
): Omit<ValueDifference, 'path' | 'sensitive'>[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) => {
    // In a desired state, null means that the entry does not exist.
    const [old, now] = [own(before, key) ?? undefined, own(after, key) ?? undefined];
    if (equal(old, now)) return [];
    const mentioned = (map: JsonObject) => Object.hasOwn(map, key);
    if ((!mentioned(before) && b.whole && !a.whole) || (!mentioned(after) && a.whole && !b.whole)) return [];
    return [{ key, ...defined({ before: old, after: now }) }];
  });
}

function lockDifferences(a: Side, b: Side): LockDifference[] {
  return FIELDS.flatMap(({ path }) => {
    const [before, after] = [a.locked.includes(path), b.locked.includes(path)];
    const notCompared = (value: Side, other: Side) =>
      other.whole && !value.whole && leafAt(value.settings, path) === undefined;
    return before === after || notCompared(a, b) || notCompared(b, a) ? [] : [{ path, before, after }];
  });
}

/** Settings, and the unreadable secrets that they refer to. */
interface WithSecrets {
  label: string;
  settings: JsonObject;
  unread: readonly UnreadSecret[];
}

/**
 * Makes two sets of settings comparable although secrets could not be read: a value on the other side may be the same one and counts as equal, with a
 * note that says so. A side that does not mention the setting differs.
 */
export function settleSecrets(a: WithSecrets, b: WithSecrets): { a: JsonObject; b: JsonObject; notes: string[] } {
  const [settledA, settledB] = [copyOfObject(a.settings), copyOfObject(b.settings)];
  const notes: string[] = [];
  for (const [one, settings, other, others] of [
    [a, settledA, b, settledB],
    [b, settledB, a, settledA],
  ] as const) {
    for (const { path, reference, reason } of one.unread) {
      const twin = other.unread.find((each) => each.path === path);
      if (!twin) setLeaf(settings, path, leafAt(others, path) ?? UNKNOWN);
      else {
        setLeaf(settings, path, UNKNOWN);
        if (equal(twin.reference, reference)) continue;
      }
      if (twin ? one === a : leafAt(others, path) !== undefined) {
        notes.push(`${path} cannot be compared: ${one.label} only refers to it, and ${reason}`);
      }
    }
  }
  return { a: settledA, b: settledB, notes };
}

/** Placeholder for a secret that exists and was not read. */
const UNKNOWN = '(secret, not read)';

/** The settings of a file: a deployment profile, or those of a document. */
interface AnyPart {
  /** Part of the settings; absent if unknown, and for bare settings and profile documents. */
  part?: Part;
  /** The file, and the place in a file with several parts. */
  source: string;
  /** Settings as written, at their own version, with secrets resolved. */
  settings: JsonObject;
  /** Values of the file that are not in `settings`. */
  lost: readonly Loss[];
}

/** A file with settings in any format. */
export interface AnyFile {
  /** Path as given, or `<stdin>`. */
  label: string;
  format: 'yaml' | FormatName;
  /** `deployment` is a deployment profile; the others are YAML or JSON for `rdctl apply`. */
  form: 'settings' | 'profile' | 'deployment';
  /** The system whose applications read it; absent for documents, which are for all systems. */
  platform?: Platform;
  parts: readonly AnyPart[];
  /** All problems. If there are any, `joined` must not be used. */
  findings: readonly Finding[];
  warnings: readonly string[];
  /** All parts at the newest version, canonical, with secrets; locked settings override defaults. */
  joined: { settings: JsonObject; locked: readonly SettingPath[] };
  /** Secrets that could not be read here, and are not in the settings. */
  unread: readonly UnreadSecret[];
  /** The document; absent for other formats than YAML and JSON. */
  document?: DocumentPart;
}

export interface AnyFileContext extends LoadContext {
  /** The part of a file whose name does not tell. */
  part?: Part;
}

/**
 * Reads a file of any format: deployment formats are recognized by content, a Linux deployment file by name; everything
 * else is YAML or JSON. `-` is standard input.
 * @throws RdError `ERR_IO` for what cannot be read, `ERR_PROFILE_INVALID` for a deployment file that is not understood or has
 *   more than 16 MiB. Problems of the settings are in `findings`.
 */
export async function loadAnyFile(name: string, context: AnyFileContext): Promise<AnyFile> {
  const source = await readSource(name, context, PROFILE_LIMIT);
  const importer = await importerFor(source);
  // Bare settings in JSON are a document, unless the file has the name of a deployment profile.
  const deployment = importer?.name !== 'json' || (partOfName(source.label) ?? context.part) !== undefined;
  if (importer && deployment) return deploymentFile(source, importer, context);
  const unread: UnreadSecret[] = [];
  const document = await readPart(source, { ...context, onUnread: (secret) => unread.push(secret) });
  return documentFile(source, document, unread);
}

async function deploymentFile(
  { bytes, label }: Source,
  { name, platform, read }: Importer,
  { part }: AnyFileContext,
): Promise<AnyFile> {
  const parts = (await read(bytes, label)).map((each) => withPart(each, part));
  const { joinParts } = await import('./imported-profile.ts');
  const { settings, locked, findings, fidelity, warnings, versionless } = joinParts(
    parts.map((each) => ({ ...each, platform })),
  );
  const lost = fidelity.flatMap((entry) =>
    entry.outcome === 'lost'
      ? [{ file: label, pointer: '', message: `left out: ${entry.place}: ${entry.reason}` }]
      : [],
  );
  return {
    label,
    format: name,
    form: 'deployment',
    platform,
    parts,
    findings,
    warnings: [...parts.flatMap(({ notes = [] }) => notes), ...formatFindings([...versionless, ...lost, ...warnings])],
    joined: { settings, locked },
    unread: [],
  };
}

function withPart(part: ImportedPart, wanted: Part | undefined): ImportedPart {
  const which = part.part ?? wanted;
  return which ? { ...part, part: which } : part;
}

function documentFile({ label, bytes }: Source, document: DocumentPart, unread: readonly UnreadSecret[]): AnyFile {
  const { shape, settings, findings, warnings } = document;
  const json = /^\s*[{[]/.test(
    Buffer.from(bytes.subarray(0, 256))
      .toString('utf8')
      .replace(/^\ufeff/, ''),
  );
  return {
    label,
    format: json ? 'json' : 'yaml',
    form: shape.form,
    parts: shape.settings ? [{ source: label, settings: document.written, lost: [] }] : [],
    findings,
    warnings,
    joined: { settings, locked: lockedPaths(shape.locked ?? {}, settings, unread) },
    unread,
    document,
  };
}

/** Returns the locked settings that have a value, including unread secrets. */
function lockedPaths(record: JsonObject, settings: JsonObject, unread: readonly UnreadSecret[]): SettingPath[] {
  const has = (path: SettingPath) =>
    leafAt(settings, path) !== undefined || unread.some((secret) => secret.path === path);
  return FIELDS.filter(({ path, lockable }) => lockable && has(path) && isLocked(record, path)).map(({ path }) => path);
}
