import type { Finding } from './finding.ts';
import { pointerTo } from './leaf-paths.ts';
import type { ShapeCheck, ShapeError } from './validators/check.ts';

/** A finding of a precompiled check, with the keyword of the schema that was broken. */
export interface ShapeFinding extends Finding {
  keyword: string;
}

/** What a precompiled check found in a value, without positions; empty when the value is right. */
export function shapeFindings<T>(check: ShapeCheck<T>, value: unknown): ShapeFinding[] {
  if (check(value)) return [];
  return (check.errors ?? []).map((error) => ({ ...shapeFinding(error), keyword: error.keyword }));
}

function shapeFinding({ instancePath, keyword, params }: ShapeError): Finding {
  const here = instancePath === '' ? 'the document' : 'the value';
  switch (keyword) {
    case 'additionalProperties':
    case 'unevaluatedProperties': {
      const name = String(params.additionalProperty ?? params.unevaluatedProperty);
      return { pointer: `${instancePath}${pointerTo([name])}`, message: `unknown key "${name}"` };
    }
    case 'required':
      return { pointer: instancePath, message: `the key "${params.missingProperty}" is missing` };
    case 'type':
      return { pointer: instancePath, message: `${here} has the wrong type`, expected: typeText(params.type) };
    case 'enum':
      return {
        pointer: instancePath,
        message: `${here} is none of those allowed`,
        expected: listText(params.allowedValues),
      };
    case 'const':
      return {
        pointer: instancePath,
        message: `${here} is not the one allowed`,
        expected: JSON.stringify(params.allowedValue),
      };
    case 'minimum':
      return { pointer: instancePath, message: `${here} is too small`, expected: `at least ${params.limit}` };
    case 'maximum':
      return { pointer: instancePath, message: `${here} is too large`, expected: `at most ${params.limit}` };
    case 'pattern':
      return {
        pointer: instancePath,
        message: `${here} has the wrong form`,
        expected: `a text like ${params.pattern}`,
      };
    case 'uniqueItems':
      return { pointer: instancePath, message: 'the list has duplicates' };
    default:
      return { pointer: instancePath, message: `${here} breaks the rule "${keyword}"` };
  }
}

function typeText(type: unknown): string {
  const types = Array.isArray(type) ? type.map(String) : [String(type)];
  return types.map((name) => TYPES[name] ?? name).join(' or ');
}

function listText(values: unknown): string {
  return Array.isArray(values) ? `one of ${values.map((value) => JSON.stringify(value)).join(', ')}` : 'another value';
}

const TYPES: Readonly<Record<string, string>> = {
  boolean: 'true or false',
  integer: 'an integer',
  number: 'a number',
  string: 'a text',
  array: 'a list',
  object: 'an object',
  null: 'null',
};
