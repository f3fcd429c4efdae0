import { isObject, type JsonObject, type JsonValue } from '../json.ts';
import { parseByteSize } from './canonical.ts';
import type { Field } from './field.ts';
import type { Problem } from './issue.ts';
import { own } from './own.ts';
import { versionNotFound } from './rules.ts';

/** Returns the problems of a value by itself, independent of other settings. */
export function valueProblems(field: Field, value: JsonValue): Problem[] {
  switch (field.type) {
    case 'boolean':
      return typeof value === 'boolean' ? [] : [wrongType(field, value)];
    case 'integer':
      return integerProblems(field, value);
    case 'string':
      return stringProblems(field, value);
    case 'string[]':
      return listProblems(field, value);
    case 'map<string,boolean>':
    case 'map<string,string>':
      return mapProblems(field, value);
  }
}

/** Describes a setting's accepted values, as a phrase for findings. */
export function expectedValue(field: Field): string {
  if (field.format === 'ports') return 'a list of ports and ranges of ports';
  if (field.enum && field.type === 'map<string,string>') {
    return `a map of ${field.format ?? 'names'} to ${field.enum.join(', ')} or null`;
  }
  if (field.enum) return `one of ${field.enum.map((value) => `"${value}"`).join(', ')}`;
  switch (field.type) {
    case 'boolean':
      return 'true or false';
    case 'integer':
      return `an integer${rangeText(field)}`;
    case 'string':
      return field.format === 'byte-size' ? 'a size such as "100GiB"' : 'a string';
    case 'string[]':
      return 'a list of strings';
    case 'map<string,boolean>':
      return 'a map of names to true, false or null';
    case 'map<string,string>':
      return 'a map of names to strings';
  }
}

function wrongType(field: Field, value: JsonValue): Problem {
  return invalid(field, field.path, value, 'type');
}

function integerProblems(field: Field, value: JsonValue): Problem[] {
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) return [wrongType(field, value)];
  const inRange = value >= (field.min ?? value) && value <= (field.max ?? value);
  return inRange ? [] : [invalid(field, field.path, value, 'range')];
}

function stringProblems(field: Field, value: JsonValue): Problem[] {
  if (field.format === 'kubernetes-version' && typeof value !== 'string') {
    return [{ ...wrongType(field, value), message: versionNotFound(value) }];
  }
  if (field.enum && !(typeof value === 'string' && field.enum.includes(value))) return [notListed(field, value)];
  if (typeof value !== 'string') return [wrongType(field, value)];
  if (field.format === 'byte-size' && parseByteSize(value) === undefined) {
    return [invalid(field, field.path, value, 'format')];
  }
  return [];
}

/** Reports a value outside of the accepted ones. The message lists synonyms too, although they were replaced before. */
function notListed(field: Field, value: JsonValue): Problem {
  const listed = JSON.stringify([...(field.enum ?? []), ...Object.keys(field.synonyms ?? {})]);
  const { message, ...problem } = wrongType(field, value);
  const isText = typeof value === 'string';
  return {
    ...problem,
    ...(isText ? { code: 'enum', fatal: true } : {}),
    message: `${message}; must be one of ${listed}`,
  };
}

function listProblems(field: Field, value: JsonValue): Problem[] {
  if (!Array.isArray(value) || !value.every((item) => typeof item === 'string')) return [wrongType(field, value)];
  const repeated = duplicates(value);
  if (repeated.length === 0) return [];
  const message = `field "${field.path}" has duplicate entries: "${repeated.join('", "')}"`;
  return [{ code: 'duplicates', message, fatal: false, expected: 'a list without duplicates' }];
}

function mapProblems(field: Field, value: JsonValue): Problem[] {
  if (field.type === 'map<string,string>') return [];
  if (!isObject(value)) {
    // As text, not as JSON: the items of an array joined by commas.
    const message = `Proposed field "${field.path}" should be an object, got <${String(value)}>.`;
    return [{ code: 'type', message, fatal: false, expected: expectedValue(field) }];
  }
  return badEntries(value).map((key) => ({
    ...invalid(field, `${field.path}.${key}`, own(value, key) ?? null, 'type'),
    expected: 'true, false or null',
    entry: key,
  }));
}

function badEntries(map: JsonObject): string[] {
  return Object.keys(map).filter((key) => {
    const value = own(map, key);
    return typeof value !== 'boolean' && value !== null;
  });
}

/** Returns duplicate entries in natural order. Blank entries count as duplicates of each other, and each is listed. */
function duplicates(list: readonly string[]): string[] {
  const blank = list.filter((item) => item.trim() === '');
  if (blank.length < 2 && new Set(list).size === list.length) return [];
  const seen = new Set<string>();
  const repeated = new Set<string>();
  for (const item of list) {
    if (item.trim() !== '' && seen.has(item)) repeated.add(item);
    seen.add(item);
  }
  return [...repeated, ...(blank.length > 1 ? blank : [])].sort(new Intl.Collator('en').compare);
}

function invalid(field: Field, name: string, value: JsonValue, code: 'type' | 'range' | 'format'): Problem {
  const shown = field.sensitive ? '"***"' : JSON.stringify(value);
  return { code, message: `Invalid value for "${name}": <${shown}>`, fatal: false, expected: expectedValue(field) };
}

function rangeText({ min, max, unit }: Field): string {
  const range =
    min !== undefined && max !== undefined ? ` from ${min} to ${max}` : min !== undefined ? ` of at least ${min}` : '';
  return `${range}${unit ? ` (${unit})` : ''}`;
}
