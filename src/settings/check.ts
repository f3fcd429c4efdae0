import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import { canonicaliseTexts } from './canonical.ts';
import { defaultSettings } from './defaults.ts';
import { asText, explain, wrongValue } from './explanation.ts';
import type { Platform } from './field.ts';
import { FIELDS } from './fields.gen.ts';
import type { Finding } from './finding.ts';
import type { Issue, IssueCode, ValidateContext } from './issue.ts';
import { leafAt, pointerNames, pointerOf, setLeaf } from './leaf-paths.ts';
import { migrateWithOrigins, originOf, versionProblem } from './migrate.ts';
import { validateShape } from './older-shapes.ts';
import { copyOfObject, own } from './own.ts';
import type { ParsedDocument } from './parse.ts';
import { positioned } from './position.ts';
import { SCHEMA_VERSION, type Settings } from './settings.gen.ts';
import { unknownKeys } from './unknown-keys.ts';
import { validate } from './validate.ts';

/** What a strict check knows of the system that the settings are for. */
export interface CheckContext {
  platform: Platform;
  /** `process.arch`. */
  arch: string;
  osRelease?: string;
  /** Product version of macOS. */
  osVersion?: string;
  /** The settings that would be changed; without them the defaults, and no value can be a decrease. */
  current?: Settings;
  kubernetesVersions?: readonly string[];
  /** The document is a locked profile. */
  locked?: boolean;
  /** `{ fromEnv: NAME }` and `{ fromFile: PATH }` may stand for a secret. */
  references?: boolean;
}

/**
 * A finding with what kind of mistake it is: `document` and `version` concern the settings as a whole, `shape` the shape of
 * an older version. `platform`, `conflict`, `decrease` and `kubernetes-version` depend on the system, all others do not.
 */
export interface CheckFinding extends Finding {
  code: IssueCode | 'document' | 'version' | 'unknown' | 'shape';
}

/**
 * Everything that is wrong with the settings at `pointerPrefix` (`''` or `/settings`) of a document, each with its place,
 * what was expected and what was probably meant. Stricter than the wire: unknown names are wrong, and no text stands for a
 * number or a boolean. Findings of the document itself (`document.findings`) are not repeated.
 */
export function checkSettings(document: ParsedDocument, pointerPrefix: string, context: CheckContext): CheckFinding[] {
  // What kept the document from being read is among its own findings.
  if (document.value === undefined) return [];
  return found(document, pointerPrefix, context).map(({ part, ...finding }) =>
    positioned(document, { ...finding, pointer: `${pointerPrefix}${finding.pointer}` }, part),
  );
}

/** A finding below the prefix, and whether its place is the key or the value there. */
type Found = CheckFinding & { part?: 'key' | 'value' };

function found(document: ParsedDocument, prefix: string, context: CheckContext): Found[] {
  const value = valueAt(document.value, prefix);
  if (!isObject(value)) {
    const expected = 'an object with "version" and settings';
    return [{ code: 'document', pointer: '', message: 'the settings are no object', expected }];
  }
  const settings = context.references ? withoutReferences(value) : value;
  const version = versionFinding(settings, document, prefix);
  if (version) return [version];
  const mistaken =
    settings.version === SCHEMA_VERSION ? unknownFindings(settings) : olderFindings(settings, document, prefix);
  // In a document that has not the shape of its version nothing may be where a migration would look for it.
  if (mistaken.some(({ code }) => code === 'shape')) return mistaken;
  return [...mistaken, ...valueFindings(settings, document, prefix, context)];
}

function versionFinding(settings: JsonObject, document: ParsedDocument, prefix: string): Found | undefined {
  const { version } = settings;
  if (versionProblem(version) === undefined) return undefined;
  const code = 'version';
  const expected = `a version from 1 to ${SCHEMA_VERSION}`;
  if (version === undefined) {
    return { code, pointer: '', message: 'the settings have no "version"', expected: `"version: ${SCHEMA_VERSION}"` };
  }
  const written = document.sourceText(`${prefix}/version`) ?? JSON.stringify(version);
  if (written.includes('\n') || isObject(version) || Array.isArray(version)) {
    return { code, pointer: '/version', message: '"version" is no number', expected };
  }
  const newer = typeof version === 'number' && version > SCHEMA_VERSION;
  const message = newer
    ? `settings version ${written} is newer than the newest one known here`
    : `${written} is no settings version`;
  return { code, pointer: '/version', message, expected };
}

function olderFindings(settings: JsonObject, document: ParsedDocument, prefix: string): Found[] {
  return validateShape(settings, Number(settings.version)).map(({ keyword, ...finding }) => {
    if (keyword === 'additionalProperties') return { ...finding, code: 'shape', part: 'key' };
    const path = pointerNames(finding.pointer).join('.');
    const written = document.sourceText(`${prefix}${finding.pointer}`);
    const expected = finding.expected === 'a text' ? { expected: asText(path, written) } : {};
    return { ...finding, code: 'shape', message: wrongValue(path, written), ...expected };
  });
}

function unknownFindings(settings: JsonObject): Found[] {
  return unknownKeys(settings).map(({ pointer, path, suggestion }) => ({
    code: 'unknown',
    part: 'key',
    pointer,
    message: `unknown setting "${path}"`,
    ...(suggestion === undefined ? {} : { suggestion: `"${suggestion}"` }),
  }));
}

function valueFindings(settings: JsonObject, document: ParsedDocument, prefix: string, context: CheckContext): Found[] {
  const { platform, locked = false, current } = context;
  const { document: payload, origins } = migrateWithOrigins(settings, { platform, locked, partial: true });
  const issues = validate(canonicaliseTexts(withoutRemovals(payload)), {
    ...hostOf(context),
    current: current ?? defaultSettings(context),
  });
  return issues
    .filter(({ code }) => current !== undefined || code !== 'decrease')
    .map((issue) => {
      const pointer = pointerBefore(issue, origins);
      return { code: issue.code, pointer, ...explain(issue, document.sourceText(`${prefix}${pointer}`)) };
    });
}

function hostOf({ platform, arch, osVersion, kubernetesVersions }: CheckContext): Omit<ValidateContext, 'current'> {
  return {
    platform,
    arch,
    ...(osVersion === undefined ? {} : { osVersion }),
    ...(kubernetesVersions === undefined ? {} : { kubernetesVersions }),
  };
}

/** Where the value of an issue stood before the document was migrated. */
function pointerBefore({ path, pointer }: Issue, origins: ReadonlyMap<string, string>): string {
  return pointerOf(originOf(origins, path)) + pointer.slice(pointerOf(path).length);
}

/** Secrets that are named instead of written; a text takes their place for the rest of the check. */
function withoutReferences(settings: JsonObject): JsonObject {
  const copy = copyOfObject(settings);
  for (const { path, sensitive } of FIELDS) {
    const value = sensitive ? leafAt(copy, path) : undefined;
    if (isReference(value)) setLeaf(copy, path, 'named elsewhere');
  }
  return copy;
}

/** In a document `null` removes an entry of every map; a call cannot remove one of a map of texts. */
function withoutRemovals(payload: JsonObject): JsonObject {
  const copy = copyOfObject(payload);
  for (const { path, type } of FIELDS) {
    const map = type === 'map<string,string>' ? leafAt(copy, path) : undefined;
    if (isObject(map))
      setLeaf(copy, path, Object.fromEntries(Object.entries(map).filter(([, value]) => value !== null)));
  }
  return copy;
}

function isReference(value: JsonValue | undefined): boolean {
  if (!isObject(value) || Object.keys(value).length !== 1) return false;
  const name = value.fromEnv ?? value.fromFile;
  return typeof name === 'string' && name !== '';
}

function valueAt(value: JsonValue | undefined, pointer: string): JsonValue | undefined {
  let found = value;
  for (const name of pointerNames(pointer)) found = isObject(found) ? own(found, name) : undefined;
  return found;
}
