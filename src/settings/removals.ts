import { isObject, type JsonObject } from '../json.ts';
import { FIELDS } from './fields.gen.ts';
import { leafAt, setLeaf } from './leaf-paths.ts';
import { copyOfObject } from './own.ts';

/**
 * What is to be judged of a desired state: there `null` removes an entry of every map, while a write of settings cannot remove
 * one of a map of texts.
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
