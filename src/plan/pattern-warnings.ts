import { parsePattern } from '../allowed-images/pattern.ts';
import type { JsonObject } from '../json.ts';
import { leafAt } from '../settings/leaf-paths.ts';
import type { SettingPath } from '../settings/settings.gen.ts';

const PATTERNS: SettingPath = 'containerEngine.allowedImages.patterns';

/**
 * Sentences about patterns of allowed images that can match nothing. The setting takes any text, so none of them stops anything;
 * but whoever writes a pattern means some image.
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
