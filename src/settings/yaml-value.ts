import { isAlias, isMap, isScalar, isSeq, type Pair, type YAMLMap, type YAMLSeq } from 'yaml';
import { defined, type JsonObject, type JsonValue } from '../json.ts';
import { FIELDS } from './fields.gen.ts';
import { pointerNames, pointerTo } from './leaf-paths.ts';
import { copyOf, put } from './own.ts';

/** Offsets of a value and, if it has one, its key. */
interface Place {
  key?: number;
  start: number;
  end: number;
}

/** A composed YAML document converted to JSON. */
export interface Conversion {
  value: JsonValue;
  places: ReadonlyMap<string, Place>;
  problems: readonly { offset: number; pointer: string; message: string; expected?: string }[];
}

/** Maximum characters of JSON that all aliases of a document may expand to. */
const ALIAS_BUDGET = 100_000;
const LONGEST_QUOTE = 60;
const FORBIDDEN = new Set(['__proto__', 'constructor', 'prototype']);

interface State {
  places: Map<string, Place>;
  problems: { offset: number; pointer: string; message: string; expected?: string }[];
  /** Complete values by anchor name; an anchor is absent while its own value is being converted. */
  anchors: Map<string, JsonValue>;
  /** Characters that the aliases have expanded to. */
  expanded: number;
}

/**
 * Converts a composed node. Duplicate keys, keys that are not names, keys that would reach a prototype, values that
 * JSON lacks and exploding aliases are problems; everything else is still converted.
 */
export function jsonOf(root: unknown): Conversion {
  const state: State = { places: new Map(), problems: [], anchors: new Map(), expanded: 0 };
  return { value: convert(root, '', undefined, state), places: state.places, problems: state.problems };
}

function convert(node: unknown, pointer: string, key: number | undefined, state: State): JsonValue {
  const [start, end] = rangeOf(node, key ?? 0);
  state.places.set(pointer, { ...defined({ key }), start, end });
  const value = plain(node, pointer, start, state);
  if ((isScalar(node) || isMap(node) || isSeq(node)) && node.anchor) state.anchors.set(node.anchor, value);
  return value;
}

function plain(node: unknown, pointer: string, start: number, state: State): JsonValue {
  if (isMap(node)) return members(node, pointer, state);
  if (isSeq(node)) return items(node, pointer, state);
  if (isAlias(node)) return resolveAlias(node.source, pointer, start, state);
  const value: unknown = isScalar(node) ? node.value : null;
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value;
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  state.problems.push({
    offset: start,
    pointer,
    message: `${quoteScalar(node, pointer)} cannot be represented in JSON`,
  });
  return null;
}

/** Quotes the value as written, except in place of a secret, which may look like a number. */
function quoteScalar(node: unknown, pointer: string): string {
  const written = isScalar(node) ? (node.source ?? '') : '';
  const names = pointerNames(pointer).join('.');
  const secret = FIELDS.some(({ path, sensitive }) => sensitive && `.${names}`.endsWith(`.${path}`));
  return secret || written === '' || written.length > LONGEST_QUOTE ? 'this value' : written;
}

function items(node: YAMLSeq, pointer: string, state: State): JsonValue {
  return node.items.map((item, index) => convert(item, `${pointer}/${index}`, undefined, state));
}

function members(node: YAMLMap, pointer: string, state: State): JsonObject {
  const result: JsonObject = {};
  const seen = new Set<string>();
  for (const pair of node.items) {
    const [offset] = rangeOf(pair.key, rangeOf(node, 0)[0]);
    const name = nameOf(pair);
    if (name === undefined) {
      state.problems.push({ offset, pointer, message: 'a key must be a name' });
      continue;
    }
    const at = `${pointer}${pointerTo([name])}`;
    const misread = misreadKey(name, pair);
    if (misread !== undefined) {
      state.problems.push({ offset, pointer, message: misread });
    } else if (FORBIDDEN.has(name)) {
      state.problems.push({ offset, pointer: at, message: `the key "${name}" is not allowed` });
    } else if (seen.has(name)) {
      state.problems.push({ offset, pointer: at, message: `the key "${name}" appears twice` });
    } else {
      seen.add(name);
      put(result, name, convert(pair.value, at, offset, state));
    }
  }
  return result;
}

/** Returns the mistake in a key that begins like a comment of another language, or undefined for any other. */
export function foreignComment(key: string): string | undefined {
  const begin = /^\/[*/]/.exec(key)?.[0];
  if (begin === undefined) return undefined;
  return `a key begins with "${begin}": JSON has no comments; in YAML, a comment begins with "#"`;
}

/** Returns the reason that a key without quotes is certainly not what its author means, or undefined. */
function misreadKey(name: string, { key, value }: Pair): string | undefined {
  if (!isScalar(key) || key.type !== 'PLAIN') return undefined;
  const comment = foreignComment(name);
  if (comment !== undefined) return comment;
  if (name !== '<<' || !(isAlias(value) || isMap(value) || isSeq(value))) return undefined;
  return 'merge keys ("<<") belong to YAML 1.1; write the keys here, or give several files, of which later ones win';
}

/** Returns the name of a key, taken literally: `1.30: x` has the key `1.30`. */
function nameOf({ key }: Pair): string | undefined {
  if (!isScalar(key)) return undefined;
  if (typeof key.value === 'string') return key.value;
  return key.value === null ? undefined : (key.source ?? String(key.value));
}

function resolveAlias(name: string, pointer: string, start: number, state: State): JsonValue {
  const value = state.anchors.get(name);
  if (value === undefined) {
    state.problems.push({
      offset: start,
      pointer,
      message: 'unknown alias; "*" starts an alias',
    });
    return null;
  }
  if (state.expanded > ALIAS_BUDGET) return null;
  state.expanded += JSON.stringify(value).length;
  if (state.expanded > ALIAS_BUDGET) {
    state.problems.push({
      offset: start,
      pointer,
      message: `the aliases expand to more than ${ALIAS_BUDGET} characters`,
    });
    return null;
  }
  return copyOf(value);
}

function rangeOf(node: unknown, otherwise: number): [number, number] {
  const range = isScalar(node) || isMap(node) || isSeq(node) || isAlias(node) ? node.range : undefined;
  return range ? [range[0], range[1]] : [otherwise, otherwise];
}
