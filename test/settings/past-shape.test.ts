import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../src/json.ts';
import { setLeaf } from '../../src/settings/leaf-paths.ts';
import { pastShape, shapeErrors } from '../../src/settings/past-shape.ts';
import { pastSchema } from '../helpers/past-schema.ts';

const VERSIONS = [1, 6, 10, 14, 16];

test('every older version has a shape, and the newest has none', () => {
  for (let version = 1; version <= 18; version += 1) expect(pastShape(version), String(version)).toBeDefined();
  expect(pastShape(19)).toBeUndefined();
});

test('the names and values of each shape', async () => {
  const lines = VERSIONS.flatMap((version) => {
    const { from, to } = pastShape(version) ?? {};
    return [
      `${from} to ${to}`,
      ...leaves(pastSchema(version)).map(([path, rule]) => `  ${path} ${JSON.stringify(rule)}`),
    ];
  });
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('../golden/past-shapes.txt');
});

test.each(VERSIONS)('documents of version %i have the errors that a validator of JSON Schema finds', (version) => {
  const shape = pastShape(version);
  if (!shape) throw new Error('there is no shape');
  const schema = pastSchema(version);
  const properties = { version: { type: 'integer' }, ...(schema.properties as JsonObject) };
  const check = new Ajv2020({ allErrors: true, allowUnionTypes: true }).compile({
    ...schema,
    properties,
    required: ['version'],
  });
  const paths = ['version', 'none', ...leaves(schema).flatMap(([path]) => sectionsOf(path))];
  const value = fc.oneof(
    fc.constantFrom<JsonValue[]>(true, 1, 0, 1.5, 70_000, 'moby', 'docker', 'notset', null, [], ['a'], [1], {}),
    fc.constantFrom<JsonValue[]>({ a: true }, { a: 'b' }, { a: null }, { a: 1 }),
  );
  const entry = fc.tuple(fc.constantFrom(...paths), fc.constantFrom('', '.extra'), value);
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 6 }), fc.boolean(), (entries, hasVersion) => {
      const document: JsonObject = hasVersion ? { version } : {};
      for (const [path, more, each] of entries) setLeaf(document, `${path}${more}`, structuredClone(each));
      const wanted = check(document) ? [] : (check.errors ?? []);
      expect(shapeErrors(document, shape).map(text).sort()).toEqual(wanted.map(text).sort());
    }),
    { numRuns: 500 },
  );
});

interface Told {
  instancePath: string;
  keyword: string;
  params: Readonly<Record<string, unknown>>;
}

function text({ instancePath, keyword, params: { comparison: _, ...params } }: Told): string {
  return JSON.stringify([instancePath, keyword, params]);
}

function sectionsOf(path: string): string[] {
  const names = path.split('.');
  return names.map((_, index) => names.slice(0, index + 1).join('.'));
}

function leaves({ properties }: JsonObject, prefix = ''): [path: string, rule: JsonObject][] {
  return Object.entries(properties as Record<string, JsonObject>).flatMap(([name, below]) =>
    below.properties ? leaves(below, `${prefix}${name}.`) : [[`${prefix}${name}`, below]],
  );
}
