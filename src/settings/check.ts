import { defined, isObject, type JsonObject } from '../json.ts';
import { canonicalizeTexts } from './canonical.ts';
import { defaultSettings } from './defaults.ts';
import type { Platform } from './field.ts';
import { explain, type Finding, type IssueCode, wrongValue } from './issue.ts';
import { knownSettings, pointerNames, pointerTo, valueAt } from './leaf-paths.ts';
import { withoutRemovals } from './merge.ts';
import { migrateWithOrigins, namesBefore, versionProblem } from './migrate.ts';
import type { ShapeFinding } from './older-shapes.ts';
import { locateInDocument, type ParsedDocument } from './parse.ts';
import { pastClause } from './past.ts';
import { SCHEMA_VERSION } from './settings.gen.ts';
import { unknownKeys } from './unknown-keys.ts';
import { validate } from './validate.ts';

/** The target system of a strict check. */
export interface CheckContext {
  platform: Platform;
  /** `process.arch`. */
  arch: string;
  osRelease?: string;
  /** Product version of macOS. */
  osVersion?: string;
}

/** Settings in a document, as written. */
export interface WrittenSettings {
  document: ParsedDocument;
  /** Pointer of the settings in the document: `''` or `/settings`. */
  at: string;
  /** The settings, with references to secrets resolved. */
  settings: JsonObject;
}

/**
 * A finding with its kind: `version` concerns the settings as a whole; `shape` and `newer` an older version's shape.
 * `platform`, `conflict` and `kubernetes-version` depend on the system and on settings outside of the document; the
 * others do not.
 */
export interface CheckFinding extends Finding {
  code: IssueCode | 'unknown' | 'shape' | 'newer';
}

const SYSTEM_DEPENDENT_CODES: readonly CheckFinding['code'][] = ['conflict', 'platform', 'kubernetes-version'];

/** True if a finding depends on the system, on settings outside of the document, or on available versions. */
export function dependsOnSystem(code: CheckFinding['code']): boolean {
  return SYSTEM_DEPENDENT_CODES.includes(code);
}

/** The findings of a strict check, and the resulting settings. */
export interface CheckedSettings {
  findings: CheckFinding[];
  /** At the newest version, in stored form, known members only. Empty without a readable version. */
  settings: JsonObject;
  /** The original paths of moved values, by dotted path. */
  origins: ReadonlyMap<string, string>;
}

/**
 * Checks the settings of a document and reports every problem with its position, the expected value and a suggestion.
 * Stricter than the API: unknown names are errors, and strings are not converted to numbers or booleans. Settings of an
 * older version are validated against that version's shape and then migrated. Findings of the document itself
 * (`document.findings`) are not repeated.
 */
export async function checkSettings(written: WrittenSettings, context: CheckContext): Promise<CheckedSettings> {
  const { document, at, settings } = written;
  const place = ({ part, ...finding }: Found): CheckFinding =>
    locateInDocument(document, { ...finding, pointer: `${at}${finding.pointer}` }, part);
  const version = versionFinding(written);
  if (version) return { findings: [place(version)], settings: {}, origins: new Map() };
  const older = settings.version !== SCHEMA_VERSION;
  const memberFindings = older ? await olderFindings(written) : unknownFindings(settings);
  const migrated = migrateWithOrigins(settings, { platform: context.platform, partial: true });
  const canonical = canonicalizeTexts(migrated.document);
  const values = valueFindings(canonical, written, migrated.origins, context);
  // An invalid value of an older version is reported once, not again after the migration.
  const known = new Set(memberFindings.map(({ pointer }) => pointer));
  const unread = unreadValues(document);
  return {
    findings: [
      ...memberFindings.filter(({ code, pointer }) => code !== 'shape' || !unread.has(`${at}${pointer}`)),
      ...values.filter(({ pointer }) => !known.has(pointer) && !unread.has(`${at}${pointer}`)),
    ].map(place),
    settings: older ? knownSettings(canonical) : canonical,
    origins: migrated.origins,
  };
}

/**
 * Returns the pointers of values that JSON cannot represent, and of their parents. They are `null` now, and a finding
 * about that `null` would report the same mistake twice.
 */
function unreadValues({ findings, value }: ParsedDocument): ReadonlySet<string> {
  const unread = new Set<string>();
  for (const { pointer } of findings) {
    if (valueAt(value ?? null, pointer) !== null) continue;
    for (let at = pointer; at !== ''; at = at.slice(0, at.lastIndexOf('/'))) unread.add(at);
  }
  return unread;
}

/** A finding below the settings, located at the key or the value. */
type Found = CheckFinding & { part?: 'key' | 'value' };

function versionFinding({ settings, document, at }: WrittenSettings): Found | undefined {
  const { version } = settings;
  if (versionProblem(version) === undefined) return undefined;
  const code = 'version';
  if (version === undefined) {
    const message = 'version is missing';
    return { code, pointer: '', message, expected: `version: ${SCHEMA_VERSION}` };
  }
  const expected = `an integer from 1 to ${SCHEMA_VERSION}`;
  const written = document.sourceText(`${at}/version`) ?? JSON.stringify(version);
  if (written.includes('\n') || isObject(version) || Array.isArray(version)) {
    return { code, pointer: '/version', message: 'version is not a number', expected };
  }
  const newer = typeof version === 'number' && version > SCHEMA_VERSION && Number.isInteger(version);
  const message = newer
    ? `${written} is newer than ${SCHEMA_VERSION}, the newest settings version this release knows`
    : `${written} is not a settings version`;
  return { code, pointer: '/version', message, expected };
}

/** The shapes are large and most documents have the newest version, so they are loaded on demand. */
async function olderFindings(written: WrittenSettings): Promise<Found[]> {
  const { validateShape } = await import('./older-shapes.ts');
  const version = Number(written.settings.version);
  return validateShape(written.settings, version).map((finding) => olderFinding(finding, version, written));
}

function olderFinding(finding: ShapeFinding, version: number, { document, at }: WrittenSettings): Found {
  const { code, pointer } = finding;
  const path = pointerNames(pointer).join('.');
  if (code === 'unknown') return unknownFinding(pointer, path, finding.suggestion);
  if (code === 'shape') return { code, pointer, ...wrongValue(path, document.sourceText(`${at}${pointer}`), finding) };
  const message = `"${path}" needs settings version ${finding.since}; the document says ${version}`;
  return { code, part: 'key', pointer, message };
}

function unknownFindings(settings: JsonObject): Found[] {
  // No limit: unlike a request body, a document's size was checked before parsing.
  return unknownKeys(settings, Number.POSITIVE_INFINITY).map(({ pointer, path, suggestion }) =>
    unknownFinding(pointer, path, suggestion, pastClause(path)),
  );
}

function unknownFinding(pointer: string, path: string, suggestion: string | undefined, past = ''): Found {
  const message = `unknown setting "${path}"${past}`;
  return { code: 'unknown', part: 'key', pointer, message, ...defined({ suggestion }) };
}

function valueFindings(
  settings: JsonObject,
  { document, at }: WrittenSettings,
  origins: ReadonlyMap<string, string>,
  context: CheckContext,
): Found[] {
  // Without current settings nothing counts as a decrease, and any valid cluster version may be available.
  return validate(withoutRemovals(settings), { ...context, current: defaultSettings(context), valuesFirst: true })
    .filter(({ code }) => code !== 'decrease')
    .map((issue) => {
      const pointer = pointerTo(namesBefore(origins, pointerNames(issue.pointer)));
      return { code: issue.code, pointer, ...explain(issue, document.sourceText(`${at}${pointer}`)) };
    });
}
