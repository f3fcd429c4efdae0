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

/** Both deployment profiles merged into the `settings` and `locked` of a profile document. */
export interface JoinedParts {
  /** At the newest version, canonical, with secrets: locked settings over defaults. */
  settings: JsonObject;
  /** Settings of the locked profile, in schema order. */
  locked: SettingPath[];
  fidelity: Fidelity[];
  /** Problems for which the application refuses the whole part. The values are left out of the settings. */
  findings: Finding[];
  /** Findings for parts without a version, with which no application starts. They are read as the newest version. */
  versionless: Finding[];
  /** Findings for parts that could not be read at all. */
  unread: Finding[];
  /** Problems that exist on some computers only. */
  warnings: Finding[];
}

/**
 * Merges the parts of one computer, each migrated from its own version as the application does it.
 * @param unnamed the part of a file that does not tell.
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
    fidelity: [locked, defaults].flatMap((part) => part?.fidelity.map((entry) => dropOverridden(entry, held)) ?? []),
    findings: read.flatMap((part) => part.findings),
    versionless: read.flatMap((part) => part.versionless ?? []),
    unread: read.flatMap((part) => part.unread ?? []),
    warnings: read.flatMap((part) => part.warnings),
  };
}

/** Converts paths to the `locked` map of a profile document. */
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

/** Marks a default for a locked setting as lost: it has no effect, and a profile document has one value for each setting. */
function dropOverridden(entry: Fidelity, held: ReadonlyMap<string, unknown>): Fidelity {
  if (entry.outcome === 'lost' || entry.part === 'locked' || !held.has(entry.path)) return entry;
  const place = (entry.outcome === 'changed' ? entry.from : undefined) ?? entry.path;
  return { outcome: 'lost', part: entry.part, place, reason: 'the locked profile has the setting' };
}

/** The parts as a profile document, without secrets. */
export interface ImportedProfile {
  /** Settings at the newest version. Secrets are references to variables. */
  settings: JsonObject;
  locked: readonly SettingPath[];
  fidelity: Fidelity[];
  /** Variables from which secrets are to be read. */
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

/** Returns the document as JSON. Like a deployment profile, it does not manage the power state. */
export function profileDocument({ settings, locked }: ImportedProfile): JsonObject {
  return { apiVersion: API_VERSION, kind: KIND, settings, locked: lockedMap(locked), state: 'unmanaged' };
}

/** A deployment profile as the newest release reads it. */
interface Interpreted {
  part: Part;
  source: string;
  /** Settings at the newest version, canonical, without refused values. Empty if the version is unknown. */
  settings: JsonObject;
  fidelity: Fidelity[];
  /** Problems for which the application refuses the whole profile on every computer. */
  findings: Finding[];
  /** Problems for which the application refuses the profile on some computers. */
  warnings: Finding[];
  /** The finding for a missing version; the profile is then read as the newest version. */
  versionless?: Finding;
  /** The reason why nothing could be read. */
  unread?: Finding;
}

/** A typical computer of each platform, because a profile is for many. */
const TYPICAL = {
  darwin: { arch: 'arm64', osRelease: '24.0.0', osVersion: '15.0.0' },
  linux: { arch: 'x64' },
  win32: { arch: 'x64', osRelease: '10.0.22631' },
} as const;

/**
 * Reads a part as the application does: current names are valid in older profiles too, and unknown ones are ignored. A
 * profile without a version is read as the newest version.
 */
function interpretPart({ source, settings, lost }: ImportedPart, part: Part, platform: Platform): Interpreted {
  // The path of a registry key includes the profile.
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
    ...TYPICAL[platform],
    platform,
    current: defaultSettings({ platform, ...TYPICAL[platform] }),
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

/**
 * Returns a copy without `null`, which removes an entry in a document and has no meaning in a deployment profile. Adds the removed names to `nulls`.
 */
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
 * Reports `null` values. For a setting, `null` has the wrong type. The application accepts it for a section and for an entry of a map of booleans,
 * and ignores unknown names.
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

/** Removes a value or a map entry; a list with a wrong item is removed as a whole. */
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
