import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { canonicaliseTexts } from '../../src/settings/canonical.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { explain } from '../../src/settings/explanation.ts';
import type { Platform } from '../../src/settings/field.ts';
import { isSection } from '../../src/settings/fields.ts';
import type { Finding } from '../../src/settings/finding.ts';
import { leafAt, leaves, pointerNames, pointerOf, pointerTo, setLeaf, valueAt } from '../../src/settings/leaf-paths.ts';
import { ENDED } from '../../src/settings/left-over.ts';
import { migrateWithOrigins, namesBefore, originOf, versionProblem } from '../../src/settings/migrate.ts';
import { equal } from '../../src/settings/own.ts';
import { SCHEMA_VERSION, type SettingPath } from '../../src/settings/settings.gen.ts';
import { unknownKeys } from '../../src/settings/unknown-keys.ts';
import { validate } from '../../src/settings/validate.ts';
import type { Part } from '../deployment/part.ts';
import type { Fidelity } from './fidelity.ts';
import type { ImportedPart } from './importer.ts';

/** What one deployment profile means to an application of the newest version. */
export interface Interpreted {
  part: Part;
  source: string;
  /** At the newest version, canonical, known settings only. Empty where a finding concerns the version. */
  settings: JsonObject;
  fidelity: Fidelity[];
  /** What makes the application refuse the profile on every computer. */
  findings: Finding[];
  /** What makes it refuse the profile on some. */
  warnings: Finding[];
}

/** What a usual computer of each system is: a profile goes to many. */
const USUAL = {
  darwin: { arch: 'arm64', osRelease: '24.0.0', osVersion: '15.0.0' },
  linux: { arch: 'x64' },
  win32: { arch: 'x64', osRelease: '10.0.22631' },
} as const;

/** Depends on the computer, on settings that the profile leaves alone, or on what is on offer. */
const UP_TO_THE_COMPUTER: readonly string[] = ['platform', 'conflict', 'kubernetes-version'];

/** Reads a part as the application does: names of today count in older profiles too, unknown ones are passed over. */
export function interpretPart({ source, settings, lost }: ImportedPart, part: Part, platform: Platform): Interpreted {
  const gone = lost.map((loss): Fidelity => ({ outcome: 'lost', part, ...loss }));
  const nothing = { part, source, settings: {}, fidelity: gone, warnings: [] };
  const version = versionFinding(settings, source);
  if (version) return { ...nothing, findings: [version] };
  const nulls = nullPointers(settings).map((pointer) => ({
    file: source,
    pointer,
    message: `"${pointerNames(pointer).join('.')}" is null, which is no value`,
  }));
  if (nulls.length > 0) return { ...nothing, findings: nulls };
  const { document, origins } = migrateWithOrigins(settings, { platform, locked: part === 'locked', partial: true });
  const canonical = canonicaliseTexts(document);
  const issues = validate(canonical, {
    ...USUAL[platform],
    platform,
    current: defaultSettings({ platform, ...USUAL[platform] }),
    valuesFirst: true,
  }).filter(({ code }) => code !== 'decrease');
  const findings = issues.map((issue) => {
    const pointer = pointerTo(namesBefore(origins, pointerNames(issue.pointer)));
    return { code: issue.code, finding: { file: source, pointer, ...explain(issue, writtenText(settings, pointer)) } };
  });
  const known: JsonObject = {};
  for (const [path, value] of leaves(canonical)) setLeaf(known, path, value);
  return {
    part,
    source,
    settings: known,
    fidelity: [...account(settings, known, { part, origins, canonical }), ...gone],
    findings: findings.filter(({ code }) => !UP_TO_THE_COMPUTER.includes(code)).map(({ finding }) => finding),
    warnings: findings.filter(({ code }) => UP_TO_THE_COMPUTER.includes(code)).map(({ finding }) => finding),
  };
}

function versionFinding(settings: JsonObject, file: string): Finding | undefined {
  const { version } = settings;
  if (version === undefined) {
    const message = 'version is missing: the application does not start with such a profile';
    return { file, pointer: '', message, expected: `version: ${SCHEMA_VERSION}` };
  }
  if (versionProblem(version) === undefined) return undefined;
  const newer = typeof version === 'number' && Number.isInteger(version) && version > SCHEMA_VERSION;
  const message = newer
    ? `${version} is newer than ${SCHEMA_VERSION}, the newest settings version this release knows`
    : 'version is not a settings version';
  return { file, pointer: '/version', message, expected: `an integer from 1 to ${SCHEMA_VERSION}` };
}

function nullPointers(value: JsonValue, names: readonly string[] = []): string[] {
  if (value === null) return [pointerTo(names)];
  if (typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([name, inner]) => nullPointers(inner, [...names, name]));
}

function writtenText(settings: JsonObject, pointer: string): string | undefined {
  const value = valueAt(settings, pointer);
  return value === undefined || typeof value === 'object' ? undefined : JSON.stringify(value);
}

interface Accounting {
  part: Part;
  origins: ReadonlyMap<string, string>;
  canonical: JsonObject;
}

/** An entry for each setting of the result, and one for everything that was written and is not behind any of them. */
function account(written: JsonObject, known: JsonObject, { part, origins, canonical }: Accounting): Fidelity[] {
  const taken = new Map<string, SettingPath>();
  const entries: Fidelity[] = [];
  for (const [path, value] of leaves(known)) {
    const from = originOf(origins, path);
    taken.set(pointerOf(from), path);
    const before = leafAt(written, from);
    const reason = changeOf(path, { from, before, value });
    if (reason !== undefined) {
      entries.push({ outcome: 'changed', part, path, ...(from === path ? {} : { from }), reason });
    } else if (path !== 'version') entries.push({ outcome: 'kept', part, path });
  }
  const suggestions = new Map(
    unknownKeys(canonical).map(({ pointer, suggestion }) => [
      pointerTo(namesBefore(origins, pointerNames(pointer))),
      suggestion,
    ]),
  );
  for (const names of untaken(written, [], taken)) {
    entries.push({ outcome: 'lost', part, place: names.join('.'), reason: lossReason(names, suggestions, taken) });
  }
  return entries;
}

function changeOf(
  path: string,
  { from, before, value }: { from: string; before: JsonValue | undefined; value: JsonValue },
): string | undefined {
  if (before === undefined) return 'the application adds it to a locked profile of this version';
  if (path === 'version')
    return equal(before, value) ? undefined : `migrated from ${String(before)} to ${String(value)}`;
  if (from !== path) return 'it moved in a later version';
  return equal(before, value) ? undefined : 'in the form in which it is stored';
}

/** Names of what no setting of the result came from: the topmost of a name that nothing is below. */
function* untaken(
  object: JsonObject,
  above: readonly string[],
  taken: ReadonlyMap<string, SettingPath>,
): Generator<string[]> {
  for (const [name, value] of Object.entries(object)) {
    const names = [...above, name];
    const pointer = pointerTo(names);
    if (taken.has(pointer)) continue;
    const around = [...taken.keys()].some((each) => each.startsWith(`${pointer}/`));
    if (isObject(value) && (around || isSection(names.join('.')))) yield* untaken(value, names, taken);
    else yield names;
  }
}

function lossReason(
  names: readonly string[],
  suggestions: ReadonlyMap<string, string | undefined>,
  taken: ReadonlyMap<string, SettingPath>,
): string {
  const path = names.join('.');
  if (ENDED.some((ended) => ended === path || ended.startsWith(`${path}.`)))
    return 'the setting ended and means nothing any more';
  if ([...taken.values()].some((each) => each === path)) return 'the value at its older name counts instead';
  const suggestion = suggestions.get(pointerTo(names));
  return `it is no setting${suggestion === undefined ? '' : `; did you mean ${suggestion}?`}`;
}
