import { RdError } from '../../src/errors.ts';
import { isObject, type JsonObject } from '../../src/json.ts';
import {
  type CheckContext,
  type CheckFinding,
  checkSettings,
  dependsOnSystem,
  type WrittenSettings,
} from '../../src/settings/check.ts';
import type { Platform } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { type Finding, formatFinding, formatFindings } from '../../src/settings/issue.ts';
import { pointerNames, pointerTo, setLeaf, valueAt } from '../../src/settings/leaf-paths.ts';
import { versionProblem } from '../../src/settings/migrate.ts';
import { locateInDocument, type ParsedDocument } from '../../src/settings/parse.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
import { looksLikeJson, SIZE_LIMIT } from '../../src/settings/source-text.ts';
import { entryPath, membersAt } from '../formats/tree.ts';
import { inTextOrder, reporter } from './report.ts';
import { readShape, type Shape } from './shape.ts';
import { parseSource, READ_AS_JSON, type Source } from './source.ts';
import {
  idleLock,
  idleLocks,
  isWithin,
  nullsIn,
  type WrittenSetting,
  without,
  withoutReferences,
  writtenSettings,
} from './written-settings.ts';

/** The checked input of a deployment profile. */
export interface DeploymentInput {
  /** Version of the settings as written. */
  version: number;
  settings: WrittenSetting[];
  /** Bare settings or a profile. */
  form: 'settings' | 'profile';
  /** `locked` of a profile; absent if it has none. */
  locked?: JsonObject;
  /** Omissions, one sentence each. */
  warnings: string[];
  /** Sentences about parts of the document that no deployment profile can express. */
  notes: string[];
  /** The text and the pointer of the settings, by which findings are located. */
  document: ParsedDocument;
  at: '' | '/settings';
}

/**
 * Reads a document of either form, JSON or YAML. Bare settings are read like the input of the compatible tool: no version means the newest, and
 * unknown names and `null` are left out with a warning. In a profile they are errors.
 * @param platform platform of the application that will read the profile.
 * @param consequence consequence of errors, which ends the sentence that counts them.
 * @param strict whether unknown names are errors even in bare settings.
 * @throws RdError `ERR_PROFILE_INVALID` with all problems and their positions; `error in json: …` for an unreadable document.
 */
export async function readDeploymentInput(
  source: Source,
  platform: Platform,
  { consequence = '; no profile was written', strict = false }: { consequence?: string; strict?: boolean } = {},
): Promise<DeploymentInput> {
  const document = readable(source);
  const findings: Finding[] = [];
  const { form, settings, settingsPointer, locked, ...around } = readShape(document, reporter(document, findings));
  if (!settings) throw invalid(document, findings, consequence);
  const lenient = form === 'settings';
  const { input, wrong } = await examine({ document, at: settingsPointer, settings, lenient, strict }, platform);
  findings.push(...wrong);
  // Older settings with errors are not migrated, so their present names are unknown.
  const named = wrong.length === 0 || input.version === SCHEMA_VERSION;
  if (locked && named) {
    const paths = input.settings.flatMap(({ today }) => today?.path ?? []);
    findings.push(...idleLocks(locked, paths).map((path) => idleLock(path, document)));
  }
  if (findings.length > 0) throw invalid(document, findings, consequence);
  if (form === 'settings') return input;
  const notes = [...input.notes, ...besideSettings(around)];
  if (!locked) notes.push('the profile has no locked map, so each part contains all settings.');
  return { ...input, notes, ...(locked ? { locked } : {}) };
}

/** Returns notes about the parts of a profile that no deployment profile can express. */
function besideSettings({ state, prune, blocks, portForwards }: Partial<Shape>): string[] {
  const present = Object.entries({ state, prune, ...blocks, portForwards }).filter(([, value]) => value !== undefined);
  if (present.length === 0) return [];
  const names = present.map(([name]) => name).join(' and ');
  return [`${names}: used by rdctl only, and not part of deployment profiles.`];
}

/**
 * Returns settings in force as the input of a deployment profile. Those of a version newer than ours are read with our names.
 * @throws RdError `ERR_PROFILE_INVALID` for invalid values.
 */
export async function settingsInForce(settings: JsonObject, platform: Platform): Promise<DeploymentInput> {
  const document: ParsedDocument = {
    file: 'the settings in force',
    value: settings,
    findings: [],
    position: () => undefined,
    sourceText: () => undefined,
  };
  const { version } = settings;
  if (typeof version !== 'number' || !Number.isInteger(version) || version <= SCHEMA_VERSION) {
    return validInput(await examine({ document, at: '', settings, lenient: true }, platform));
  }
  const examined = await examine(
    { document, at: '', settings: { ...settings, version: SCHEMA_VERSION }, lenient: true },
    platform,
  );
  const input = validInput(examined);
  const newer = `the settings have version ${version}; rdctl supports up to version ${SCHEMA_VERSION}, so newer settings were left out.`;
  return { ...input, version, warnings: [newer, ...input.warnings] };
}

interface ToExamine {
  document: ParsedDocument;
  at: DeploymentInput['at'];
  settings: JsonObject;
  /** Whether the document is bare settings. */
  lenient: boolean;
  /** Whether unknown names are errors even in bare settings. */
  strict?: boolean;
}

interface Examined {
  input: DeploymentInput;
  /** Problems. If there are any, `input` must not be used. */
  wrong: Finding[];
}

function validInput({ input, wrong }: Examined): DeploymentInput {
  if (wrong.length > 0) throw invalid(input.document, wrong, '; no profile was written');
  return input;
}

/** Checks all settings. Those that are newer than the version are checked as current ones, because they are read anyway. */
async function checkAll(written: WrittenSettings, platform: Platform): Promise<CheckFinding[]> {
  const context = targetContext(platform);
  const { findings } = await checkSettings(written, context);
  const newer = findings.filter(({ code }) => code === 'newer');
  if (newer.length === 0) return findings;
  const later: JsonObject = { version: SCHEMA_VERSION };
  for (const { pointer } of newer) {
    const below = pointer.slice(written.at.length);
    setLeaf(later, pointerNames(below).join('.'), valueAt(written.settings, below) ?? null);
  }
  return [...findings, ...(await checkSettings({ ...written, settings: later }, context)).findings];
}

/** Checks every setting alone; conflicts depend on the selection, which is checked later. */
async function examine(input: ToExamine, platform: Platform): Promise<Examined> {
  const { document, at, lenient, strict = false } = input;
  const settings =
    lenient && !Object.hasOwn(input.settings, 'version')
      ? { version: SCHEMA_VERSION, ...input.settings }
      : input.settings;
  const version = typeof settings.version === 'number' ? settings.version : 0;
  const members = versionProblem(settings.version) === undefined ? await membersAt(version) : [];
  const nulls = nullsIn(settings, members);
  const warnings: string[] = [];
  const findings: Finding[] = [];
  for (const names of lenient ? nulls.members : []) {
    warnings.push(`${names.join('.')} is null and was left out.`);
  }
  for (const { names, expected } of nulls.entries) {
    const entry = entryPath(names.slice(0, -1).join('.'), names.at(-1) ?? '');
    if (!lenient) warnings.push(`${entry} is null and was left out: a deployment profile cannot remove an entry.`);
    else {
      const message = `${entry} cannot be null`;
      findings.push(locateInDocument(document, { pointer: `${at}${pointerTo(names)}`, message, expected }));
    }
  }
  const known = without(settings, [...(lenient ? nulls.members : []), ...nulls.entries.map(({ names }) => names)]);
  const plain = withoutReferences(known);
  const checked = await checkAll({ document, at, settings: plain }, platform);
  const unknown: string[][] = [];
  for (const { code, ...finding } of checked) {
    const names = pointerNames(finding.pointer.slice(at.length));
    // Skipped, because they depend on the selected settings, which `profiles/check` checks.
    if (dependsOnSystem(code)) continue;
    if (!lenient || (code === 'unknown' ? strict : code !== 'newer'))
      findings.push(lenient ? withoutRemoval(finding) : finding);
    else if (code === 'newer') warnings.push(`${finding.message}; it is used anyway.`);
    else {
      unknown.push(names);
      warnings.push(unknownName(names, finding.suggestion));
    }
  }
  return {
    input: {
      version,
      settings:
        findings.length === 0 || version === SCHEMA_VERSION
          ? writtenSettings(without(known, unknown), members, platform)
          : [],
      form: lenient ? 'settings' : 'profile',
      warnings,
      notes: [],
      document,
      at,
    },
    wrong: findings,
  };
}

function readable(source: Source): ParsedDocument {
  const document = parseSource(source, READ_AS_JSON.input);
  const [first, ...more] = document.findings;
  if (first) {
    throw new RdError('ERR_PROFILE_INVALID', `error in json: ${formatFinding(explainReading(first, source))}`, {
      details: formatFindings(more),
    });
  }
  if (isObject(document.value)) return document;
  throw new RdError('ERR_PROFILE_INVALID', `error in json: ${source.label}: the settings must be an object`);
}

/** Explains why a document could not be read: one that is too large has no positions, and text that is not JSON was read as YAML. */
function explainReading(finding: Finding, { bytes, size }: Source): Finding {
  const { file = '', pointer, message } = finding;
  if (size > SIZE_LIMIT) return { file, pointer, message };
  const yaml = !message.startsWith('the document ') && !looksLikeJson(Buffer.from(bytes).toString('utf8'));
  return yaml ? { ...finding, message: `as YAML, ${message}` } : finding;
}

/** Removes `null` from the expected values: no entry can be removed here. */
function withoutRemoval(finding: Finding): Finding {
  const expected = finding.expected?.replace(/true, false or null$/, 'true or false');
  return expected === undefined ? finding : { ...finding, expected };
}

function invalid({ file }: ParsedDocument, findings: readonly Finding[], consequence: string): RdError {
  const count = `${findings.length} error${findings.length === 1 ? '' : 's'}`;
  return new RdError('ERR_PROFILE_INVALID', `${count} in ${file}${consequence}.`, {
    details: formatFindings(inTextOrder(findings)),
  });
}

function unknownName(names: readonly string[], suggestion: string | undefined): string {
  const above = names.slice(0, -1).join('.');
  const name = names.at(-1) ?? '';
  if (name.includes('.') && FIELDS.some(({ path }) => isWithin(path, names.join('.')))) {
    return `${above}[${JSON.stringify(name)}] is not a setting and was left out: settings are nested; dots do not select a section.`;
  }
  const left = `${entryPath(above, name)} is not a setting and was left out.`;
  if (suggestion === undefined) return left;
  return `${left} Did you mean ${suggestion.includes('.') || above === '' ? suggestion : `${above}.${suggestion}`}?`;
}

/** Returns the assumed computer of a profile: an up-to-date system, on macOS with Apple silicon, where every value that a Mac supports is allowed. */
export function targetContext(platform: Platform): CheckContext {
  return { platform, arch: platform === 'darwin' ? 'arm64' : 'x64' };
}
