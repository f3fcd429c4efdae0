import type { JsonObject } from '../json.ts';
import { patternWarnings } from '../plan/pattern-warnings.ts';

/** What a plan warns of in settings by themselves, for where nothing is planned. */
export function settingWarnings(settings: JsonObject): string[] {
  return patternWarnings(settings);
}
