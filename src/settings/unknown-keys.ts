import { defined, isObject, type JsonObject, type JsonValue } from '../json.ts';
import { FIELDS } from './fields.gen.ts';
import { type SchemaNode, schemaTree } from './fields.ts';
import { pointerTo } from './leaf-paths.ts';
import { nearest } from './nearest.ts';
import { own } from './own.ts';
import { isPastSection, pastSetting } from './past.ts';

/** A member that is not a setting. */
export interface UnknownKey {
  /** RFC 6901. */
  pointer: string;
  /** Dotted. */
  path: string;
  /** The member or the dotted path probably intended. */
  suggestion?: string;
}

/** Default limit of the search; a list of this length means that many or more. */
export const MAX_UNKNOWN_KEYS = 2000;
/** Suggestions cost far more than detecting unknown names. */
export const MAX_SUGGESTIONS = 100;

/**
 * Returns the first `most` members of a payload that are not settings, in its order. Their children are not listed, except those of sections of
 * earlier releases. The first hundred have suggestions.
 */
export function unknownKeys(payload: JsonObject, most = MAX_UNKNOWN_KEYS): UnknownKey[] {
  const unknown: UnknownKey[] = [];
  collect(payload, schemaTree(), [], { unknown, most });
  return unknown;
}

function collect(
  object: JsonObject,
  members: ReadonlyMap<string, SchemaNode>,
  above: readonly string[],
  search: { unknown: UnknownKey[]; most: number },
): void {
  const { unknown, most } = search;
  for (const name of Object.keys(object)) {
    if (unknown.length >= most) return;
    const node = members.get(name);
    const names = [...above, name];
    const value = own(object, name);
    // The members of such a section became different settings.
    if (!node && isObject(value) && Object.keys(value).length > 0 && isPastSection(names.join('.'))) {
      collect(value, new Map(), names, search);
    } else if (!node) unknown.push(unknownKey(names, value, unknown.length < MAX_SUGGESTIONS ? members : undefined));
    else if ('section' in node && isObject(value)) collect(value, node.section, names, search);
  }
}

/** Describes an unknown member. Without siblings there is no suggestion. */
function unknownKey(
  names: readonly string[],
  value: JsonValue | undefined,
  siblings: ReadonlyMap<string, SchemaNode> | undefined,
): UnknownKey {
  const name = names.at(-1) ?? '';
  const past = pastSetting(names.join('.'));
  const meant = () => calledElsewhere(name, value) ?? nearest(name, siblings?.keys() ?? []) ?? elsewhere(name);
  // A name of earlier releases is no misspelling of its neighbor.
  const suggestion = siblings && (past ? past.now : meant());
  return { pointer: pointerTo(names), path: names.join('.'), ...defined({ suggestion }) };
}

/** Names that other desktops and machines use for settings. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  ...{ memory: 'virtualMachine.memoryInGB', ram: 'virtualMachine.memoryInGB', memorygb: 'virtualMachine.memoryInGB' },
  ...{ cpus: 'virtualMachine.numberCPUs', cpu: 'virtualMachine.numberCPUs', cores: 'virtualMachine.numberCPUs' },
};

/**
 * Returns the setting that other programs call by this name, with its value if that is a whole number: `memory: 8GB` is `virtualMachine.memoryInGB:
 * 8`.
 */
export function calledElsewhere(name: string, value: JsonValue | undefined): string | undefined {
  const key = name.toLowerCase();
  const path = Object.hasOwn(OTHER_NAMES, key) ? OTHER_NAMES[key] : undefined;
  const number = path === undefined ? undefined : wholeNumber(String(value));
  return number === undefined ? path : `${path}: ${number}`;
}

/** Returns the number in `8`, `8GB` or `8 GiB`. */
export function wholeNumber(text: string): string | undefined {
  return /^([1-9]\d{0,5}) ?(?:G|GB|GiB)?$/i.exec(text)?.[1];
}

let byName: ReadonlyMap<string, readonly string[]> | undefined;

/** Returns the only setting of that name in another section. */
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
