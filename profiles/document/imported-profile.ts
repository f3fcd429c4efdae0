import { RdError } from '../../src/errors.ts';
import { isObject, type JsonObject } from '../../src/json.ts';
import { canonicalizeTexts } from '../../src/settings/canonical.ts';
import { dependsOnSystem } from '../../src/settings/check.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { PLATFORM_NAMES, type Platform } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { explain, type Finding } from '../../src/settings/issue.ts';
import {
  knownSettings,
  leafAt,
  leaves,
  pointerNames,
  pointerTo,
  setLeaf,
  valueAt,
} from '../../src/settings/leaf-paths.ts';
import { membersOfVersion } from '../../src/settings/members.ts';
import { migrateWithOrigins, namesBefore, versionProblem } from '../../src/settings/migrate.ts';
import { copyOfObject, own, put } from '../../src/settings/own.ts';
import { SCHEMA_VERSION, type SettingPath } from '../../src/settings/settings.gen.ts';
import { validate } from '../../src/settings/validate.ts';
import type { ImportedPart, Part } from '../formats/format.ts';
import { accountFor, type Fidelity } from './fidelity.ts';
import { API_VERSION, KIND } from './shape.ts';
import { secretVariable } from './write.ts';

/** Both deployment profiles as one: what a profile document holds as `settings` and `locked`. */
export interface JoinedParts {
  /** At the newest version, canonical: the defaults with the locked ones over them. Secrets are in it. */
  settings: JsonObject;
  /** Settings that the locked profile holds, in schema order. */
  locked: SettingPath[];
  fidelity: Fidelity[];
  /** What makes the application refuse a part as a whole. What is wrong is left out of the settings, and lost. */
  findings: Finding[];
  /** Parts without a version: nothing starts with them. They are in the settings, read as those of the newest version. */
  versionless: Finding[];
  /** Why a part could not be read at all: nothing of it is in the settings. */
  unread: Finding[];
  /** What it refuses on some computers. */
  warnings: Finding[];
}

/**
 * Joins the parts of one computer, each migrated from its own version as the application does it.
 * @param unnamed which part one is that does not say so.
 * @throws RdError `ERR_PROFILE_INVALID` for two parts of the same kind.
 */
export function joinParts(
  parts: readonly (ImportedPart & { platform: Platform })[],
  unnamed: Part = 'locked',
): JoinedParts {
  const read = parts.map((part) => interpretPart(part, part.part ?? unnamed, part.platform));
  const locked = only(read, 'locked');
  const defaults = only(read, 'defaults');
  const settings: JsonObject = { version: SCHEMA_VERSION };
  const held = new Map(leaves(locked?.settings ?? {}));
  for (const [path, value] of leaves(defaults?.settings ?? {})) setLeaf(settings, path, value);
  for (const [path, value] of held) setLeaf(settings, path, value);
  held.delete('version');
  return {
    settings,
    locked: [...held.keys()],
    fidelity: [locked, defaults].flatMap((part) => part?.fidelity.map((entry) => covered(entry, held)) ?? []),
    findings: read.flatMap((part) => part.findings),
    versionless: read.flatMap((part) => part.versionless ?? []),
    unread: read.flatMap((part) => part.unread ?? []),
    warnings: read.flatMap((part) => part.warnings),
  };
}

/** As the `locked` map of a profile document. */
function lockedMap(paths: readonly SettingPath[]): JsonObject {
  const map: JsonObject = {};
  for (const path of paths) setLeaf(map, path, true);
  return map;
}

function only(parts: readonly Interpreted[], part: Part): Interpreted | undefined {
  const [first, second] = parts.filter((each) => each.part === part);
  if (!first || !second) return first;
  throw new RdError('ERR_PROFILE_INVALID', `there are two ${part} profiles: ${first.source} and ${second.source}`, {
    advice: 'Set the part of a file with --part; if both are in the same file, remove one.',
  });
}

/** A default below a locked value never counts, and one profile document holds one value for each setting. */
function covered(entry: Fidelity, held: ReadonlyMap<string, unknown>): Fidelity {
  if (entry.outcome === 'lost' || entry.part === 'locked' || !held.has(entry.path)) return entry;
  const place = (entry.outcome === 'changed' ? entry.from : undefined) ?? entry.path;
  return { outcome: 'lost', part: entry.part, place, reason: 'the locked profile has the setting' };
}

/** What joined parts are as a profile document, which people keep and share. */
export interface ImportedProfile {
  /** At the newest version. Secrets are references to variables. */
  settings: JsonObject;
  locked: readonly SettingPath[];
  fidelity: Fidelity[];
  /** Variables that secrets are to be read from. */
  variables: string[];
}

/** Names that no document may have: they would reach the prototypes of objects. */
const FORBIDDEN = ['__proto__', 'constructor', 'prototype'];

/** Replaces secrets by references, and removes keys that no document may have; each is in `fidelity`. */
export function importedProfile({ settings, locked, fidelity }: JoinedParts): ImportedProfile {
  const kept = copyOfObject(settings);
  const changed = new Map<string, string>();
  const variables: string[] = [];
  const lost: Fidelity[] = [];
  for (const { path, sensitive, type } of FIELDS) {
    const value = leafAt(kept, path);
    if (sensitive && value !== undefined && value !== '') {
      const fromEnv = secretVariable(path);
      setLeaf(kept, path, { fromEnv });
      variables.push(fromEnv);
      changed.set(path, `it is a secret, and the result refers to the variable ${fromEnv} instead`);
    } else if (type.startsWith('map') && isObject(value)) {
      for (const name of FORBIDDEN.filter((each) => Object.hasOwn(value, each))) {
        delete value[name];
        const part = locked.includes(path) ? 'locked' : 'defaults';
        lost.push({
          outcome: 'lost',
          part,
          place: `${path}.${name}`,
          reason: 'keys of that name are not allowed',
        });
      }
    }
  }
  const entries = fidelity.map((entry): Fidelity => {
    if (entry.outcome === 'lost') return entry;
    const reason = changed.get(entry.path);
    return reason === undefined ? entry : { ...entry, outcome: 'changed', reason };
  });
  return { settings: kept, locked, fidelity: [...entries, ...lost], variables };
}

/** The document as JSON holds it. It leaves the power state alone, as deployment profiles do. */
export function profileDocument({ settings, locked }: ImportedProfile): JsonObject {
  return { apiVersion: API_VERSION, kind: KIND, settings, locked: lockedMap(locked), state: 'unmanaged' };
}

/** What one deployment profile means to an application of the newest version. */
interface Interpreted {
  part: Part;
  source: string;
  /** At the newest version, canonical; what an application refuses is left out. Empty where the version is unknown. */
  settings: JsonObject;
  fidelity: Fidelity[];
  /** What makes the application refuse the whole profile on every computer. */
  findings: Finding[];
  /** What makes it refuse the profile on some. */
  warnings: Finding[];
  /** It has no version: nothing starts with it. It was read as one of the newest. */
  versionless?: Finding;
  /** Why nothing of it could be read. */
  unread?: Finding;
}

/** What a usual computer of each system is: a profile goes to many. */
const USUAL = {
  darwin: { arch: 'arm64', osRelease: '24.0.0', osVersion: '15.0.0' },
  linux: { arch: 'x64' },
  win32: { arch: 'x64', osRelease: '10.0.22631' },
} as const;

/**
 * Reads a part as the application does: names of today count in older profiles too, unknown ones are passed over. A profile
 * without version is read as one of the newest.
 */
function interpretPart({ source, settings, lost }: ImportedPart, part: Part, platform: Platform): Interpreted {
  // The path of a registry key says by itself which profile it is in.
  const named = platform === 'win32';
  const gone = lost.map(
    ({ place, reason, outside }): Fidelity => ({
      outcome: 'lost',
      ...(outside || named ? {} : { part }),
      place,
      reason,
    }),
  );
  const version = versionFinding(settings, source);
  if (version && settings.version !== undefined) {
    return { part, source, settings: {}, fidelity: gone, findings: [version], warnings: [], unread: version };
  }
  const nulls: string[][] = [];
  const written = withoutNulls({ version: SCHEMA_VERSION, ...settings }, nulls);
  const { document, origins } = migrateWithOrigins(written, { platform, locked: part === 'locked', partial: true });
  const canonical = canonicalizeTexts(document);
  const issues = validate(canonical, {
    ...USUAL[platform],
    platform,
    current: defaultSettings({ platform, ...USUAL[platform] }),
    valuesFirst: true,
  }).filter(({ code }) => code !== 'decrease');
  const placed = issues.map((issue) => {
    const names = pointerNames(issue.pointer);
    const pointer = pointerTo(namesBefore(origins, names));
    const text = explain(issue, writtenText(written, pointer));
    return { uncertain: dependsOnSystem(issue.code), names, finding: { file: source, pointer, ...text } };
  });
  const wrong = placed.filter(({ uncertain }) => !uncertain);
  const none = judgeNulls(nulls, Number(written.version), source);
  const findings = [...none.findings, ...wrong.map(({ finding }) => finding)];
  const known = knownSettings(canonical);
  for (const { names } of wrong) removeValue(known, names);
  return {
    part,
    source,
    settings: known,
    fidelity: [
      ...accountFor({ part, written, given: settings, known, canonical, origins, findings }),
      ...none.idle.map(({ place, reason }): Fidelity => ({ outcome: 'lost', part, place, reason })),
      ...gone,
    ],
    findings,
    ...(version ? { versionless: version } : {}),
    warnings: placed
      .filter(({ uncertain }) => uncertain)
      .map(({ finding }) => ({
        ...finding,
        message: `on ${PLATFORM_NAMES[platform]} the application refuses the profile: ${finding.message}`,
      })),
  };
}

function versionFinding({ version }: JsonObject, file: string): Finding | undefined {
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

/** In a document `null` removes something; a deployment profile cannot. Where one stood is put into `nulls`. */
function withoutNulls(object: JsonObject, nulls: string[][], above: readonly string[] = []): JsonObject {
  const kept: JsonObject = {};
  for (const [name, value] of Object.entries(object)) {
    const names = [...above, name];
    if (value === null) nulls.push(names);
    else put(kept, name, isObject(value) ? withoutNulls(value, nulls, names) : value);
  }
  return kept;
}

/**
 * For a setting `null` is of the wrong type; for a section, and for an entry of a map of switches, the application lets it
 * through, and an unknown name is passed over whatever its value.
 */
function judgeNulls(nulls: readonly string[][], version: number, file: string) {
  const findings: Finding[] = [];
  const idle: { place: string; reason: string }[] = [];
  for (const names of nulls) {
    const place = names.join('.');
    const member = memberAt(names, version);
    if (member === 'unknown') idle.push({ place, reason: 'it is not a setting' });
    else if (member === 'section') idle.push({ place, reason: 'null for a section sets nothing' });
    else if (member === 'entry') idle.push({ place, reason: 'null for an entry sets nothing' });
    else findings.push({ file, pointer: pointerTo(names), message: `"${place}" is null, which is not a value` });
  }
  return { findings, idle };
}

function memberAt(names: readonly string[], version: number): 'setting' | 'section' | 'entry' | 'unknown' {
  let members = membersOfVersion(version);
  for (const [index, name] of names.entries()) {
    const member = members.find((each) => each.name === name);
    if (!member) return 'unknown';
    const last = index === names.length - 1;
    if (member.kind === 'section') {
      if (last) return 'section';
      members = member.members;
    } else if (last) return member.kind === 'setting' ? 'setting' : 'unknown';
    else return member.kind === 'setting' && member.type === 'map<string,boolean>' ? 'entry' : 'setting';
  }
  return 'unknown';
}

/** Takes away a value, of a map only the entry: a list without one of its items would say something else. */
function removeValue(settings: JsonObject, names: readonly string[]): void {
  let object = settings;
  for (const [index, name] of names.entries()) {
    const value = own(object, name);
    if (!isObject(value) || index === names.length - 1) {
      delete object[name];
      return;
    }
    object = value;
  }
}

function writtenText(settings: JsonObject, pointer: string): string | undefined {
  const value = valueAt(settings, pointer);
  return value === undefined || typeof value === 'object' ? undefined : JSON.stringify(value);
}
