import { isObject, type JsonValue } from '../../src/json.ts';
import { fieldAt } from '../../src/settings/fields.ts';
import type { WrittenSetting } from './written-settings.ts';

/**
 * Of settings in force, what may go to other computers: neither secrets nor what describes one computer. A warning names each
 * that said something.
 * @param named paths that were asked for one by one: what describes one computer is kept then, a secret is not.
 */
export function publicSettings(
  settings: readonly WrittenSetting[],
  named: readonly string[],
): { settings: WrittenSetting[]; warnings: string[] } {
  const warnings: string[] = [];
  const kept = settings.filter(({ written, today }) => {
    const field = today && fieldAt(today.path);
    const empty = today === undefined || saysNothing(today.value);
    if (field?.sensitive) {
      if (!empty) warnings.push(`${written} is a secret and was left out; give it with --input or --body to write it.`);
      return false;
    }
    if (!field?.machineOnly || named.includes(field.path) || named.includes(written)) return true;
    if (!empty) warnings.push(`${written} describes this computer and was left out; --only ${written} writes it.`);
    return false;
  });
  return { settings: kept, warnings };
}

function saysNothing(value: JsonValue): boolean {
  return value === '' || (isObject(value) && Object.keys(value).length === 0);
}
