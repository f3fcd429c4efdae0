import { isObject, type JsonObject } from '../json.ts';
import { FIELDS } from './fields.gen.ts';
import { type SchemaNode, schemaTree } from './fields.ts';
import { pointerTo } from './leaf-paths.ts';
import { nearest } from './nearest.ts';
import { own } from './own.ts';

/** A member that no setting has. */
export interface UnknownKey {
  /** RFC 6901. */
  pointer: string;
  /** Dotted. */
  path: string;
  /** The member or the dotted path that was probably meant. */
  suggestion?: string;
}

/** Members of a payload that belong to no setting, in its order; what is below such a member is not looked at. */
export function unknownKeys(payload: JsonObject): UnknownKey[] {
  return unknownMembers(payload, schemaTree(), []);
}

function unknownMembers(
  object: JsonObject,
  members: ReadonlyMap<string, SchemaNode>,
  above: readonly string[],
): UnknownKey[] {
  const found: UnknownKey[] = [];
  for (const name of Object.keys(object)) {
    const node = members.get(name);
    const names = [...above, name];
    const value = own(object, name);
    if (!node) found.push(unknownKey(names, members));
    else if ('section' in node && isObject(value)) found.push(...unknownMembers(value, node.section, names));
  }
  return found;
}

function unknownKey(names: readonly string[], siblings: ReadonlyMap<string, SchemaNode>): UnknownKey {
  const name = names.at(-1) ?? '';
  const suggestion = nearest(name, siblings.keys()) ?? elsewhere(name);
  return { pointer: pointerTo(names), path: names.join('.'), ...(suggestion === undefined ? {} : { suggestion }) };
}

let byName: ReadonlyMap<string, readonly string[]> | undefined;

/** The one setting of that name in another section. */
function elsewhere(name: string): string | undefined {
  byName ??= pathsByName();
  const paths = byName.get(name.toLowerCase()) ?? [];
  return paths.length === 1 ? paths[0] : undefined;
}

function pathsByName(): ReadonlyMap<string, readonly string[]> {
  const paths = new Map<string, string[]>();
  for (const { path } of FIELDS) {
    const name = path.slice(path.lastIndexOf('.') + 1).toLowerCase();
    paths.set(name, [...(paths.get(name) ?? []), path]);
  }
  return paths;
}
