import { defined, isObject, type JsonObject } from '../json.ts';
import { FIELDS } from './fields.gen.ts';
import { settingAt } from './fields.ts';
import { leafAt, pointerNames, pointerOf, pointerTo, setLeaf } from './leaf-paths.ts';
import { droppedPointers, laterPlace } from './left-over.ts';
import { nearest } from './nearest.ts';
import { copyOfObject } from './own.ts';
import { type Members, pastShape, type ShapeError, shapeErrors } from './past-shape.ts';
import { MAX_SUGGESTIONS } from './unknown-keys.ts';

/** A violation of an older version's shape, without its position. */
export interface ShapeFinding {
  /** A value that violates the shape, a member that never existed here, or one that a later version added. */
  code: 'shape' | 'unknown' | 'newer';
  pointer: string;
  /** The accepted values, for `shape`. */
  expected?: string;
  /** The allowed values of an enum, for `shape`. */
  allowed?: readonly string[];
  /** The member or dotted path of that version probably intended, for `unknown`. */
  suggestion?: string;
  /** First version with the member, for `newer`. */
  since?: number;
}

/** Maps with removable entries; those of version 6 could not be removed. */
const MAPS: readonly { path: string; from: number }[] = [
  { path: 'WSL.integrations', from: 1 },
  { path: 'kubernetes.WSLIntegrations', from: 1 },
  { path: 'diagnostics.mutedChecks', from: 1 },
  { path: 'extensions', from: 7 },
  { path: 'application.extensions.installed', from: 1 },
];

/** Returns the problems of an older document, according to its version's shape. If releases of one version differed, each of their forms is valid. */
export function validateShape(document: JsonObject, version: number): ShapeFinding[] {
  const shape = pastShape(version);
  if (!shape) return [];
  const suggest = suggestions(shape.members, version);
  const found = shapeErrors(withoutRemovals(document, version), shape).map((error) =>
    findingOf(error, version, suggest),
  );
  for (const look of [newerMembers, tooOld, extensionTexts]) {
    const reported = new Set(found.map(({ pointer }) => pointer));
    for (const finding of look(document, version)) {
      if (!isReported(finding.pointer, reported)) found.push(withLaterPlace(finding, version));
    }
  }
  return found;
}

/** Returns the names that older versions have and the newest may not: sections with members, and `true`. */
export function olderMembers(version: number): Members {
  return pastShape(version)?.members ?? {};
}

function findingOf(
  { instancePath, keyword, params }: ShapeError,
  version: number,
  suggest: (names: readonly string[]) => string | undefined,
): ShapeFinding {
  if (keyword !== 'additionalProperties')
    return { code: 'shape', pointer: instancePath, ...expectationOf(keyword, params) };
  const names = [...pointerNames(instancePath), String(params.additionalProperty)];
  const pointer = pointerTo(names);
  const since = sinceOf(names.join('.'));
  if (since !== undefined && since > version) return { code: 'newer', pointer, since };
  const suggestion = suggest(names);
  return { code: 'unknown', pointer, ...defined({ suggestion }) };
}

/** Finds members that the version does not have yet, because a shape covers several versions. */
function newerMembers(document: JsonObject, version: number): ShapeFinding[] {
  return FIELDS.filter(({ path, since }) => since > version && leafAt(document, path) !== undefined).map(
    ({ path, since }) => ({ code: 'newer', pointer: pointerOf(path), since }),
  );
}

function tooOld(document: JsonObject): ShapeFinding[] {
  return droppedPointers(document).map((pointer) => ({ code: 'unknown', pointer }));
}

function withLaterPlace(finding: ShapeFinding, version: number): ShapeFinding {
  if (finding.code !== 'unknown') return finding;
  const suggestion = laterPlace(pointerNames(finding.pointer).join('.'), version);
  return { ...finding, ...defined({ suggestion }) };
}

/** Checks the texts of extensions in version 6, where values were booleans and the tag was part of the name. */
function extensionTexts(document: JsonObject, version: number): ShapeFinding[] {
  const map = version === 6 ? leafAt(document, 'extensions') : undefined;
  if (!isObject(map)) return [];
  return Object.entries(map)
    .filter(([, value]) => typeof value === 'string')
    .map(([name]) => ({ code: 'shape', pointer: pointerTo(['extensions', name]), expected: 'true or false' }));
}

function isReported(pointer: string, reported: ReadonlySet<string>): boolean {
  for (let at = pointer; at !== ''; at = at.slice(0, at.lastIndexOf('/'))) if (reported.has(at)) return true;
  return false;
}

/** Returns the first version with a setting or section at this path. */
function sinceOf(path: string): number | undefined {
  const field = settingAt(path);
  if (field) return field.since;
  const below = FIELDS.filter((each) => each.path.startsWith(`${path}.`)).map(({ since }) => since);
  return below.length === 0 ? undefined : Math.min(...below);
}

/** Returns a function that suggests a sibling, or the only member of that name in the shape. It stops after some names. */
function suggestions(members: Members, version: number): (names: readonly string[]) => string | undefined {
  let paths: readonly string[] | undefined;
  let asked = 0;
  return (names) => {
    asked += 1;
    if (asked > MAX_SUGGESTIONS) return undefined;
    paths ??= pathsOf(members, '').filter((path) => (sinceOf(path) ?? 0) <= version);
    const name = names.at(-1) ?? '';
    const above = names.slice(0, -1).join('.');
    const siblings = paths.filter((path) => path.slice(0, Math.max(0, path.lastIndexOf('.'))) === above);
    const near = nearest(name, siblings.map(lastOf));
    if (near !== undefined) return near;
    const elsewhere = paths.filter((path) => lastOf(path).toLowerCase() === name.toLowerCase());
    return elsewhere.length === 1 ? elsewhere[0] : undefined;
  };
}

function pathsOf(members: Members, prefix: string): string[] {
  return Object.entries(members).flatMap(([name, below]) => {
    const path = `${prefix}${name}`;
    return below === true ? [path] : [path, ...pathsOf(below, `${path}.`)];
  });
}

function lastOf(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1);
}

/** Removes the `null` entries of maps: they remove an entry in documents of every version, but the shapes describe stored settings. */
function withoutRemovals(document: JsonObject, version: number): JsonObject {
  const copy = copyOfObject(document);
  for (const { path, from } of MAPS) {
    const map = version >= from ? leafAt(copy, path) : undefined;
    if (!isObject(map)) continue;
    setLeaf(copy, path, Object.fromEntries(Object.entries(map).filter(([, value]) => value !== null)));
  }
  return copy;
}

function expectationOf(keyword: string, params: ShapeError['params']): Pick<ShapeFinding, 'expected' | 'allowed'> {
  switch (keyword) {
    case 'type':
      return { expected: [params.type].flat().map(typeText).join(' or ') };
    case 'minimum':
      return { expected: `at least ${params.limit}` };
    case 'maximum':
      return { expected: `at most ${params.limit}` };
    case 'enum': {
      const allowed = [params.allowedValues].flat().map(String);
      return { expected: `one of ${allowed.map((value) => JSON.stringify(value)).join(', ')}`, allowed };
    }
    default:
      return {};
  }
}

function typeText(type: unknown): string {
  return TYPES[String(type)] ?? String(type);
}

const TYPES: Readonly<Record<string, string>> = {
  boolean: 'true or false',
  integer: 'an integer',
  number: 'a number',
  string: 'a string',
  array: 'a list',
  object: 'an object',
};
