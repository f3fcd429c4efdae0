import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import { sameValue } from './canonical.ts';
import type { SettingField } from './field.ts';
import { type SchemaNode, schemaTree, settingAt } from './fields.ts';
import type { Issue, Problem, ValidateContext } from './issue.ts';
import { leafAt, pointerTo } from './leaf-paths.ts';
import { isLocked } from './locks.ts';
import { equal, own } from './own.ts';
import { ALWAYS_FULLY_CHECKED, ninePOption, RULES, type RuleInput } from './rules.ts';
import type { SettingPath } from './settings.gen.ts';
import { valueProblems } from './value-rules.ts';

export type { Issue, ValidateContext } from './issue.ts';
export { unknownKeys } from './unknown-keys.ts';

/**
 * Returns all problems of a payload, in the order of its members. The payload must be migrated and canonical. Unknown
 * members are skipped (`unknownKeys` lists them), and so are rules of unchanged values, unless a changed one depends on
 * them.
 */
export function validate(payload: JsonObject, context: ValidateContext): Issue[] {
  const walk: Walk = { payload, context, issues: [] };
  checkMembers(payload, schemaTree(), [], walk);
  return walk.issues;
}

/** True when merging `desired` would change the setting: map entries not mentioned stay as they are. */
export function isChange(field: SettingField, current: JsonValue | undefined, desired: JsonValue): boolean {
  if (!field.type.startsWith('map') || !isObject(desired)) return !sameValue(field.path, current, desired);
  const stored = isObject(current) ? current : {};
  return Object.keys(desired).some((key) => {
    const value = own(desired, key);
    return value === null ? Object.hasOwn(stored, key) : !equal(value, own(stored, key));
  });
}

interface Walk {
  payload: JsonObject;
  context: ValidateContext;
  issues: Issue[];
}

function checkMembers(
  object: JsonObject,
  members: ReadonlyMap<string, SchemaNode>,
  above: readonly string[],
  walk: Walk,
): void {
  for (const name of Object.keys(object)) {
    const node = members.get(name);
    if (!node) continue;
    const names = [...above, name];
    const value = own(object, name) ?? null;
    if ('field' in node) report(names, node.field.path, leafProblems(node.field, value, walk), walk);
    else if (isObject(value)) checkMembers(value, node.section, names, walk);
    else report(names, names.join('.'), [noSection(names.join('.'), value)], walk);
  }
}

function leafProblems(field: SettingField, desired: JsonValue, { payload, context }: Walk): Problem[] {
  const unsupported = `Changing field "${field.path}" via the API isn't supported.`;
  const current = leafAt(context.current, field.path) ?? null;
  const changed = isChange(field, current, desired);
  if (field.path === 'version') return changed ? [{ code: 'version', message: unsupported, fatal: false }] : [];
  const input: RuleInput = {
    field,
    desired,
    current,
    changed,
    changes: (path) => changesSetting(payload, path, context),
    result: (path) => leafAt(payload, path) ?? leafAt(context.current, path),
    context,
  };
  const lock: Problem = { code: 'locked', message: `field "${field.path}" is locked`, fatal: true };
  const locked = changed && isLocked(context.locked ?? {}, field.path);
  if (locked && context.locksFirst) return [lock];
  const wrong = context.valuesFirst ? intrinsicProblems(input) : [];
  if (wrong.length > 0) return wrong;
  if (changed && !field.platforms.includes(context.platform)) {
    return [{ code: 'platform', message: unsupported, fatal: true }];
  }
  const problems = ruleProblems(input);
  const isRefused = problems.length > 0 && !ALWAYS_FULLY_CHECKED.has(field.path);
  return isRefused || !locked ? problems : [...problems, lock];
}

function ruleProblems(input: RuleInput): Problem[] {
  const { field } = input;
  const frozen = field.path.startsWith('experimental.virtualMachine.mount.9p.') ? ninePOption(input) : [];
  if (frozen.length > 0) return frozen;
  const problems = ownProblems(input);
  if (problems.length > 0 && !ALWAYS_FULLY_CHECKED.has(field.path)) return problems;
  return [...problems, ...(RULES[field.path]?.(input) ?? [])];
}

/** Checks the value itself. A string equivalent to the stored value is checked even so, because it would be stored as a string. */
function ownProblems({ field, desired, current }: RuleInput): Problem[] {
  return equal(desired, current) ? [] : valueProblems(field, desired);
}

/** Returns the problems of a value that do not depend on the platform or other settings. */
function intrinsicProblems(input: RuleInput): Problem[] {
  const problems = ownProblems(input);
  if (problems.length > 0) return problems;
  return (RULES[input.field.path]?.(input) ?? []).filter(({ code }) => code === 'format' || code === 'type');
}

function changesSetting(payload: JsonObject, path: SettingPath, { current }: ValidateContext): boolean {
  const field = settingAt(path);
  const desired = leafAt(payload, path);
  return field !== undefined && desired !== undefined && isChange(field, leafAt(current, path), desired);
}

function noSection(path: string, value: JsonValue): Problem {
  const got = typeof value === 'string' ? value : JSON.stringify(value);
  const message = `Setting "${path}" should wrap an inner object, but got <${got}>.`;
  return { code: 'section', message, fatal: false, expected: 'an object with settings' };
}

function report(names: readonly string[], path: string, problems: readonly Problem[], { issues }: Walk): void {
  for (const { entry, ...problem } of problems) {
    issues.push({ ...problem, path, pointer: pointerTo(entry === undefined ? names : [...names, entry]) });
  }
}
