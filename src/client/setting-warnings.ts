import type { JsonObject } from '../json.ts';
import { patternWarnings } from '../plan/pattern-warnings.ts';

/** A plan's warnings about settings, for commands that do not plan. */
export function settingWarnings(settings: JsonObject): string[] {
  return patternWarnings(settings);
}
