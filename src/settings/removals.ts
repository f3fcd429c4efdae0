import { isObject, type JsonObject } from '../json.ts';
import { FIELDS } from './fields.gen.ts';
import { leafAt, setLeaf } from './leaf-paths.ts';
import { copyOfObject } from './own.ts';

/**
 * The part of a desired state to validate: there `null` removes an entry of any map, while a settings write cannot
 * remove one from a map of strings.
 */
export function withoutRemovals(settings: JsonObject): JsonObject {
  const copy = copyOfObject(settings);
  for (const { path, type } of FIELDS) {
    const map = type === 'map<string,string>' ? leafAt(copy, path) : undefined;
    if (isObject(map))
      setLeaf(copy, path, Object.fromEntries(Object.entries(map).filter(([, value]) => value !== null)));
  }
  return copy;
}
