import { RdError } from '../../src/errors.ts';
import { isObject, type JsonObject } from '../../src/json.ts';
import { type CheckFinding, checkSettings, dependsOnSystem } from '../../src/settings/check.ts';
import type { Platform } from '../../src/settings/field.ts';
import { type Finding, formatFinding } from '../../src/settings/issue.ts';
import { leaves, pointerTo } from '../../src/settings/leaf-paths.ts';
import { namesBefore } from '../../src/settings/migrate.ts';
import { type ParsedDocument, parseDocument } from '../../src/settings/parse.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
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
  oversized,
  readSource,
  resolveSecrets,
  type SecretOrigin,
  type SecretsContext,
  type Source,
  type SourceContext,
} from './source.ts';
import { idleLock, idleLocks } from './written-settings.ts';

/** What a service is asked for: settings at the newest version, canonical, secrets resolved. */
interface DesiredRequest {
  settings: JsonObject;
  state: DesiredState;
  prune: string[];
  /** Paths that documents of kind Profile mention; bare settings ask only for what differs. */
  wishes: string[];
}

/** One or several documents laid over each other. */
export interface DesiredDocument {
  request: DesiredRequest;
  /** Where each secret came from, by setting path. */
  secrets: Record<string, SecretOrigin>;
  /** Which fields an exported policy locks; absent when no document says so. */
  locked?: JsonObject;
  /** Locks without a value in any document: no deployment profile can be made of them. Looked for when it is called. */
  idleLocks(): Finding[];
  portForwards: PortForward[];
  /** Forwards that are not listed are removed. */
  prunePortForwards: boolean;
  metadata: { name?: string; description?: string };
  /** Absolute path of each document in order; `-` for standard input. */
  files: string[];
  locate: Locate;
}

/** What one document is. */
export interface DocumentFacts {
  /** As given, or `<stdin>`. */
  file: string;
  form: 'settings' | 'profile';
  /** Version of its settings, where it has one. */
  version?: number;
}

/** `desired` is there when nothing is wrong. */
export interface LoadedDocument {
  desired?: DesiredDocument;
  documents: DocumentFacts[];
  /** Everything that is wrong, document by document in the order of the text. */
  findings: Finding[];
  warnings: string[];
}

export type LoadContext = SourceContext & SecretsContext & HostFacts;

/**
 * Reads documents of both forms and lays later ones over earlier ones: settings field by field, maps key by key, lists as a
 * whole. Throws `ERR_IO` for a source that cannot be read and `ERR_USAGE` when standard input is named twice; everything that
 * is wrong inside a document is a finding.
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

/** At the last document that says so. */
function idleIn(parts: readonly DocumentPart[], locked: JsonObject, settings: JsonObject): Finding[] {
  const paths = leaves(settings).map(([path]) => path);
  return idleLocks(locked, paths).map((path) => {
    const pointer = `/locked${pointerTo(path.split('.'))}`;
    const said = parts.findLast(({ parsed }) => parsed.position(pointer, 'key') !== undefined) ?? parts.at(-1);
    if (!said) throw new Error('locks without a document');
    return idleLock(path, said.parsed);
  });
}

function combine(parts: readonly DocumentPart[]): DesiredDocument {
  const profiles = parts.filter((part) => part.shape.form === 'profile');
  const written = parts.flatMap((part) => part.shape.state ?? []).at(-1);
  const locked = parts.flatMap((part) => (part.shape.locked ? [part.shape.locked] : []));
  const allLocked = locked.length === 0 ? undefined : locked.reduce((earlier, later) => layOver(earlier, later));
  const settings = {
    ...parts.map((part) => part.settings).reduce((earlier, later) => layOver(earlier, later), {}),
    version: SCHEMA_VERSION,
  };
  const prune = parts.flatMap((part) => (part.shape.prune ? [part.shape.prune] : [])).at(-1) ?? [];
  return {
    request: {
      settings,
      state: written ?? 'unmanaged',
      prune: prune.filter((path) => path !== PORT_FORWARDS),
      wishes: [...new Set(profiles.flatMap((part) => leaves(part.settings).map(([path]) => path)))].filter(
        (path) => path !== 'version',
      ),
    },
    secrets: Object.fromEntries(parts.flatMap((part) => Object.entries(part.secrets))),
    ...(allLocked ? { locked: allLocked } : {}),
    idleLocks: () => (allLocked ? idleIn(parts, allLocked, settings) : []),
    portForwards: parts.flatMap((part) => (part.shape.portForwards ? [part.shape.portForwards] : [])).at(-1) ?? [],
    prunePortForwards: prune.includes(PORT_FORWARDS),
    metadata: Object.fromEntries(parts.flatMap((part) => Object.entries(part.shape.metadata))),
    files: parts.map((part) => fileOf(part.source)),
    locate: locator(parts),
  };
}

function factsOf({ source, shape }: DocumentPart): DocumentFacts {
  const version = shape.settings?.version;
  return { file: source.label, form: shape.form, ...(typeof version === 'number' ? { version } : {}) };
}

function fileOf(source: Source): string {
  return source.path ?? '-';
}

/** The host that settings are judged for. */
interface HostFacts {
  platform: Platform;
  /** `process.arch`. */
  arch: string;
  osRelease?: string;
  /** Product version of macOS. */
  osVersion?: string;
}

/** One document, read and checked on its own. */
export interface DocumentPart {
  source: Source;
  parsed: ParsedDocument;
  shape: Shape;
  /** At their own version as they were written, secrets resolved. */
  written: JsonObject;
  /** At the newest version, canonical, secrets resolved. */
  settings: JsonObject;
  /** Where settings that a migration moved were written, by dotted path. */
  origins: ReadonlyMap<string, string>;
  secrets: Record<string, SecretOrigin>;
  findings: Finding[];
  warnings: string[];
}

/** Reads one document: parse, both forms, secrets, and the strict check of the settings. */
export async function readPart(source: Source, context: HostFacts & SecretsContext): Promise<DocumentPart> {
  const parsed = oversized(source) ?? parseDocument(source.bytes, source.label);
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
  // The plan has the last word.
  const uncertain = checked.findings.filter(({ code }) => dependsOnSystem(code));
  const wrong = checked.findings.filter((finding) => !uncertain.includes(finding));
  return {
    ...part,
    written: resolved.settings,
    settings: checked.settings,
    origins: checked.origins,
    secrets: resolved.origins,
    findings: [...findings, ...wrong.map((finding) => explained(finding, shape))],
    warnings: [...resolved.warnings, ...uncertain.map(warning)],
  };
}

/** A part of a profile in a document that has only settings is a small step from what was meant. */
function explained({ code, ...finding }: CheckFinding, { form }: Shape): Finding {
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
 * Lays a later partial settings object over an earlier one: field by field, maps key by key, lists as a whole. A `null` stays,
 * because it says that an entry is to be removed. Neither argument is changed.
 */
export function layOver(earlier: JsonObject, later: JsonObject): JsonObject {
  const result: JsonObject = { ...earlier };
  for (const [key, value] of Object.entries(later)) {
    const below = result[key];
    result[key] = isObject(value) && isObject(below) ? layOver(below, value) : value;
  }
  return result;
}

/** A place in one of the documents, counted from 1. */
interface Place {
  file: string;
  line: number;
  column: number;
  /** RFC 6901, in that document. */
  pointer: string;
}

/**
 * Where the documents ask for something: of a setting (the names of its path, and the key of an entry) or of `state` and
 * `portForwards`, the key there or the value. `undefined` for what no document mentions. Nothing is looked up before it is
 * called.
 */
export type Locate = (names: readonly string[], part: 'key' | 'value') => Place | undefined;

/** Parts of a profile beside the settings that a plan can speak about. */
const AROUND = ['state', 'portForwards'];

/** Later documents win, so their places do. What `prune` asks for is there; else the nearest thing around counts. */
function locator(parts: readonly DocumentPart[]): Locate {
  const latestFirst = [...parts].reverse();
  return (names, part) => {
    for (let length = names.length; length > 0; length -= 1) {
      const here = names.slice(0, length);
      for (const document of latestFirst) {
        // An entry that no document lists goes because of `prune`, if that names its map.
        const place = (length < names.length && pruned(document, here)) || placeIn(document, here, part);
        if (place) return place;
      }
    }
    return undefined;
  };
}

function placeIn(
  { parsed, shape, origins }: DocumentPart,
  names: readonly string[],
  part: 'key' | 'value',
): Place | undefined {
  const around = AROUND.includes(names[0] ?? '');
  if (around && shape.form !== 'profile') return undefined;
  const pointer = around ? pointerTo(names) : `${shape.settingsPointer}${pointerTo(namesBefore(origins, names))}`;
  const position = parsed.position(pointer, part);
  return position && { file: parsed.file, ...position, pointer };
}

/** The line of `prune` that makes a map exclusive. */
function pruned({ parsed, shape }: DocumentPart, names: readonly string[]): Place | undefined {
  const index = shape.prune?.indexOf(names.join('.')) ?? -1;
  const pointer = `/prune/${index}`;
  const position = index === -1 ? undefined : parsed.position(pointer);
  return position && { file: parsed.file, ...position, pointer };
}
