import type { JsonValue } from '../../json.ts';
import type { Field } from '../field.ts';
import type { Problem, ValidateContext } from '../issue.ts';
import type { SettingPath } from '../settings.gen.ts';

/** The inputs to a rule beyond one value. */
export interface RuleInput {
  field: Field;
  desired: JsonValue;
  current: JsonValue;
  /** Whether the payload changes this setting, or the named one. */
  changed: boolean;
  changes: (path: SettingPath) => boolean;
  /** The value of a setting after the change. */
  result: (path: SettingPath) => JsonValue | undefined;
  context: ValidateContext;
}

/** Runs after the value itself has passed. */
export type Rule = (input: RuleInput) => Problem[];

/** A fatal conflict with another setting, as one line. */
export function conflict(message: string, fatal = true): Problem[] {
  return [{ code: 'conflict', message, fatal }];
}
