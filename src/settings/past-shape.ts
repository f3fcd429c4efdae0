import { defined, isObject, type JsonObject, type JsonValue } from '../json.ts';
import type { Field, PastSetting } from './field.ts';
import { FIELDS } from './fields.gen.ts';
import { settingAt } from './fields.ts';
import { pointerTo, setLeaf } from './leaf-paths.ts';
import { PAST } from './past.gen.ts';

/** A violation of a shape, in the terms of JSON Schema. */
export interface ShapeError {
  instancePath: string;
  keyword: 'required' | 'additionalProperties' | 'type' | 'enum' | 'minimum' | 'maximum';
  params: Readonly<Record<string, unknown>>;
}

/** Names of a shape at each level; `true` for a value. */
export interface Members {
  readonly [name: string]: Members | true;
}

/** Names and values of documents of some settings versions whose releases differ too little to be told apart. */
export interface PastShape {
  from: number;
  to: number;
  /** Sections by name, and rules of settings. */
  names: Names;
  members: Members;
}

interface Names {
  readonly [name: string]: Names | Rule;
}

/** The types that a value may have. */
interface Rule {
  /** JSON types. */
  types: readonly string[];
  /** JSON types of the entries of a list or map. */
  entries?: readonly string[];
  allowed?: readonly string[];
  min?: number;
  max?: number;
}

type Typed = Partial<Pick<Field, 'type' | 'enum' | 'synonyms' | 'min' | 'max'>> & Pick<PastSetting, 'types'>;

function ruleOf({ type = 'boolean', types, enum: values, synonyms = {}, min, max }: Typed): Rule {
  const entry = /^map<string,(.+)>$/.exec(type)?.[1] ?? (type === 'string[]' ? 'string' : undefined);
  return {
    types: entry === undefined ? (types ?? [type]) : [type === 'string[]' ? 'array' : 'object'],
    ...(entry === undefined ? {} : { entries: types ?? [entry] }),
    ...(values ? { allowed: [...values, ...Object.keys(synonyms)] } : {}),
    ...defined({ min, max }),
  };
}

function isRule(value: Names | Rule): value is Rule {
  return Array.isArray(value.types);
}

/** Before version 8 a strategy could be undecided. */
const UNDECIDED = { at: /pathManagementStrategy$/, value: 'notset', before: 10 };

/** First and last version of each shape, newest first. */
const RANGES: readonly (readonly [from: number, to: number])[] = [
  [16, 18],
  [14, 15],
  [10, 13],
  [6, 9],
  [1, 5],
];

const known = new Map<number, PastShape>();

/** Returns the shape of an older version, or undefined for the newest. */
export function pastShape(version: number): PastShape | undefined {
  const range = RANGES.find(([from, to]) => version >= from && version <= to);
  if (!range) return undefined;
  const [from, to] = range;
  const shape = known.get(from) ?? shapeOf(from, to);
  known.set(from, shape);
  return shape;
}

function shapeOf(from: number, to: number): PastShape {
  const rules = new Map<string, Rule>();
  for (const field of FIELDS) if (field.since <= to) rules.set(field.path, ruleOf(field));
  for (const { path, now, read, from: first = 0, to: last = 0, ...row } of PAST) {
    const [begin, end] = read ?? [first, last];
    if (begin <= to && end >= from) rules.set(path, ruleOf({ ...(now ? settingAt(now) : {}), ...row }));
  }
  const names: JsonObject = {};
  const members: JsonObject = {};
  for (const [path, rule] of rules) {
    const isUndecided = from < UNDECIDED.before && UNDECIDED.at.test(path);
    const { allowed = [] } = rule;
    const whole = isUndecided ? { ...rule, allowed: [UNDECIDED.value, ...allowed] } : rule;
    setLeaf(names, path, { ...whole } as unknown as JsonObject);
    setLeaf(members, path, true);
  }
  return { from, to, names: names as unknown as Names, members: members as unknown as Members };
}

/** Returns every violation of the shape, names before values. */
export function shapeErrors(document: JsonObject, { names }: PastShape): ShapeError[] {
  const missing = 'version' in document ? [] : [error([], 'required', { missingProperty: 'version' })];
  return [...missing, ...sectionErrors(document, names, [])];
}

function sectionErrors(section: JsonObject, names: Names, at: readonly string[]): ShapeError[] {
  const errors = Object.keys(section)
    .filter((name) => !Object.hasOwn(names, name))
    .map((name) => error(at, 'additionalProperties', { additionalProperty: name }));
  for (const [name, expected] of Object.entries(names)) {
    const value = Object.hasOwn(section, name) ? section[name] : undefined;
    if (value === undefined) continue;
    const place = [...at, name];
    if (isRule(expected)) errors.push(...valueErrors(value, expected, place));
    else if (isObject(value)) errors.push(...sectionErrors(value, expected, place));
    else errors.push(error(place, 'type', { type: 'object' }));
  }
  return errors;
}

function valueErrors(value: JsonValue, rule: Rule, at: readonly string[]): ShapeError[] {
  const { types, entries, allowed, min, max } = rule;
  const wrong = typeError(value, types, at);
  if (entries && !wrong) {
    const inner = Object.entries(value as JsonObject);
    return inner.flatMap(([name, entry]) => typeError(entry ?? null, entries, [...at, name]) ?? []);
  }
  const errors = wrong ? [wrong] : [];
  if (allowed && !allowed.some((one) => one === value)) errors.push(error(at, 'enum', { allowedValues: allowed }));
  if (typeof value === 'number' && max !== undefined && value > max) errors.push(error(at, 'maximum', { limit: max }));
  if (typeof value === 'number' && min !== undefined && value < min) errors.push(error(at, 'minimum', { limit: min }));
  return errors;
}

function typeError(value: JsonValue, types: readonly string[], at: readonly string[]): ShapeError | undefined {
  if (types.some((type) => hasType(value, type))) return undefined;
  return error(at, 'type', { type: types.length === 1 ? types[0] : types });
}

function hasType(value: JsonValue, type: string): boolean {
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'array') return Array.isArray(value);
  if (type === 'null') return value === null;
  return type === 'object' ? isObject(value) : typeof value === type;
}

function error(at: readonly string[], keyword: ShapeError['keyword'], params: ShapeError['params']): ShapeError {
  return { instancePath: pointerTo(at), keyword, params };
}
