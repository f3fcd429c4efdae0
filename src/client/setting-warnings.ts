import { patternWarnings } from '../allowed-images/pattern.ts';
import type { JsonObject } from '../json.ts';

/** A plan's warnings about settings, for commands that do not plan. */
export function settingWarnings(settings: JsonObject): string[] {
  return patternWarnings(settings);
}
