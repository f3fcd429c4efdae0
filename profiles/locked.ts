import { isObject, type JsonObject, type JsonValue } from '../src/json.ts';
import { FIELDS } from '../src/settings/fields.gen.ts';
import { fieldAt, isSection, nearest } from '../src/settings/fields.ts';
import { child, type Report } from './report.ts';

/** Checks `locked`: settings names all the way down, and `true` or `false` at each setting or whole section. */
export function readLocked(value: JsonValue, report: Report): JsonObject {
  if (isObject(value)) return readLevel(value, '', '/locked', report);
  report('/locked', 'locked must be a mapping of settings to true', { expected: 'object' });
  return {};
}

function readLevel(value: JsonObject, prefix: string, pointer: string, report: Report): JsonObject {
  const result: JsonObject = {};
  for (const [key, inner] of Object.entries(value)) {
    const path = prefix === '' ? key : `${prefix}.${key}`;
    const at = child(pointer, key);
    const field = fieldAt(path);
    if (!field && !isSection(path)) {
      const suggestion = nearest(path, candidates(prefix));
      report(at, `${path} is not a setting`, { part: 'key', ...(suggestion === undefined ? {} : { suggestion }) });
    } else if (typeof inner === 'boolean') {
      if (field && !field.lockable) report(at, `${path} cannot be locked`);
      else result[key] = inner;
    } else if (!field && isObject(inner)) {
      result[key] = readLevel(inner, path, at, report);
    } else {
      report(at, `a lock is true or false`, { expected: field ? 'boolean' : 'boolean or a mapping of settings' });
    }
  }
  return result;
}

/** Full paths of what may stand directly below `prefix`. */
function candidates(prefix: string): string[] {
  const depth = prefix === '' ? 1 : prefix.split('.').length + 1;
  const below = FIELDS.filter((field) => prefix === '' || field.path.startsWith(`${prefix}.`));
  return [...new Set(below.map((field) => field.path.split('.').slice(0, depth).join('.')))];
}
