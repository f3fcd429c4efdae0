import { RdError } from '../../src/errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../src/json.ts';
import { membersOfToday, type SettingMember } from '../../src/settings/member.ts';
import { nearest } from '../../src/settings/nearest.ts';
import { own } from '../../src/settings/own.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
import { entryPath } from './entry-path.ts';
import {
  type DeploymentMembers,
  type DeploymentValue,
  map,
  mismatch,
  naturalValue,
  typedValue,
} from './typed-value.ts';

export type { DeploymentMembers, DeploymentValue };

/** One deployment profile at one version. */
export interface DeploymentTree {
  /** In the order of the schema, the version first; entries of maps sorted. */
  members: DeploymentMembers;
  /** What was left out, one sentence each. Names settings, never their values. */
  warnings: string[];
}

/**
 * The settings as a tree of typed values, read by the names and types that their version had; without a version they are of
 * the newest, and the tree says so. Names that are no settings, `null` and empty sections are left out with a warning. Values
 * are not judged beyond their type, because the reader of the profile may be newer or on another platform.
 * @throws RdError `ERR_PROFILE_INVALID` with every value of the wrong type (`details`): its path and what was expected.
 */
export async function deploymentTree(settings: JsonObject): Promise<DeploymentTree> {
  const reading: Reading = { warnings: [], problems: [] };
  const version = versionOf(settings, reading);
  const members = readSection(settings, await membersAt(version), '', reading);
  if (reading.problems.length > 0) {
    throw new RdError('ERR_PROFILE_INVALID', 'the settings hold values that no deployment profile can have:', {
      details: reading.problems,
    });
  }
  return {
    members: new Map([['version', { kind: 'integer', value: version }], ...members]),
    warnings: reading.warnings,
  };
}

interface Reading {
  warnings: string[];
  problems: string[];
}

/** The application does not start with a profile that has no version, or none that it understands. */
function versionOf(settings: JsonObject, { problems }: Reading): number {
  if (!Object.hasOwn(settings, 'version')) return SCHEMA_VERSION;
  const version = own(settings, 'version') ?? null;
  if (typeof version === 'number' && Number.isSafeInteger(version) && version > 0) return version;
  const expected = `expected a whole number from 1, the version of the settings (${SCHEMA_VERSION} is the newest)`;
  problems.push(typeof version === 'number' ? `version: ${expected}` : mismatch('version', expected, version));
  return SCHEMA_VERSION;
}

/** The names of a version, of the newest for later ones. The shapes of older versions are large, and most settings are of the newest. */
export async function membersAt(version: number): Promise<SettingMember[]> {
  if (version >= SCHEMA_VERSION) return membersOfToday();
  const { membersOfVersion } = await import('../../src/settings/members.ts');
  return membersOfVersion(version);
}

/** Everything but the version. */
function readSection(
  object: JsonObject,
  known: readonly SettingMember[],
  path: string,
  reading: Reading,
): DeploymentMembers {
  const members = new Map<string, DeploymentValue>();
  const names = known.map(({ name }) => name);
  for (const name of Object.keys(object)) {
    if (!names.includes(name)) reading.warnings.push(unknown(path, name, names));
  }
  for (const member of known) {
    const value = own(object, member.name);
    const at = path === '' ? member.name : `${path}.${member.name}`;
    if (value === undefined || at === 'version') continue;
    if (value === null) reading.warnings.push(`${at} is null and was left out.`);
    else {
      const read = readMember(value, member, at, reading);
      if (read) members.set(member.name, read);
    }
  }
  return members;
}

function readMember(
  value: JsonValue,
  member: SettingMember,
  path: string,
  reading: Reading,
): DeploymentValue | undefined {
  const complain = (problem: string) => void reading.problems.push(problem);
  if (member.kind === 'ended') return naturalValue(value, path, complain);
  if (member.kind === 'setting') {
    // Version 6 switched extensions on and off here, and version 7 named their tags.
    if (path === 'extensions' && isObject(value)) return map(value, ['boolean', 'string'], path, complain);
    return typedValue(value, member.type, path, complain);
  }
  if (!isObject(value)) {
    complain(mismatch(path, 'an object with settings', value));
    return undefined;
  }
  const members = readSection(value, member.members, path, reading);
  if (members.size > 0) return { kind: 'section', members };
  if (Object.keys(value).length === 0) reading.warnings.push(`${path} holds no setting and was left out.`);
  return undefined;
}

function unknown(path: string, name: string, names: readonly string[]): string {
  const close = nearest(name, names);
  const hint = close === undefined ? '' : ` Did you mean ${entryPath(path, close)}?`;
  return `${entryPath(path, name)} is no setting and was left out.${hint}`;
}
