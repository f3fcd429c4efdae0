import type { JsonValue } from '../../src/json.ts';
import { COMPATIBLE } from '../../src/product.ts';
import type { SettingField } from '../../src/settings/field.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { RELEASES } from '../../src/settings/releases.ts';
import { SCHEMA_VERSION, type SettingPath } from '../../src/settings/settings.gen.ts';
import { PARTS, type Part } from './format.ts';
import { MAX_DWORD } from './registry.ts';

/** The policy for one setting in one of the two profiles. */
export interface AdmxPolicy {
  /** Name that is unique in the file: `Locked_kubernetes_port`. */
  name: string;
  part: Part;
  field: SettingField;
  /** Name of the category that lists it. */
  category: string;
  /** Registry key that holds the value, without the hive. The entries of a map are values of `key\valueName`. */
  key: string;
  valueName: string;
  /** Switches that the enabled policy also turns on, because the value is refused without them. */
  needs: readonly { path: SettingPath; key: string; valueName: string }[];
}

/** A setting without a policy. */
interface Exception {
  path: SettingPath;
  reason: string;
}

/** Registry key and category of each profile, and the prefix of its policy names. */
export const PART_NAMES: Readonly<Record<Part, string>> = { locked: 'Locked', defaults: 'Defaults' };

/** Switches that are refused unless other switches are on. */
const NEEDS: Readonly<Partial<Record<SettingPath, readonly SettingPath[]>>> = {
  'experimental.kubernetes.options.spinkube': ['experimental.containerEngine.webAssembly.enabled'],
};

/** Returns the settings whose policies also write this one. */
function neededBy(path: SettingPath): readonly string[] {
  return Object.entries(NEEDS).flatMap(([other, needs]) => (needs.includes(path) ? [other] : []));
}

/** Returns the key of a profile, without the hive. */
export function profileKey(part: Part): string {
  return `${COMPATIBLE.policyKey}\\${PART_NAMES[part]}`;
}

/** The policies for both parts of every setting that supports one, in schema order. */
export function policies(): readonly AdmxPolicy[] {
  const fields = FIELDS.filter((field) => field.lockable && reasonAgainst(field) === undefined);
  return PARTS.flatMap((part) => fields.map((field) => policyOf(field, part)));
}

/** Every lockable setting without a policy, with the reason. */
export function admxExceptions(): readonly Exception[] {
  return FIELDS.flatMap((field) => {
    const reason = field.lockable ? reasonAgainst(field) : undefined;
    return reason === undefined ? [] : [{ path: field.path, reason }];
  });
}

/** Top-level sections that have policies, in schema order. */
export function sectionNames(): readonly string[] {
  return [...new Set(policies().map(({ field }) => sectionOf(field)))];
}

export function categoryName(part: Part, section: string): string {
  return `${PART_NAMES[part]}_${section}`;
}

function policyOf(field: SettingField, part: Part): AdmxPolicy {
  const needs = (NEEDS[field.path] ?? []).map((path) => ({ path, ...placeOf(path, part) }));
  const name = `${PART_NAMES[part]}_${field.path.replaceAll('.', '_')}`;
  return { name, part, field, category: categoryName(part, sectionOf(field)), ...placeOf(field.path, part), needs };
}

function sectionOf({ path }: SettingField): string {
  return path.split('.')[0] ?? path;
}

function placeOf(path: SettingPath, part: Part): { key: string; valueName: string } {
  const names = path.split('.');
  const valueName = names.pop() ?? path;
  return { key: [profileKey(part), ...names].join('\\'), valueName };
}

function reasonAgainst({ platforms, sensitive, type }: SettingField): string | undefined {
  if (!platforms.includes('win32')) return 'the application on Windows refuses any value but the default';
  if (sensitive) return 'it is a secret, and every user of the computer can read policies';
  if (type === 'map<string,boolean>') return 'its entries are booleans, and policy lists can only contain strings';
  return undefined;
}

/** Older releases reject the settings version that every policy writes. */
export const SUPPORTED = `${COMPATIBLE.productName} ${firstRelease()} or later on Windows`;

function firstRelease(): string {
  const release = RELEASES.find(({ settingsVersion }) => settingsVersion >= SCHEMA_VERSION);
  if (!release) throw new Error(`no release has settings version ${SCHEMA_VERSION}`);
  return release.name;
}

/** Explains how the application uses each profile. */
export const PART_HELP: Readonly<Record<Part, string>> = {
  locked: ['Settings that users cannot change. They apply at every start of the application.', profilesHelp()].join(
    '\n\n',
  ),
  defaults: [
    'Initial settings. They apply once, at the first start of the application and at the first start after a ' +
      'factory reset. Users can change them afterwards.',
    profilesHelp(),
  ].join('\n\n'),
};

export const VERSION_HELP = [
  `The settings version that the other policies of this category use: ${SCHEMA_VERSION}.`,
  'Every policy of this category also writes the version, because the application does not start with a profile that ' +
    'lacks it. A tool that removes a policy may remove the version as well, while other policies remain. Enable this ' +
    'policy to see whether the version is present, and enable it again if it is missing.',
  'A tool that infers the state of policies from registry values may take the version that one policy wrote for a value ' +
    'of the others: policies that are not configured then look configured, or have no clear state. Only the value of ' +
    'the policy itself counts.',
  'Enabled and Disabled have the same effect.',
].join('\n\n');

/** Returns the help text of a policy: description, accepted values, the effect of each state, and the location of the value. */
export function policyHelp(policy: AdmxPolicy): string {
  const { part, field } = policy;
  return [
    plain(field.description),
    `Setting: ${field.path} (${part})`,
    [`Value: ${valueHelp(field)}`, `Default: ${defaultHelp(field)}`].join('\n'),
    ...formatHelp(policy),
    statesHelp(policy),
    ...needsHelp(policy),
    ...neededHelp(policy),
    `Written to: ${placeHelp(policy)}, and version ${SCHEMA_VERSION} to ${profileKey(part)}`,
  ].join('\n\n');
}

/** Converts a schema description, which is Markdown, to the plain text of help. */
function plain(text: string): string {
  return text.replaceAll('`', '"');
}

function profilesHelp(): string {
  return (
    'A profile of the computer takes precedence over one of the user: if the computer has any locked or default ' +
    'setting, both profiles of the user are ignored. An invalid value in a profile keeps the application from starting.'
  );
}

function valueHelp({ type, enum: values, min = 0, max = MAX_DWORD, unit }: SettingField): string {
  if (values) return `one of ${values.map((value) => `"${value}"`).join(', ')}`;
  switch (type) {
    case 'boolean':
      return 'true (Enabled) or false (Disabled)';
    case 'integer':
      return `a whole number from ${min} to ${Math.min(max, MAX_DWORD)}${unit === undefined ? '' : ` (${unit})`}`;
    case 'string':
      return 'a single line of text';
    case 'string[]':
      return 'strings, one per line, without empty lines or duplicates';
    case 'map<string,boolean>':
    case 'map<string,string>':
      return 'names, each with a string';
  }
}

/** The application's built-in default on Windows. */
export function defaultOnWindows(field: SettingField): JsonValue {
  return field.defaultByPlatform?.win32 ?? field.default;
}

function defaultHelp(field: SettingField): string {
  const value = defaultOnWindows(field);
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : value.join(', ');
  if (typeof value === 'object') return 'empty';
  return value === '' ? 'an empty text' : String(value);
}

function formatHelp({ part, field: { format } }: AdmxPolicy): string[] {
  switch (format) {
    case 'kubernetes-version':
      return [
        part === 'locked'
          ? 'A version is X.Y.Z, such as 1.30.2, and written in no other way. With any other text, "v1.30.2" and ' +
            '"1.30.2+k3s1" too, and with a version that is not on offer, the application does not start while the cluster is on.'
          : 'A version is X.Y.Z, such as 1.30.2; "v1.30.2" and "1.30.2+k3s1" mean the same. Text that is not a version, or an ' +
            'unavailable version, is replaced by the default, with a notice.',
      ];
    case 'noproxy-list':
      return [
        'Each line is an IP address, a CIDR range such as 10.0.0.0/8, or a domain name, with "*." or "." in front if you ' +
          'like. With any other line the application does not start.',
      ];
    case 'extension-pattern-list':
      return ['With a line that does not describe an image the application does not start.'];
    case 'image-name-to-tag':
      return [
        'The name is that of an image without a tag, such as "org/name"; the value is its tag, such as "1.0" or "latest". ' +
          'With any other name or tag the application does not start.',
      ];
    default:
      return [];
  }
}

function statesHelp({ part, field: { type } }: AdmxPolicy): string {
  const meaning =
    part === 'locked'
      ? 'It applies at every start of the application, and users cannot change it.'
      : 'It applies at the first start of the application; users can change it afterwards.';
  const [enabled, ...disabled] = STATES[type];
  return [enabled, meaning, ...disabled, 'Not Configured writes nothing.'].join(' ');
}

const VALUE = ['Enabled writes the value given here.', 'Disabled writes no value, only the version.'] as const;
const TABLE = [
  'Enabled writes the entries given here; an empty list is a value, too.',
  'Disabled removes all entries; if that leaves a key without entries, it is still a value.',
] as const;
const STATES: Readonly<Record<SettingField['type'], readonly [enabled: string, ...disabled: string[]]>> = {
  boolean: ['Enabled writes true, Disabled writes false.'],
  integer: VALUE,
  string: VALUE,
  'string[]': VALUE,
  'map<string,boolean>': TABLE,
  'map<string,string>': TABLE,
};

function needsHelp({ needs }: AdmxPolicy): string[] {
  if (needs.length === 0) return [];
  const paths = needs.map(({ path }) => path).join(', ');
  return [
    `Enabled also sets ${paths} to true, because this value is refused without it. Do not disable the policy for that ` +
      'setting: depending on which of the two is applied last, its value is true anyway, or the application refuses the ' +
      'whole profile and does not start.',
  ];
}

/** Warns about policies that also write this value: the one applied last wins. */
function neededHelp({ part, field: { path } }: AdmxPolicy): string[] {
  const needing = neededBy(path);
  if (needing.length === 0) return [];
  return [
    `The policy for ${needing.join(', ')} also sets this value to true when it is enabled. Do not disable this policy ` +
      'while that one is enabled: depending on which of the two is applied last, this value is true anyway, or the ' +
      `application refuses the whole ${part} profile and does not start.`,
  ];
}

const REGISTRY_TYPES: Readonly<Record<SettingField['type'], string>> = {
  boolean: 'REG_DWORD',
  integer: 'REG_DWORD',
  string: 'REG_SZ',
  'string[]': 'REG_MULTI_SZ',
  'map<string,boolean>': 'REG_DWORD',
  'map<string,string>': 'REG_SZ',
};

function placeHelp({ key, valueName, field: { type } }: AdmxPolicy): string {
  const written = REGISTRY_TYPES[type];
  return type.startsWith('map')
    ? `values of ${key}\\${valueName} (${written})`
    : `value ${valueName} of ${key} (${written})`;
}
