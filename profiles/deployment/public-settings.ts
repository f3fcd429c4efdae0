import { isObject, type JsonValue } from '../../src/json.ts';
import { PLATFORM_NAMES, type Platform } from '../../src/settings/field.ts';
import { fieldAt } from '../../src/settings/fields.ts';
import type { WrittenSetting } from './written-settings.ts';

/**
 * Of settings in force, what may go to other computers: neither secrets nor what describes one computer, of which a warning names
 * each that said something, nor settings that the computers do not have. The values of such a setting come from the system where
 * they are in force, and would keep the application there from starting.
 * @param named paths that were asked for one by one: only a secret is left out then.
 */
export function publicSettings(
  settings: readonly WrittenSetting[],
  named: readonly string[],
  platform: Platform,
): { settings: WrittenSetting[]; warnings: string[]; notes: string[] } {
  const warnings: string[] = [];
  const foreign: string[] = [];
  const kept = settings.filter(({ written, today }) => {
    const field = today && fieldAt(today.path);
    const asked = field !== undefined && (named.includes(field.path) || named.includes(written));
    if (field && !asked && !field.platforms.includes(platform)) {
      foreign.push(written);
      return false;
    }
    const empty = today === undefined || saysNothing(today.value);
    if (field?.sensitive) {
      if (!empty) warnings.push(`${written} is a secret and was left out; give it with --input or --body to write it.`);
      return false;
    }
    // Empty, it says that the service chose; as a lock it would keep the application from choosing.
    if (field?.path === 'kubernetes.version' && empty && !asked) return false;
    if (!field?.machineOnly || asked) return true;
    if (!empty) warnings.push(`${written} describes this computer and was left out; --only ${written} writes it.`);
    return false;
  });
  const notes =
    foreign.length === 0
      ? []
      : [`left out, because ${PLATFORM_NAMES[platform]} does not have them: ${foreign.join(', ')}.`];
  return { settings: kept, warnings, notes };
}

function saysNothing(value: JsonValue): boolean {
  return value === '' || (isObject(value) && Object.keys(value).length === 0);
}
