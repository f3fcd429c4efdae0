import { defined, isObject, type JsonObject, type JsonValue } from '../json.ts';
import { type BlockPath, type Blocks, DEFAULT_BLOCKS, type PartialBlocks } from './blocks.gen.ts';
import type { Field, ManagedPath } from './field.ts';
import { BLOCK_FIELDS } from './fields.gen.ts';
import { blockTree, MANAGED_FIELDS, type SchemaTree } from './fields.ts';
import { type BlockProblem, explain, type NoteProblem, type Problem, type ReadValue } from './issue.ts';
import { leafAt, pointerTo } from './leaf-paths.ts';
import { readHostPorts, readMounts, readPause } from './machine-values.ts';
import { mergeBlocks } from './merge.ts';
import { nearest } from './nearest.ts';
import { own, put } from './own.ts';
import { expectedValue, valueProblems } from './value-rules.ts';

/**
 * The blocks of a profile, which the compatible application does not have: schemas that `schemas/gen/blocks.ts` lists. They are stored with the
 * desired state, and appear in no settings document and no deployment profile.
 */
export const BLOCK_NAMES = /* @__PURE__ */ Object.keys(DEFAULT_BLOCKS) as (keyof Blocks)[];

/** Readers of fields whose values have more rules than their schema states. */
const READERS: Partial<Record<BlockPath, ReadValue>> = {
  'machine.mounts': readMounts,
  'machine.hostPorts': readHostPorts,
  'machine.pauseAfterMinutes': readPause,
};

/** True if a path names a field of a block; `machine` alone is a part of the backend in plans. */
export function isBlockPath(path: string): path is BlockPath {
  return BLOCK_FIELDS.some((field) => field.path === path);
}

/** Returns the blocks of a document without its other members. */
export function blocksOf<D extends PartialBlocks>(document: D): Pick<D, keyof D & keyof Blocks> {
  const found = BLOCK_NAMES.flatMap((name) => (document[name] === undefined ? [] : [[name, document[name]]]));
  return Object.fromEntries(found) as Pick<D, keyof D & keyof Blocks>;
}

/** Joins settings and blocks into one object that has a place for every path that a profile can manage. */
export function treeOf(document: { settings: JsonObject } & PartialBlocks): JsonObject {
  return { ...document.settings, ...blocksOf(document) };
}

/** Splits a tree made by `treeOf` into settings and blocks. */
export function partsOf(tree: JsonObject): { settings: JsonObject } & PartialBlocks {
  const settings = Object.entries(tree).filter(([name]) => !blockTree().has(name));
  return { settings: Object.fromEntries(settings), ...blocksOf(tree as PartialBlocks) };
}

/** Returns the settings and block fields that a document mentions, in schema order. */
export function managedLeaves(document: { settings: JsonObject } & PartialBlocks): [ManagedPath, JsonValue][] {
  const tree = treeOf(document);
  return MANAGED_FIELDS.flatMap(({ path }): [ManagedPath, JsonValue][] => {
    const value = leafAt(tree, path);
    return value === undefined ? [] : [[path, value]];
  });
}

/** Reads the blocks of a document in canonical form, leaving out invalid values. */
export function readBlocks(document: JsonObject | PartialBlocks): { blocks: PartialBlocks; problems: BlockProblem[] } {
  const problems: BlockProblem[] = [];
  const blocks: JsonObject = {};
  for (const [name, node] of blockTree()) {
    const value = own(document as JsonObject, name);
    if (value !== undefined && 'section' in node) blocks[name] = readSection([name], value, node.section, problems);
  }
  return { blocks, problems };
}

/** Returns complete blocks from a stored document, with defaults for absent ones, or undefined if one is damaged. */
export function storedBlocks(document: JsonObject): Blocks | undefined {
  const { blocks, problems } = readBlocks(document);
  return problems.length === 0 ? mergeBlocks(DEFAULT_BLOCKS, blocks) : undefined;
}

function readSection(
  names: readonly string[],
  value: JsonValue,
  members: SchemaTree<Field>,
  problems: BlockProblem[],
): JsonObject {
  const read: JsonObject = {};
  if (!isObject(value)) {
    problems.push({ pointer: pointerTo(names), message: `${names.at(-1)} must be a mapping`, expected: 'object' });
    return read;
  }
  for (const key of Object.keys(value)) {
    if (members.has(key)) continue;
    const suggestion = nearest(key, members.keys());
    const message = `"${key}" is not a setting of the ${names.join('.')}`;
    problems.push({
      pointer: pointerTo([...names, key]),
      message,
      part: 'key',
      ...defined({ suggestion }),
    });
  }
  for (const [name, node] of members) {
    const inner = own(value, name);
    if (inner === undefined) continue;
    const place = [...names, name];
    const note: NoteProblem = (below, message, more) =>
      problems.push({ pointer: pointerTo([...place, ...below.map(String)]), message, ...more });
    const kept =
      'section' in node ? readSection(place, inner, node.section, problems) : readField(node.field, inner, note);
    if (kept !== undefined) put(read, name, kept);
  }
  return read;
}

function readField(field: Field, value: JsonValue, note: NoteProblem): JsonValue | undefined {
  const reader = READERS[field.path as BlockPath];
  if (reader) return reader(value, note);
  const problems = field.type === 'map<string,string>' ? textMapProblems(field, value) : valueProblems(field, value);
  for (const { entry, ...problem } of problems) {
    const wrong = entry === undefined || !isObject(value) ? value : (value[entry] ?? null);
    const { message, ...more } = explain({ ...problem, path: field.path, pointer: '' }, JSON.stringify(wrong));
    note(entry === undefined ? [] : [entry], message, more);
  }
  return problems.length === 0 ? value : undefined;
}

function textMapProblems(field: Field, value: JsonValue): Problem[] {
  const problem = { code: 'type', message: '', fatal: false, expected: expectedValue(field) } as const;
  if (!isObject(value)) return [problem];
  const isAccepted = (text: JsonValue) => typeof text === 'string' && field.enum?.includes(text) !== false;
  const wrong = Object.entries(value).filter(([, text]) => text !== null && !isAccepted(text));
  return wrong.map(([entry]) => ({ ...problem, entry }));
}
