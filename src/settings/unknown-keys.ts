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

/** The search ends with this many, unless told; a list of this length stands for that many or more. */
export const MOST_UNKNOWN_KEYS = 2000;
/** Looking for the name that was meant costs far more than finding that a name is unknown. */
export const MOST_SUGGESTIONS = 100;

/**
 * Members of a payload that belong to no setting, in its order, the first `most` of them; what is below such a member is not
 * looked at. The first hundred carry suggestions.
 */
export function unknownKeys(payload: JsonObject, most = MOST_UNKNOWN_KEYS): UnknownKey[] {
  const found: UnknownKey[] = [];
  collect(payload, schemaTree(), [], { found, most });
  return found;
}

function collect(
  object: JsonObject,
  members: ReadonlyMap<string, SchemaNode>,
  above: readonly string[],
  search: { found: UnknownKey[]; most: number },
): void {
  const { found, most } = search;
  for (const name of Object.keys(object)) {
    if (found.length >= most) return;
    const node = members.get(name);
    const names = [...above, name];
    const value = own(object, name);
    if (!node) found.push(unknownKey(names, found.length < MOST_SUGGESTIONS ? members : undefined));
    else if ('section' in node && isObject(value)) collect(value, node.section, names, search);
  }
}

/** Without siblings nothing is suggested. */
function unknownKey(names: readonly string[], siblings: ReadonlyMap<string, SchemaNode> | undefined): UnknownKey {
  const name = names.at(-1) ?? '';
  const suggestion = siblings && (nearest(name, siblings.keys()) ?? elsewhere(name));
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
