import { expect, test } from 'vitest';
import { bodyCollector, parseJson, settingsPayload } from '../../src/api/body.ts';
import { MOST_LEVELS } from '../../src/json.ts';
import { startApi } from '../helpers/api.ts';

const nest = (levels: number, open = '{"a":', close = '}') => `${open.repeat(levels)}1${close.repeat(levels)}`;

test.each([
  ['objects', nest(MOST_LEVELS)],
  ['lists', nest(MOST_LEVELS, '[', ']')],
  ['brackets in a text', JSON.stringify({ a: '[{'.repeat(1000), b: '\\"[[['.repeat(1000) })],
  ['many siblings', JSON.stringify(Array.from({ length: 1000 }, () => [{}]))],
])('%s are read unchanged', (_, text) => {
  expect(parseJson(Buffer.from(text))).toEqual(JSON.parse(text));
});

test.each([
  ['objects', nest(MOST_LEVELS + 1)],
  ['lists', nest(200_000, '[', ']')],
  ['both', nest(200_000, '{"a":[', ']}')],
  ['after a text with a quotation mark', `{"\\"":"\\\\","b":${nest(MOST_LEVELS)}}`],
])('%s that nest too deeply are refused with a message', (_, text) => {
  expect(() => settingsPayload(Buffer.from(text))).toThrow(
    expect.objectContaining({
      code: 'ERR_BODY_INVALID',
      message: 'the request body is nested more than 100 levels deep',
    }),
  );
});

test('a client that disconnects halfway is not logged as our failure', async () => {
  async function* cutOff() {
    yield Buffer.from('{"ver');
    throw new Error('aborted');
  }
  await expect(bodyCollector()(cutOff())).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
});

test.each(['/v1/settings', '/v1/propose_settings'])('PUT %s refuses an endless body', async (path) => {
  const { client } = startApi();
  const { status, body } = await client.request({ method: 'PUT', path, body: nest(200_000, '{"version":', '}') });
  expect({ status, text: body.toString() }).toEqual({
    status: 400,
    text: expect.stringContaining('nested more than 100 levels deep'),
  });
});

test('a body with 250,000 unknown keys is answered, naming as many as fit in a header', async () => {
  const { client } = startApi();
  const keys = Object.fromEntries(Array.from({ length: 250_000 }, (_, index) => [`k${index}`, 1]));
  const answer = await client.request({
    method: 'PUT',
    path: '/v1/settings',
    body: JSON.stringify({ version: 19, kubernetes: keys }),
  });
  expect(answer.status).toBe(202);
  expect(String(answer.headers['rdctl-ignored-keys'])).toMatch(/^kubernetes\.k0, kubernetes\.k1, .*%E2%80%A6$/);
});

test('concurrent bodies share a memory budget, and a small one always fits', async () => {
  const collect = bodyCollector(1_000_000);
  const held: (() => void)[] = [];
  async function* unfinished(size: number) {
    yield Buffer.alloc(size);
    await new Promise<void>((go) => held.push(go));
  }
  async function* whole(size: number) {
    yield Buffer.alloc(size);
  }
  const first = collect(unfinished(1_000_000));
  await expect(collect(whole(200_000))).rejects.toMatchObject({ code: 'ERR_NOT_READY' });
  expect(await collect(whole(60_000))).toHaveLength(60_000);
  // Not even begun.
  const unread = { [Symbol.asyncIterator]: () => expect.unreachable() };
  await expect(collect(unread, 200_000)).rejects.toMatchObject({ code: 'ERR_NOT_READY' });
  for (const go of held) go();
  expect(await first).toHaveLength(1_000_000);
  expect(await collect(whole(1_000_000))).toHaveLength(1_000_000);
  // What was declared is held from the beginning, and given back.
  const declared = collect(unfinished(10), 1_000_000);
  await expect(collect(whole(200_000), 200_000)).rejects.toMatchObject({ code: 'ERR_NOT_READY' });
  for (const go of held) go();
  expect(await declared).toHaveLength(10);
  expect(await collect(whole(1_000_000), 1_000_000)).toHaveLength(1_000_000);
});
