import type { JsonValue } from '../../json.ts';
import type { Field } from '../field.ts';
import type { Problem, ValidateContext } from '../issue.ts';
import type { SettingPath } from '../settings.gen.ts';

/** What a rule that looks beyond one value may look at. */
export interface RuleInput {
  field: Field;
  desired: JsonValue;
  current: JsonValue;
  /** Does the payload change this setting, or the named one? */
  changed: boolean;
  changes: (path: SettingPath) => boolean;
  /** The value that a setting would have after the change. */
  result: (path: SettingPath) => JsonValue | undefined;
  context: ValidateContext;
}

/** Runs after the value itself was found right. */
export type Rule = (input: RuleInput) => Problem[];

/** A fatal conflict with another setting, as one line. */
export function conflict(message: string, fatal = true): Problem[] {
  return [{ code: 'conflict', message, fatal }];
}
