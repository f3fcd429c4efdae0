import { expect, test } from 'vitest';
import { jsonImporter } from '../../../profiles/formats/json.ts';

test('recognizes bare settings, unlike a profile document and what is not JSON', () => {
  const recognised = (text: string) => jsonImporter.recognizes(Buffer.from(text));
  expect(
    ['{}', '\ufeff {"version": 1}', '{"kubernetes": {"apiVersion": 1}}'].filter((text) => !recognised(text)),
  ).toEqual([]);
  const others = ['', '[]', '{', '{"kind": 1}', '{"apiVersion": "x"}', '{"settings": {}}', 'version: 19', '{a: 1}'];
  expect(others.filter(recognised)).toEqual([]);
});

test('a byte order mark is reported', async () => {
  const notes = async (text: string) => (await jsonImporter.read(Buffer.from(text), 'locked.json'))[0]?.notes;
  expect(await notes('\ufeff{}')).toEqual([expect.stringMatching(/^locked\.json begins with a byte order mark/)]);
  expect(await notes('{}')).toBeUndefined();
});

test('long strings, also with many escapes, and keys of any name', async () => {
  const settings = JSON.parse(
    `{"version": 19, "a": "${'\\"\\\\\\u0001'.repeat(300_000)}", "__proto__": {"__proto__": 1}}`,
  );
  const text = JSON.stringify(settings);
  const [part] = await jsonImporter.read(Buffer.from(text), 'defaults.json');
  expect(part?.part).toBe('defaults');
  expect(JSON.stringify(part?.settings)).toBe(text);
});

test.each<[string, string | Uint8Array, RegExp]>([
  ['a list', '[]', /does not contain an object/],
  ['too deep', `${'{"a":'.repeat(101)}1${'}'.repeat(101)}`, /nests deeper than 100 levels/],
  ['other bytes', Buffer.from([0x7b, 0xff, 0x7d]), /not UTF-8/],
])('%s is refused', async (_, bytes, reason) => {
  await expect(jsonImporter.read(Buffer.from(bytes), 'locked.json')).rejects.toMatchObject({
    code: 'ERR_PROFILE_INVALID',
    message: expect.stringMatching(reason),
  });
});

test.each([
  [
    '{"version": 19,\n "a": 1, "\\u0061": 2}',
    'it has a duplicate key',
    '2:10: the key "a" appears twice in one object',
  ],
  ['{"version": 19,\n}', 'it is not JSON', '2:1: a "," comes before the "}"'],
])('an error has its position', async (text, reason, place) => {
  await expect(jsonImporter.read(Buffer.from(text), 'locked.json')).rejects.toMatchObject({
    code: 'ERR_PROFILE_INVALID',
    message: `locked.json is not a deployment profile that can be read: ${reason}`,
    details: [`locked.json:${place}`],
  });
});

test('the same key in different objects is not a duplicate', async () => {
  const text = '{"a": {"x": 1}, "b": [{"x": 1}, {"x": ","}, "x"], "x": "}"}';
  const [part] = await jsonImporter.read(Buffer.from(text), 'a.json');
  expect(part?.settings).toEqual(JSON.parse(text));
});
