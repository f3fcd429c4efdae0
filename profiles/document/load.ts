import { RdError } from '../../src/errors.ts';
import { defined, isObject, type JsonObject } from '../../src/json.ts';
import type { PartialBlocks } from '../../src/settings/blocks.gen.ts';
import { BLOCK_NAMES } from '../../src/settings/blocks.ts';
import { type CheckFinding, checkSettings, dependsOnSystem } from '../../src/settings/check.ts';
import type { Platform } from '../../src/settings/field.ts';
import { type Finding, formatFinding } from '../../src/settings/issue.ts';
import { leaves, pointerTo } from '../../src/settings/leaf-paths.ts';
import { namesBefore } from '../../src/settings/migrate.ts';
import type { ParsedDocument } from '../../src/settings/parse.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
import type { WatchRules } from '../../src/settings/watch-rules.ts';
import { inTextOrder, reporter } from './report.ts';
import {
  API_VERSION,
  type DesiredState,
  KIND,
  PORT_FORWARDS,
  type PortForward,
  PROFILE_KEYS,
  readShape,
  type Shape,
} from './shape.ts';
import {
  parseSource,
  readSource,
  resolveSecrets,
  type SecretOrigin,
  type SecretsContext,
  type Source,
  type SourceContext,
} from './source.ts';
import type { ApplyBlock } from './watch-block.ts';
import { idleLock, idleLocks } from './written-settings.ts';

/** The requested state: settings at the newest version, canonical, with secrets resolved, and the blocks of the document. */
interface DesiredRequest extends PartialBlocks {
  settings: JsonObject;
  state: DesiredState;
  prune: string[];
  /** Paths that documents of kind Profile mention; bare settings request only differences. */
  wishes: string[];
}

/** One or more documents, merged. */
export interface DesiredDocument {
  request: DesiredRequest;
  /** Origin of each secret by setting path. */
  secrets: Record<string, SecretOrigin>;
  /** Settings that an exported policy locks; absent if no document has `locked`. */
  locked?: JsonObject;
  /** Returns locks without a value in any document, which no deployment profile can express. */
  idleLocks(): Finding[];
  portForwards: PortForward[];
  /** Whether forwards that are not listed are removed. */
  prunePortForwards: boolean;
  /** Reaction of a service that keeps this profile to drift. */
  watch: WatchRules;
  /** Maintenance window for restarts, if the service keeps this profile. */
  maintenance?: ApplyBlock;
  metadata: { name?: string; description?: string };
  /** Absolute path of each document in order; `-` for standard input. */
  files: string[];
  /** Returns the author of a write for the history, and the lines of the documents that ask for the changes of a plan. */
  author(changes: readonly { path: string; key?: string }[]): Promise<{
    profile?: string;
    files: { path: string; sha256: string }[];
    sources: { path: string; key?: string; file: string; line: number }[];
  }>;
  locate: Locate;
}

/** Form and version of one document. */
export interface DocumentFacts {
  /** Path as given, or `<stdin>`. */
  file: string;
  form: 'settings' | 'profile';
  /** Version of the settings; absent without settings. */
  version?: number;
}

/** `desired` is present if there are no findings. */
export interface LoadedDocument {
  desired?: DesiredDocument;
  documents: DocumentFacts[];
  /** All problems, by document and in text order. */
  findings: Finding[];
  warnings: string[];
}

export type LoadContext = SourceContext & SecretsContext & HostFacts;

/**
 * Reads documents of both forms and merges them, later ones over earlier ones: settings field by field, maps key by key,
 * lists as a whole. Throws `ERR_IO` for a source that cannot be read and `ERR_USAGE` if standard input is named twice;
 * problems inside a document are findings.
 */
export async function loadDesired(names: readonly string[], context: LoadContext): Promise<LoadedDocument> {
  if (names.filter((name) => name === '-').length > 1) {
    throw new RdError('ERR_USAGE', 'standard input can be read only once, but -f - was given twice');
  }
  const parts: DocumentPart[] = [];
  for (const name of names) parts.push(await readPart(await readSource(name, context), context));
  const findings = parts.flatMap((part) => inTextOrder(part.findings));
  const warnings = parts.flatMap((part) => part.warnings);
  const documents = parts.map(factsOf);
  if (findings.length > 0) return { documents, findings, warnings };
  return { desired: combine(parts), documents, findings, warnings };
}

/** Returns the finding of each lock without a value, at the last document that contains the lock. */
function locksWithoutValue(parts: readonly DocumentPart[], locked: JsonObject, settings: JsonObject): Finding[] {
  const paths = leaves(settings).map(([path]) => path);
  return idleLocks(locked, paths).map((path) => {
    const pointer = `/locked${pointerTo(path.split('.'))}`;
    const part = parts.findLast(({ parsed }) => parsed.position(pointer, 'key') !== undefined) ?? parts.at(-1);
    if (!part) throw new Error('locks without a document');
    return idleLock(path, part.parsed);
  });
}

function combine(parts: readonly DocumentPart[]): DesiredDocument {
  const profiles = parts.filter((part) => part.shape.form === 'profile');
  const written = parts.flatMap((part) => part.shape.state ?? []).at(-1);
  const locked = parts.flatMap((part) => (part.shape.locked ? [part.shape.locked] : []));
  const allLocked = locked.length === 0 ? undefined : locked.reduce((earlier, later) => mergeOver(earlier, later));
  const settings = {
    ...parts.map((part) => part.settings).reduce((earlier, later) => mergeOver(earlier, later), {}),
    version: SCHEMA_VERSION,
  };
  const blocks = parts.map(({ shape }): JsonObject => ({ ...shape.blocks })).reduce(mergeOver, {});
  const prune = parts.flatMap((part) => (part.shape.prune ? [part.shape.prune] : [])).at(-1) ?? [];
  const apply = parts.flatMap((part) => part.shape.apply ?? []).at(-1);
  return {
    request: {
      settings,
      ...blocks,
      state: written ?? 'unmanaged',
      prune: prune.filter((path) => path !== PORT_FORWARDS),
      wishes: [...new Set(profiles.flatMap((part) => leaves(part.settings).map(([path]) => path)))].filter(
        (path) => path !== 'version',
      ),
    },
    secrets: Object.fromEntries(parts.flatMap((part) => Object.entries(part.secrets))),
    ...(allLocked ? { locked: allLocked } : {}),
    idleLocks: () => (allLocked ? locksWithoutValue(parts, allLocked, settings) : []),
    portForwards: parts.flatMap((part) => (part.shape.portForwards ? [part.shape.portForwards] : [])).at(-1) ?? [],
    prunePortForwards: prune.includes(PORT_FORWARDS),
    watch: {
      heal: parts.flatMap((part) => part.shape.watch?.heal ?? []).at(-1) ?? 'report',
      fields: Object.assign({}, ...parts.map((part) => part.shape.watch?.fields ?? {})),
    },
    ...(apply ? { maintenance: apply } : {}),
    metadata: Object.fromEntries(parts.flatMap((part) => Object.entries(part.shape.metadata))),
    files: parts.map((part) => fileOf(part.source)),
    author: (changes) => authorOf(parts, changes),
    locate: locator(parts),
  };
}

/** Characters of a profile's name that the history keeps. */
const MOST_NAME = 256;

async function authorOf(parts: readonly DocumentPart[], changes: readonly { path: string; key?: string }[]) {
  const { createHash } = await import('node:crypto');
  const profile = parts.flatMap((part) => part.shape.metadata.name ?? []).at(-1);
  const files = parts.map(({ source }) => ({
    path: fileOf(source),
    sha256: createHash('sha256').update(source.bytes).digest('hex'),
  }));
  const sources = changes.flatMap(({ path, key }) => {
    const found = placeFor(parts, [...path.split('.'), ...(key === undefined ? [] : [key])], 'key');
    if (!found) return [];
    const { document, place } = found;
    return [{ path, ...defined({ key }), file: fileOf(document.source), line: place.line }];
  });
  return { ...(profile === undefined ? {} : { profile: profile.slice(0, MOST_NAME) }), files, sources };
}

function factsOf({ source, shape }: DocumentPart): DocumentFacts {
  const version = shape.settings?.version;
  return { file: source.label, form: shape.form, ...(typeof version === 'number' ? { version } : {}) };
}

function fileOf(source: Source): string {
  return source.path ?? '-';
}

/** The host for which settings are validated. */
interface HostFacts {
  platform: Platform;
  /** Architecture in the form of `process.arch`. */
  arch: string;
  osRelease?: string;
  /** Product version of macOS. */
  osVersion?: string;
}

/** A document, read and checked on its own. */
export interface DocumentPart {
  source: Source;
  parsed: ParsedDocument;
  shape: Shape;
  /** Settings as written, at their own version, with secrets resolved. */
  written: JsonObject;
  /** Settings at the newest version, canonical, with secrets resolved. */
  settings: JsonObject;
  /** Original paths of settings that the migration moved, by dotted path. */
  origins: ReadonlyMap<string, string>;
  secrets: Record<string, SecretOrigin>;
  findings: Finding[];
  warnings: string[];
}

/** Parses one document of either form, resolves its secrets and checks its settings strictly. */
export async function readPart(source: Source, context: HostFacts & SecretsContext): Promise<DocumentPart> {
  const parsed = parseSource(source);
  const findings: Finding[] = [...parsed.findings];
  const report = reporter(parsed, findings);
  const shape = readShape(parsed, report);
  const part: DocumentPart = {
    source,
    parsed,
    shape,
    written: {},
    settings: {},
    origins: new Map(),
    secrets: {},
    findings,
    warnings: [],
  };
  if (!shape.settings) return part;
  const at = shape.settingsPointer;
  const resolved = await resolveSecrets(shape.settings, at, source, context, report);
  const checked = await checkSettings({ document: parsed, at, settings: resolved.settings }, context);
  // Left to the plan, which knows the system.
  const uncertain = checked.findings.filter(({ code }) => dependsOnSystem(code));
  const wrong = checked.findings.filter((finding) => !uncertain.includes(finding));
  return {
    ...part,
    written: resolved.settings,
    settings: checked.settings,
    origins: checked.origins,
    secrets: resolved.origins,
    findings: [...findings, ...wrong.map((finding) => withProfileHint(finding, shape))],
    warnings: [...resolved.warnings, ...uncertain.map(warning)],
  };
}

/** Adds to a finding for a part of a profile in bare settings that `apiVersion` and `kind` are missing. */
function withProfileHint({ code, ...finding }: CheckFinding, { form }: Shape): Finding {
  const key = finding.pointer.slice(1);
  if (code !== 'unknown' || form === 'profile' || !PROFILE_KEYS.includes(key)) return finding;
  const expected = `a profile: apiVersion: ${API_VERSION} and kind: ${KIND} at the top, and the settings below settings:`;
  return { ...finding, message: `"${key}" is not a setting but a part of a profile`, expected };
}

function warning({ code: _, ...finding }: CheckFinding): string {
  return formatFinding({
    ...finding,
    message: `${finding.message}. This applies unless the live settings differ from the defaults.`,
  });
}

/**
 * Merges a later partial settings object over an earlier one: field by field, maps key by key, lists as a whole. A `null`
 * stays, because it removes an entry. Neither argument is changed.
 */
export function mergeOver(earlier: JsonObject, later: JsonObject): JsonObject {
  const result: JsonObject = { ...earlier };
  for (const [key, value] of Object.entries(later)) {
    const below = result[key];
    result[key] = isObject(value) && isObject(below) ? mergeOver(below, value) : value;
  }
  return result;
}

/** A place in one of the documents, counted from 1. */
interface Place {
  file: string;
  line: number;
  column: number;
  /** JSON pointer (RFC 6901) in that document. */
  pointer: string;
}

/**
 * Returns the position of the key or value of a setting (the names of its path, and the key of an entry), `state`, a block or `portForwards` in the
 * documents; undefined if no document mentions it.
 */
export type Locate = (names: readonly string[], part: 'key' | 'value') => Place | undefined;

/** Members of a profile beside the settings that can appear in a plan. */
const AROUND = ['state', ...BLOCK_NAMES, 'portForwards', 'watch', 'apply'];

function locator(parts: readonly DocumentPart[]): Locate {
  return (names, part) => placeFor(parts, names, part)?.place;
}

/** Finds the position of a value. Later documents win, as their values do. Without a position, that of `prune` or of the nearest parent counts. */
function placeFor(parts: readonly DocumentPart[], names: readonly string[], part: 'key' | 'value') {
  const latestFirst = [...parts].reverse();
  for (let length = names.length; length > 0; length -= 1) {
    const here = names.slice(0, length);
    for (const document of latestFirst) {
      // An entry that no document lists is removed because of `prune`, if that names its map.
      const place = (length < names.length && markPruned(document, here)) || placeIn(document, here, part);
      if (place) return { document, place };
    }
  }
  return undefined;
}

function placeIn(
  { parsed, shape, origins }: DocumentPart,
  names: readonly string[],
  part: 'key' | 'value',
): Place | undefined {
  const around = AROUND.includes(names[0] ?? '');
  if (around && shape.form !== 'profile') return undefined;
  const pointer = around
    ? pointerTo(inList(shape, names))
    : `${shape.settingsPointer}${pointerTo(namesBefore(origins, names))}`;
  const position = parsed.position(pointer, part);
  return position && { file: parsed.file, ...position, pointer };
}

/** Returns the names with a forward's index in the list of the document: a plan names a forward by its key. */
function inList({ portForwards = [] }: Shape, names: readonly string[]): readonly string[] {
  const [list = '', name, ...more] = names;
  if (list !== PORT_FORWARDS || name === undefined) return names;
  const index = portForwards.findIndex(
    ({ namespace, service, k8sPort }) => name === `${namespace}/${service}:${k8sPort}`,
  );
  return [list, index === -1 ? name : String(index), ...more];
}

/** Returns the position in `prune` that makes a map exclusive. */
function markPruned({ parsed, shape }: DocumentPart, names: readonly string[]): Place | undefined {
  const index = shape.prune?.indexOf(names.join('.')) ?? -1;
  const pointer = `/prune/${index}`;
  const position = index === -1 ? undefined : parsed.position(pointer);
  return position && { file: parsed.file, ...position, pointer };
}
