import { RdError } from '../../src/errors.ts';
import type { JsonObject, JsonValue } from '../../src/json.ts';
import { sameValue } from '../../src/settings/canonical.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import type { Platform } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { type SettingMember, settingAt } from '../../src/settings/fields.ts';
import { leafAt, leaves, setLeaf } from '../../src/settings/leaf-paths.ts';
import { migrate } from '../../src/settings/migrate.ts';
import { nearest } from '../../src/settings/nearest.ts';
import { copyOf } from '../../src/settings/own.ts';
import { pastSetting, pastText } from '../../src/settings/past.ts';
import { RELEASES } from '../../src/settings/releases.ts';
import { SCHEMA_VERSION, type SettingPath } from '../../src/settings/settings.gen.ts';
import type { Part } from '../formats/format.ts';
import { membersAt } from '../formats/tree.ts';
import { type DeploymentInput, targetContext } from './deployment-input.ts';
import { isLockedBy, isWithin, publicSettings, secretSource, type WrittenSetting } from './written-settings.ts';

/** Selects the settings of a profile, and their form. */
export interface Selection {
  part: Part;
  /** Platform of the application that reads the profile. */
  platform: Platform;
  /** Dotted paths of settings and sections: current ones, and with `keepVersion` those of the input's version. Empty: all. */
  only: readonly string[];
  except: readonly string[];
  /** Whether to select only settings that differ from the defaults of all computers of the platform. */
  changedOnly: boolean;
  /** Whether to stay at the version of the input. */
  keepVersion: boolean;
  /** Whether the settings are those of a running service: secrets and settings of that computer are left out. */
  inForce: boolean;
}

export interface SelectedSettings {
  /** Selected settings with their version. */
  settings: JsonObject;
  /** Omissions, one sentence each. */
  warnings: string[];
  /** Sentences about effects of the migration, and about values that a profile cannot contain. */
  notes: string[];
  /** Whether a secret is among them. */
  secret: boolean;
  /** The original path of each setting, by its dotted path in `settings`. */
  origins: ReadonlyMap<string, string>;
  /** Counts of the selected settings that are in the other part. */
  elsewhere: {
    settings: number;
    /** Names of `only` that match nothing in this part. Their settings are not counted. */
    only: string[];
  };
}

/**
 * Selects the settings of one part of a deployment profile.
 * @throws RdError `ERR_USAGE` for an unknown path in `only` or `except`.
 */
export async function selectSettings(input: DeploymentInput, selection: Selection): Promise<SelectedSettings> {
  const { only, except, keepVersion, inForce } = selection;
  await checkChoice(input, selection);
  const warnings = [...input.warnings];
  const { isChosen, isElsewhere } = choosers(input, selection);
  const chosen = input.settings.filter(isChosen);
  const offered = inForce
    ? publicSettings(chosen, only, selection.platform)
    : { settings: chosen, warnings: [], notes: [] };
  warnings.push(...offered.warnings);
  const written = offered.settings.filter((setting) => {
    const lost = whyNotWritten(setting, input.version, selection);
    if (lost !== undefined) warnings.push(lost);
    return lost === undefined && (keepVersion || setting.today !== undefined);
  });
  const settings = assembleSettings(written, input.version);
  const result = keepVersion || input.version >= SCHEMA_VERSION ? settings : migrateSelection(settings, selection);
  const secret = written.some(({ today }) => today && settingAt(today.path)?.sensitive && today.value !== '');
  if (secret) warnings.push(PLAIN_SECRET);
  const narrowed = only.length + except.length > 0 || selection.changedOnly || input.locked !== undefined;
  if (narrowed && Object.keys(result).length === 1) warnings.push('no settings are selected.');
  const writable = (setting: WrittenSetting) => whyNotWritten(setting, input.version, selection) === undefined;
  return {
    settings: result,
    warnings,
    notes: [
      ...input.notes,
      ...offered.notes,
      ...migration(result, input.version),
      ...frozen(written, result, input.version),
    ],
    secret,
    origins: new Map(
      written.map((each) => [(keepVersion ? undefined : each.today?.path) ?? each.written, each.written]),
    ),
    elsewhere: otherPart(chosen, input.settings.filter(isElsewhere).filter(writable), selection),
  };
}

function otherPart(
  here: readonly WrittenSetting[],
  elsewhere: readonly WrittenSetting[],
  selection: Selection,
): SelectedSettings['elsewhere'] {
  const among = (settings: readonly WrittenSetting[], name: string) =>
    settings.some((setting) => isNamed(setting, [name], selection));
  const only = selection.only.filter((name) => !among(here, name) && among(elsewhere, name));
  return { settings: elsewhere.filter((setting) => !isNamed(setting, only, selection)).length, only };
}

const PLAIN_SECRET =
  'experimental.virtualMachine.proxy.password is written in plain text: anyone who can read the profile can read it.';

async function checkChoice({ version }: DeploymentInput, { only, except, keepVersion }: Selection): Promise<void> {
  const choices = [
    { flag: '--only', names: only },
    { flag: '--except', names: except },
  ];
  await checkNames(choices, keepVersion ? version : SCHEMA_VERSION);
  if (!except.includes('version')) return;
  throw new RdError('ERR_USAGE', '--except version: the application does not start with a profile that has no version');
}

interface Choosers {
  isChosen(setting: WrittenSetting): boolean;
  /** Whether the setting is selected, but in the other part. */
  isElsewhere(setting: WrittenSetting): boolean;
}

/** Combines `part`, `only`, `except` and `changedOnly`. */
function choosers({ locked }: DeploymentInput, selection: Selection): Choosers {
  const { part, only, except, changedOnly, platform } = selection;
  const isLocked = locked && isLockedBy(locked);
  const isHere = (setting: WrittenSetting) => !isLocked || isLocked(setting) === (part === 'locked');
  const isDefault = defaultsOf(platform);
  const isWanted = (setting: WrittenSetting) => {
    if (only.length > 0 && !isNamed(setting, only, selection)) return false;
    if (isNamed(setting, except, selection)) return false;
    const { today } = setting;
    // A removed setting has no default.
    return !changedOnly || !today || !isDefault(today.path, today.value);
  };
  return {
    isChosen: (setting) => isHere(setting) && isWanted(setting),
    isElsewhere: (setting) => !isHere(setting) && isWanted(setting),
  };
}

/** Returns whether a value is the default on all computers of a platform. The default memory depends on the computer, so no value is. */
function defaultsOf(platform: Platform): (path: SettingPath, value: JsonValue) => boolean {
  const target = targetContext(platform);
  const defaults = [target, { ...target, memoryBytes: Number.MAX_SAFE_INTEGER }].map(defaultSettings);
  return (path, value) => defaults.every((each) => sameValue(path, value, leafAt(each, path)));
}

function isNamed(
  { written, today }: WrittenSetting,
  names: readonly string[],
  { keepVersion }: Pick<Selection, 'keepVersion'>,
): boolean {
  return names.some((name) => (today && isWithin(today.path, name)) || (keepVersion && isWithin(written, name)));
}

/** Returns the reason why the profile cannot contain a selected setting; undefined if it can. */
function whyNotWritten(
  { written, value, today }: WrittenSetting,
  version: number,
  { keepVersion, inForce }: Selection,
): string | undefined {
  const source = today && settingAt(today.path)?.sensitive ? secretSource(value) : undefined;
  if (source !== undefined) {
    return `${written} comes from ${source} and was left out: a profile would contain it in plain text.`;
  }
  // An older application keeps such settings in its own file.
  if (today !== undefined || keepVersion || inForce) return undefined;
  if (settingAt(written)) {
    return `${written} was left out: the setting at its name in version ${version} takes precedence.`;
  }
  return `${written} is a removed setting that has no effect, and was left out.`;
}

function assembleSettings(settings: readonly WrittenSetting[], version: number): JsonObject {
  const result: JsonObject = { version };
  for (const { written, value } of settings) setLeaf(result, written, copyOf(value));
  return result;
}

/** Migrates the selection to the newest version like the application: an older locked profile also locks some later settings. */
function migrateSelection(settings: JsonObject, { part, platform, except, changedOnly }: Selection): JsonObject {
  const isDefault = defaultsOf(platform);
  const document = migrate(settings, { platform, locked: part === 'locked', partial: true });
  const result: JsonObject = { version: SCHEMA_VERSION };
  for (const [path, value] of leaves(document)) {
    if (path === 'version' || except.some((name) => isWithin(path, name))) continue;
    if (!changedOnly || !isDefault(path, value)) setLeaf(result, path, value);
  }
  return result;
}

/** Returns a note about the migration: older releases cannot read the newer version. */
function migration({ version }: JsonObject, from: number): string[] {
  if (typeof version !== 'number' || version === from) return [];
  const readers = `which ${firstReader(version)} and later read`;
  return [
    `migrated from version ${from} to ${version}, ${readers}; --keep-version keeps ${from} (${firstReader(from)} and later).`,
  ];
}

function firstReader(version: number): string {
  return RELEASES.find(({ settingsVersion }) => settingsVersion >= version)?.name ?? '';
}

/** Returns notes about settings that the migration added. */
function frozen(written: readonly WrittenSetting[], result: JsonObject, version: number): string[] {
  if (result.version === version) return [];
  const before = new Set(written.map(({ today }) => today?.path));
  return leaves(result)
    .filter(([path]) => path !== 'version' && !before.has(path))
    .map(([path, value]) => `${path} is locked to ${JSON.stringify(value)} by a locked profile of version ${version}.`);
}

/** Settings named on the command line. */
interface NamedSettings {
  /** The flag, for messages, such as `--only`. */
  flag: string;
  /** Dotted paths of settings or sections. */
  names: readonly string[];
}

/**
 * Refuses unknown names of settings and sections.
 * @param version version whose names are valid beside the current ones.
 * @throws RdError `ERR_USAGE` with the first such name, and a suggestion.
 */
async function checkNames(choices: readonly NamedSettings[], version: number): Promise<void> {
  if (choices.every(({ names }) => names.length === 0)) return;
  const known = new Set([...pathsOf(await membersAt(SCHEMA_VERSION)), ...pathsOf(await membersAt(version))]);
  for (const { flag, names } of choices) {
    for (const name of names) if (!known.has(name)) throw unknownName(flag, name, known);
  }
}

function pathsOf(members: readonly SettingMember[], above = ''): string[] {
  return members.flatMap((member) => {
    const path = above === '' ? member.name : `${above}.${member.name}`;
    return member.kind === 'section' ? [path, ...pathsOf(member.members, path)] : [path];
  });
}

/** Characters of a name; a longer one is neither shown in full nor looked up. */
const LONGEST = 100;

function unknownName(flag: string, name: string, known: ReadonlySet<string>): RdError {
  const given = `${flag} ${JSON.stringify(name.length > LONGEST ? `${name.slice(0, LONGEST)}…` : name)}`;
  const message = `${given}: no such setting or section`;
  const map = FIELDS.find(({ path, type }) => type.startsWith('map') && isWithin(name, path));
  if (map) {
    return new RdError('ERR_USAGE', `${given}: entries of a map cannot be selected individually`, {
      advice: `Select the whole map: ${map.path}.`,
    });
  }
  const past = name.length > LONGEST ? undefined : pastSetting(name);
  if (past) {
    return new RdError('ERR_USAGE', message, {
      advice: `It ${pastText(past)}. With --keep-version, the names of the input's version are accepted too.`,
    });
  }
  const close = nearest(name, known);
  return new RdError('ERR_USAGE', message, close === undefined ? {} : { advice: `Did you mean ${close}?` });
}
