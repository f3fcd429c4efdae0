import { isObject, type JsonValue } from '../../src/json.ts';
import { parseByteSize } from '../../src/settings/byte-size.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { type Field, PLATFORM_NAMES, type Platform } from '../../src/settings/field.ts';
import type { Problem, ValidateContext } from '../../src/settings/issue.ts';
import { nearest } from '../../src/settings/nearest.ts';
import { equal } from '../../src/settings/own.ts';
import { RULES } from '../../src/settings/rules/index.ts';
import { ninePOption } from '../../src/settings/rules/machine.ts';
import type { RuleInput } from '../../src/settings/rules/rule.ts';
import { expectedValue, valueProblems } from '../../src/settings/rules/value.ts';
import type { SettingPath } from '../../src/settings/settings.gen.ts';
import type { Effect } from './finding.ts';
import type { System } from './system.ts';

/** What a release makes of the value of a setting. */
export interface Judgement {
  effect: Effect;
  reason: string;
  suggestion?: string;
  /** Key of the entry of a map, or index of the item of a list. */
  entry?: string;
}

/** The settings that a profile has for one release, by the paths of today, in the types that they must have. */
export type Values = ReadonlyMap<SettingPath, JsonValue>;

const DISK = 'experimental.virtualMachine.diskSize';
const STRATEGY = 'application.pathManagementStrategy';
const MOST_QUOTED = 60;

/**
 * The validation of a profile when the application starts (settings facts, 4.4): each value against the built-in defaults,
 * so that a default passes where its setting could not be changed.
 *
 * Exact for the newest release. Of earlier ones the facts tell the settings, their types, their defaults where these differed, and
 * that `notset` was a path strategy before 1.9; for everything else (the values of other closed lists, bounds,
 * rules between settings) the rules of the newest release stand in.
 */
export function judgeValue(field: Field, desired: JsonValue, values: Values, system: System): Judgement[] {
  const current = system.defaults.get(field.path) ?? null;
  const changed = !equal(desired, current);
  if (!field.platforms.includes(system.platform)) return changed ? [otherPlatform(field, current)] : [];
  if (field.path === 'kubernetes.version') return [];
  if (field.path === 'containerEngine.name' && desired === 'docker') return [STORED_AS_WRITTEN];
  if (field.path === STRATEGY && desired === 'notset' && current === 'notset') return [];
  if (typeof desired === 'boolean' && !RULES[field.path]) return [];
  const input = ruleInput(field, desired, current, changed, values, system);
  const frozen = field.path.startsWith('experimental.virtualMachine.mount.9p.') ? ninePOption(input) : [];
  if (frozen.length > 0) return frozen.map((problem) => judgementOf(problem, field, desired));
  const own = ownJudgements(field, desired, current);
  if (own.length > 0 || field.path === DISK) return own;
  return (RULES[field.path]?.(input) ?? []).map((problem) => judgementOf(problem, field, desired));
}

const STORED_AS_WRITTEN: Judgement = {
  effect: 'ignored',
  reason: 'it is stored as it is written, and no engine is called "docker"',
  suggestion: 'moby',
};

function otherPlatform(field: Field, value: JsonValue): Judgement {
  const platforms = field.platforms.map((platform) => PLATFORM_NAMES[platform]).join(' and ');
  const passes =
    isObject(value) || Array.isArray(value) ? 'nothing but the default' : `nothing but ${JSON.stringify(value)}`;
  return { effect: 'refused', reason: `${platforms} only; ${passes} passes elsewhere` };
}

/** What is wrong with the value alone. A fraction passes for a number, as it does in every release. */
function ownJudgements(field: Field, desired: JsonValue, current: JsonValue): Judgement[] {
  if (field.type === 'integer' && typeof desired === 'number') {
    const inRange = desired >= (field.min ?? desired) && desired <= (field.max ?? desired);
    return inRange ? [] : [{ effect: 'refused', reason: `it cannot be ${desired}; expected ${expectedValue(field)}` }];
  }
  if (field.path === DISK && typeof desired === 'string') return diskJudgements(field, desired, current);
  return valueProblems(field, desired).map((problem) => judgementOf(problem, field, desired));
}

function diskJudgements(field: Field, desired: string, current: JsonValue): Judgement[] {
  // An upper-case I counts as decimal (settings facts, 3.5.1).
  const bytes = parseByteSize(desired) === undefined ? undefined : parseByteSize(desired.replace(/I([bB])$/, '$1'));
  if (bytes === undefined) {
    return [{ effect: 'refused', reason: `it cannot be ${quoted(desired)}; expected ${expectedValue(field)}` }];
  }
  const least = typeof current === 'string' ? (parseByteSize(current) ?? 0) : 0;
  if (bytes >= least) return [];
  return [{ effect: 'refused', reason: `a profile cannot ask for less than the default, ${quoted(String(current))}` }];
}

function judgementOf({ code, message, expected, entry }: Problem, field: Field, desired: JsonValue): Judgement {
  const at = entry === undefined ? {} : { entry };
  if (code === 'conflict' || code === 'format' || code === 'duplicates') {
    // The finding names the field already.
    const text = message.replace(/\.$/, '').replace(`${field.path}: `, '');
    return { effect: 'refused', reason: text, ...at };
  }
  const wanted = expected ?? expectedValue(field);
  if (field.sensitive || typeof desired === 'object') return { effect: 'refused', reason: `expected ${wanted}`, ...at };
  const close = typeof desired === 'string' ? nearest(desired, field.enum ?? []) : undefined;
  const reason = `it cannot be ${quoted(desired)}; expected ${wanted}`;
  return { effect: 'refused', reason, ...at, ...(close === undefined ? {} : { suggestion: close }) };
}

function quoted(value: JsonValue): string {
  const text = JSON.stringify(value);
  return text.length > MOST_QUOTED ? `${text.slice(0, MOST_QUOTED)}…` : text;
}

function ruleInput(
  field: Field,
  desired: JsonValue,
  current: JsonValue,
  changed: boolean,
  values: Values,
  { platform, defaults }: System,
): RuleInput {
  return {
    field,
    desired,
    current,
    changed,
    changes: (path) => values.has(path) && !equal(values.get(path), defaults.get(path)),
    result: (path) => values.get(path) ?? defaults.get(path),
    context: CONTEXTS[platform],
  };
}

/** Rosetta needs a processor of Apple, which is what a fleet of today has. */
const CONTEXTS: Readonly<Record<Platform, ValidateContext>> = {
  darwin: contextOn('darwin', 'arm64'),
  linux: contextOn('linux', 'x64'),
  win32: contextOn('win32', 'x64'),
};

function contextOn(platform: Platform, arch: string): ValidateContext {
  return { platform, arch, current: defaultSettings({ platform, arch }) };
}
