import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  currentContext,
  deselect,
  select,
  selectionFrom,
} from '../../../src/features/host-integration/docker-config.ts';
import { runs } from '../../helpers/rounds.ts';

test.each([
  ['{}', '{"currentContext": "rdctl"}'],
  ['{ }\n', '{"currentContext": "rdctl" }\n'],
  ['{"auths":{}}', '{"auths":{},"currentContext": "rdctl"}'],
  ['{\n\t"auths": {},\n\t"b": [1,\n2]\n}\n', '{\n\t"auths": {},\n\t"b": [1,\n2],\n\t"currentContext": "rdctl"\n}\n'],
  ['{"currentContext" :  "default", "x":1}', '{"currentContext" :  "rdctl", "x":1}'],
  ['{"x":{"currentContext":"inner"},"currentContext":""}', '{"x":{"currentContext":"inner"},"currentContext":"rdctl"}'],
  ['', '{\n  "currentContext": "rdctl"\n}\n'],
  [' \r\n\t', '{\n  "currentContext": "rdctl"\n}\n'],
  ['{"currentContext":"gone"}', '{"currentContext":"rdctl"}'],
  ['{"a":"}{,:\\"","b":-1.5e3}', '{"a":"}{,:\\"","b":-1.5e3,"currentContext": "rdctl"}'],
])('%j becomes %j, and back', (before, after) => {
  const { text, selection } = select(before, 'rdctl');
  expect(text).toBe(after);
  expect(deselect(text, selection)).toBe(before);
});

test('a file created for the selection is removed with it, unless it has been edited', () => {
  const { text, selection } = select(undefined, 'rdctl');
  expect(JSON.parse(text)).toEqual({ currentContext: 'rdctl' });
  expect(deselect(text, selection)).toBeUndefined();
  expect(deselect('{"auths":{},"currentContext":"rdctl"}', selection)).toBe('{"auths":{}}');
});

test('a file filled for the selection keeps what was added meanwhile, and its record survives', () => {
  const { text, selection } = select('\n', 'rdctl');
  expect(deselect(text, selectionFrom(JSON.parse(JSON.stringify(selection))) ?? { how: 'chosen' })).toBe('\n');
  expect(deselect('{"auths":{},"currentContext":"rdctl"}', selection)).toBe('{"auths":{}}');
  expect(selectionFrom({ how: 'filled', previous: 'rm -rf' })).toBeUndefined();
});

test('is removed from wherever docker has moved it', () => {
  for (const text of ['{"currentContext":"rdctl","x":1}', '{"x":1,"currentContext":"rdctl"}']) {
    expect(deselect(text, { how: 'inserted' })).toBe('{"x":1}');
  }
  expect(deselect('{"a":1,"currentContext":"rdctl","b":2}', { how: 'inserted' })).toBe('{"a":1,"b":2}');
});

test.each([
  [undefined, 'default'],
  ['', 'default'],
  ['\n', 'default'],
  ['{}', 'default'],
  ['{"currentContext":""}', 'default'],
  ['{"currentContext":"work"}', 'work'],
])('%j selects %s', (text, name) => {
  expect(currentContext(text)).toBe(name);
});

test.each([
  ['not JSON', 'it is not JSON'],
  ['[]', 'does not hold an object'],
  ['{"currentContext":1}', 'is not a string'],
  ['{"currentContext":"a","currentContext":"b"}', 'is in it twice'],
])('%j is not edited, nor quoted', (text, why) => {
  expect(() => currentContext(text)).toThrow(why);
});

test('selecting and deselecting restores any object byte for byte, whatever its layout', () => {
  const key = fc.string().filter((name) => name !== 'currentContext' && name !== '__proto__');
  const object = fc.dictionary(key, fc.jsonValue(), { noNullPrototype: true });
  fc.assert(
    fc.property(
      object,
      fc.constantFrom(undefined, 1, 4, '\t'),
      fc.constantFrom('', '\n', ' \r\n'),
      (value, indent, end) => {
        const before = JSON.stringify(value, null, indent) + end;
        const { text, selection } = select(before, 'rdctl');
        expect(JSON.parse(text)).toEqual({ ...JSON.parse(before), currentContext: 'rdctl' });
        expect(deselect(text, selection)).toBe(before);
      },
    ),
    { numRuns: runs(1000) },
  );
});
