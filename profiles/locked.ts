import { isObject, type JsonObject, type JsonValue } from '../src/json.ts';
import { placeAt } from '../src/settings/downgrade.ts';
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
    const moved = field || isSection(path) ? undefined : formerPlaces().get(path);
    if (moved !== undefined) {
      report(at, `locked names settings as they are called today, and ${path} is ${moved} now`, {
        part: 'key',
        suggestion: moved,
      });
    } else if (!field && !isSection(path)) {
      const suggestion = nearest(path, candidates(prefix));
      report(at, `${path} is not a setting`, { part: 'key', ...(suggestion === undefined ? {} : { suggestion }) });
    } else if (typeof inner === 'boolean') {
      if (field && !field.lockable) report(at, `${path} cannot be locked`);
      else result[key] = inner;
    } else if (!field && isObject(inner)) {
      result[key] = readLevel(inner, path, at, report);
    } else if (field?.type.startsWith('map<') && isObject(inner)) {
      report(at, `${path} is locked as a whole, and not by its entries`, { expected: 'true or false' });
    } else {
      report(at, `a lock is true or false`, { expected: field ? 'boolean' : 'boolean or a mapping of settings' });
    }
  }
  return result;
}

/** Settings of today by the paths that they had in settings of older versions. */
function formerPlaces(): ReadonlyMap<string, string> {
  former ??= new Map(
    FIELDS.flatMap(({ path, since }) =>
      Array.from({ length: since }, (_, version): [string, string] => [placeAt(path, version) ?? path, path]),
    ),
  );
  return former;
}

let former: ReadonlyMap<string, string> | undefined;

/** Full paths of what may stand directly below `prefix`. */
function candidates(prefix: string): string[] {
  const depth = prefix === '' ? 1 : prefix.split('.').length + 1;
  const below = FIELDS.filter((field) => prefix === '' || field.path.startsWith(`${prefix}.`));
  return [...new Set(below.map((field) => field.path.split('.').slice(0, depth).join('.')))];
}
