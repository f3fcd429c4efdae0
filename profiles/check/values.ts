import { defined, type JsonValue } from '../../src/json.ts';
import { canonicalKubernetesVersion, isKubernetesVersion, parseByteSize } from '../../src/settings/canonical.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import type { Platform, SettingField } from '../../src/settings/field.ts';
import type { Problem, ValidateContext } from '../../src/settings/issue.ts';
import { nearest } from '../../src/settings/nearest.ts';
import { equal } from '../../src/settings/own.ts';
import { RELEASES, releaseIndex } from '../../src/settings/releases.ts';
import { ninePOption, RULES, type RuleInput } from '../../src/settings/rules.ts';
import type { SettingPath } from '../../src/settings/settings.gen.ts';
import { expectedValue, valueProblems } from '../../src/settings/value-rules.ts';
import type { System } from './atlas.ts';
import type { Effect } from './finding.ts';
import type { Judgement } from './reading.ts';

/** Returns the value of a current setting in a profile for one release; undefined if the release lacks the setting or the type is wrong. */
export type Values = (path: SettingPath) => JsonValue | undefined;

const DISK = 'experimental.virtualMachine.diskSize';
const STRATEGY = 'application.pathManagementStrategy';
const MAX_QUOTED = 60;

/**
 * Validates a value as the application does when it starts, against the built-in defaults, so that a default is valid even if its setting could not
 * be changed.
 *
 * Exact for the newest release. Of earlier ones, the settings, their types and different defaults are known, and that `notset` was a path strategy
 * before 1.9; for everything else (values of other closed lists, bounds, rules between settings) the rules of the newest release apply.
 */
export function judgeValue(
  value: JsonValue,
  field: SettingField,
  values: Values,
  system: System,
): readonly Judgement[] {
  const { path } = field;
  const current = system.defaults.get(path) ?? null;
  const elsewhere = system.elsewhere.get(path);
  if (elsewhere !== undefined) return equal(value, current) ? NONE : [{ effect: 'refused', reason: elsewhere }];
  if (path === 'kubernetes.version') return NONE;
  if (path === STRATEGY && value === 'notset' && current === 'notset') return NONE;
  const rule = RULES[path];
  const option = path.startsWith(NINE_P);
  if (!rule && !option) return wrongByItself(field, value);
  const input = ruleInput(field, value, current, values, system);
  const frozen = option ? ninePOption(input) : [];
  if (frozen.length > 0) return frozen.map((problem) => judgementOf(problem, field, value));
  const own = wrongByItself(field, value);
  if (own.length > 0 || !rule || path === DISK) return own;
  return rule(input).map((problem) => judgementOf(problem, field, value));
}

const NONE: readonly Judgement[] = [];
const NINE_P = 'experimental.virtualMachine.mount.9p.';

const STORED_AS_WRITTEN: Judgement = {
  effect: 'ignored',
  reason: 'it is stored as written, but no engine is named "docker"',
  suggestion: 'moby',
};

/** Returns problems of the value alone. A fraction is a valid number, as in every release. */
function wrongByItself(field: SettingField, value: JsonValue): readonly Judgement[] {
  if (typeof value === 'boolean') return NONE;
  if (field.type === 'integer' && typeof value === 'number') {
    const inRange = value >= (field.min ?? value) && value <= (field.max ?? value);
    return inRange ? NONE : [{ effect: 'refused', reason: `it cannot be ${value}; expected ${expectedValue(field)}` }];
  }
  if (field.path === 'containerEngine.name' && value === 'docker') return [STORED_AS_WRITTEN];
  if (field.path === DISK && typeof value === 'string') return diskJudgements(field, value);
  return valueProblems(field, value).map((problem) => judgementOf(problem, field, value));
}

/** Checks a disk size. The default has been the same since the setting exists. */
function diskJudgements(field: SettingField, desired: string): readonly Judgement[] {
  // The application counts an upper-case I as decimal.
  const bytes = parseByteSize(desired) === undefined ? undefined : parseByteSize(desired.replace(/I([bB])$/, '$1'));
  if (bytes === undefined) {
    return [{ effect: 'refused', reason: `it cannot be ${quoteValue(desired)}; expected ${expectedValue(field)}` }];
  }
  const least = String(field.default);
  if (bytes >= (parseByteSize(least) ?? 0)) return NONE;
  return [{ effect: 'refused', reason: `a profile cannot ask for less than the default, ${quoteValue(least)}` }];
}

function judgementOf({ code, message, expected, entry }: Problem, field: SettingField, desired: JsonValue): Judgement {
  const at = entry === undefined ? {} : { entry };
  if (code === 'conflict' || code === 'format' || code === 'duplicates') {
    // Removed, because the finding names the field already.
    const text = message.replace(/\.$/, '').replace(`${field.path}: `, '');
    return { effect: 'refused', reason: text, ...at };
  }
  const wanted = expected ?? expectedValue(field);
  if (field.sensitive || typeof desired === 'object') return { effect: 'refused', reason: `expected ${wanted}`, ...at };
  const close = typeof desired === 'string' ? nearest(desired, field.enum ?? []) : undefined;
  const reason = `it cannot be ${quoteValue(desired)}; expected ${wanted}`;
  return { effect: 'refused', reason, ...at, ...defined({ suggestion: close }) };
}

function quoteValue(value: JsonValue): string {
  const text = JSON.stringify(value);
  return text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text;
}

function ruleInput(
  field: SettingField,
  desired: JsonValue,
  current: JsonValue,
  values: Values,
  { platform, defaults }: System,
): RuleInput {
  return {
    field,
    desired,
    current,
    changed: !equal(desired, current),
    changes: (path) => values(path) !== undefined && !equal(values(path), defaults.get(path)),
    result: (path) => values(path) ?? defaults.get(path),
    context: CONTEXTS[platform],
  };
}

/** Contexts of validation. Rosetta needs Apple silicon, which is assumed. */
const CONTEXTS: Readonly<Record<Platform, ValidateContext>> = {
  darwin: contextOn('darwin', 'arm64'),
  linux: contextOn('linux', 'x64'),
  win32: contextOn('win32', 'x64'),
};

function contextOn(platform: Platform, arch: string): ValidateContext {
  return { platform, arch, current: defaultSettings({ platform, arch }) };
}

const PLAIN = /^\d+\.\d+\.\d+$/;

/**
 * Returns the reason why the application quits over a locked version as soon as it starts a cluster; undefined if it does not. An empty version
 * leaves the choice to the application. The versions that a release offers are not known here.
 */
export function lockedVersionReason(version: string): string | undefined {
  if (version === '' || PLAIN.test(version)) return undefined;
  const plain = canonicalKubernetesVersion(version);
  if (plain !== version) return `with a locked version that is not written as ${plain}, the cluster does not start`;
  return 'with a locked version other than a plain X.Y.Z, the cluster does not start';
}

/** Returns the reason why the application replaces the version of a defaults profile by its own choice; undefined if it does not. */
export function unusableVersionReason(version: string): string | undefined {
  if (version === '' || isKubernetesVersion(canonicalKubernetesVersion(version))) return undefined;
  return 'it is not a version, so the application uses its own default';
}

/** A problem with the version of a profile. */
interface VersionFault {
  effect: Effect;
  reason: string;
  /** Whether nothing else of the profile is read. */
  end: boolean;
}

/** The first release that requires a version; earlier ones read a profile without one as theirs. */
const FIRST_WITH_VERSIONS = '1.12';

/** Checks the version of a profile. The registry has no fractions, which `holding.ts` reports. */
export function versionFault(version: JsonValue | undefined, { release }: System): VersionFault | undefined {
  if (version === undefined) {
    const optional = releaseIndex(release.name) < releaseIndex(FIRST_WITH_VERSIONS);
    return optional ? undefined : stop('it is missing, and the application does not start without it');
  }
  if (typeof version !== 'number') return stop('it is not a number');
  if (version <= 0) return stop('it is not greater than 0');
  if (version > release.settingsVersion) return { effect: 'refused', reason: newerReason(version), end: false };
  if (Number.isInteger(version)) return undefined;
  return { effect: 'changed', reason: 'no migration runs for a version with a fraction', end: false };
}

/** Explains that a version is too new, in the same words for every release before the first that knows it. */
function newerReason(version: number): string {
  const first = RELEASES.find(({ settingsVersion }) => settingsVersion >= version);
  if (first) return `settings version ${version} requires ${first.name} or later`;
  const { name = '', settingsVersion = 0 } = RELEASES.at(-1) ?? {};
  return `settings version ${version} is newer than ${settingsVersion}, the newest that ${name} supports`;
}

function stop(reason: string): VersionFault {
  return { effect: 'refused', reason, end: true };
}
