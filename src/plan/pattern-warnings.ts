import { parsePattern } from '../allowed-images/pattern.ts';
import type { JsonObject } from '../json.ts';
import { leafAt } from '../settings/leaf-paths.ts';
import type { SettingPath } from '../settings/settings.gen.ts';

const PATTERNS: SettingPath = 'containerEngine.allowedImages.patterns';

/**
 * Warnings about image patterns that cannot match anything. They do not block, because the setting accepts any text,
 * but such a pattern is probably a mistake.
 */
export function patternWarnings(settings: JsonObject): string[] {
  const patterns = leafAt(settings, PATTERNS);
  if (!Array.isArray(patterns)) return [];
  return [...new Set(patterns)].flatMap((text) => {
    const parsed = typeof text === 'string' ? parsePattern(text) : undefined;
    if (!parsed || !('unusable' in parsed)) return [];
    return [`The pattern ${JSON.stringify(text)} in "${PATTERNS}" matches nothing: ${parsed.unusable}.`];
  });
}
