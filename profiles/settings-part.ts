import type { JsonObject, JsonValue } from '../src/json.ts';
import { canonicalise } from '../src/settings/canonical.ts';
import { defaultSettings } from '../src/settings/defaults.ts';
import type { Platform } from '../src/settings/field.ts';
import { FIELDS } from '../src/settings/fields.gen.ts';
import { fieldAt, nearest } from '../src/settings/fields.ts';
import type { Finding } from '../src/settings/finding.ts';
import { formatFinding } from '../src/settings/finding.ts';
import { leafAt, pointerNames, pointerTo } from '../src/settings/leaf-paths.ts';
import { type Migration, migrateWithOrigins, originOf, versionProblem } from '../src/settings/migrate.ts';
import { type ParsedDocument, parseDocument } from '../src/settings/parse.ts';
import { SCHEMA_VERSION } from '../src/settings/settings.gen.ts';
import { type Issue, type IssueCode, unknownKeys, validate } from '../src/settings/validate.ts';
import { describe, type Report, reporter } from './report.ts';
import { resolveSecrets, type SecretOrigin, type SecretsContext } from './secrets.ts';
import { readShape, type Shape } from './shape.ts';
import { oversized, type Source } from './source.ts';

/** The host that settings are judged for. `osVersion` is the product version of macOS. */
export interface HostFacts {
  platform: Platform;
  arch: string;
  osVersion?: string;
}

/** One document, read and checked on its own. */
export interface Part {
  source: Source;
  shape: Shape;
  /** At the newest version, canonical, secrets resolved. */
  settings: JsonObject;
  secrets: Record<string, SecretOrigin>;
  findings: Finding[];
  warnings: string[];
}

/** What is wrong whatever runs. Everything else depends on the live side, which the plan knows. */
const ALWAYS_WRONG: readonly IssueCode[] = ['section', 'type', 'range', 'enum', 'format', 'duplicates'];

/** Reads one document: parse, both forms, secrets, version, migration, canonical values, types and ranges. */
export async function readPart(source: Source, context: HostFacts & SecretsContext): Promise<Part> {
  const parsed = oversized(source) ?? parseDocument(source.bytes, source.label);
  const findings: Finding[] = [...parsed.findings];
  const report = reporter(parsed, findings);
  const shape = readShape(parsed, report);
  const part: Part = { source, shape, settings: {}, secrets: {}, findings, warnings: [] };
  if (!shape.settings) return part;
  const resolved = await resolveSecrets(shape.settings, shape.settingsPointer, source, context, report);
  part.secrets = resolved.origins;
  part.warnings.push(...resolved.warnings);
  if (!checkVersion(shape.settings.version, shape.settingsPointer, report)) return part;
  const migration = migrateWithOrigins(resolved.settings, { platform: context.platform, partial: true });
  part.settings = canonicalise(migration.document);
  const issues = validate(part.settings, { current: defaultSettings(context), ...context });
  const place = { parsed, migration, at: shape.settingsPointer };
  reportCoerced(migration.document, part.settings, place, report);
  for (const { pointer, path, suggestion } of unknownKeys(part.settings)) {
    const from = pointerInText(pointer, path, place);
    report(from, `unknown setting ${JSON.stringify(path)}`, {
      part: 'key',
      ...(suggestion === undefined ? {} : { suggestion }),
    });
  }
  for (const issue of issues) if (ALWAYS_WRONG.includes(issue.code)) reportIssue(issue, place, report);
  part.warnings.push(...conflicts(issues, place));
  return part;
}

interface Place {
  parsed: ParsedDocument;
  migration: Migration;
  at: string;
}

function checkVersion(version: JsonValue | undefined, at: string, report: Report): boolean {
  const expected = `an integer from 1 to ${SCHEMA_VERSION}`;
  if (version === undefined) {
    report(at, 'version is missing: it says which shape the settings have', { expected: `version: ${SCHEMA_VERSION}` });
  } else if (versionProblem(version) !== undefined) {
    const newer = typeof version === 'number' && Number.isInteger(version) && version > SCHEMA_VERSION;
    const why = newer ? `is newer than ${SCHEMA_VERSION}, the newest this release knows` : 'is not a settings version';
    report(`${at}/version`, `${describe(version)} ${why}`, { expected });
  } else {
    return true;
  }
  return false;
}

/** The API takes `"true"` and `"6443"`; in a document a person wrote them, and the quotes are a mistake. */
function reportCoerced(written: JsonObject, canonical: JsonObject, place: Place, report: Report): void {
  for (const { path, type } of FIELDS) {
    const before = leafAt(written, path);
    const after = leafAt(canonical, path);
    if (path === 'version' || typeof before !== 'string' || typeof after === 'string' || after === undefined) continue;
    report(pointerInText(pointerTo(path.split('.')), path, place), `${path} is the text ${describe(before)}`, {
      expected: type === 'boolean' ? 'true or false' : 'an integer',
      suggestion: JSON.stringify(after),
    });
  }
}

function reportIssue(issue: Issue, place: Place, report: Report): void {
  const pointer = pointerInText(issue.pointer, issue.path, place);
  const field = fieldAt(issue.path);
  const written = leafAt(place.migration.document, issue.path);
  let suggestion: string | undefined;
  if (field?.type === 'string' && typeof written === 'number') {
    // The parser has made 1.3 of 1.30; the text still says what was meant.
    suggestion = JSON.stringify(place.parsed.sourceText(pointer) ?? String(written));
  } else if (field?.enum && typeof written === 'string') {
    suggestion = nearest(written, field.enum);
  }
  report(pointer, issue.message, {
    ...(issue.expected === undefined ? {} : { expected: issue.expected }),
    ...(suggestion === undefined ? {} : { suggestion }),
  });
}

/** Whether settings go together depends on those that the document leaves alone, so the plan has the last word. */
function conflicts(issues: readonly Issue[], place: Place): string[] {
  return issues
    .filter((issue) => issue.code === 'conflict')
    .map((issue) => {
      const findings: Finding[] = [];
      const message = `${issue.message} This holds unless the live settings differ from the defaults.`;
      reporter(place.parsed, findings)(pointerInText(issue.pointer, issue.path, place), message);
      return findings.map(formatFinding).join('');
    });
}

/** Where a place in the migrated settings was written. */
function pointerInText(pointer: string, path: string, { migration, at }: Place): string {
  const entry = pointerNames(pointer).slice(path.split('.').length);
  return at + pointerTo([...originOf(migration.origins, path).split('.'), ...entry]);
}
