import { randomBytes } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { limitedLog } from '../../src/os/limited-log.ts';
import { startApi, type TestApi } from '../helpers/api.ts';
import { steppedClock } from '../helpers/stepped-clock.ts';

/** Requests of a flood. */
const MANY = 5_000;
const MINUTE = 60_000;

/** Sends requests without credentials, and returns how many were answered with each status. */
async function flood({ app }: TestApi, url: () => string, headers = {}): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {};
  for (let sent = 0; sent < MANY; sent += 1) {
    const { statusCode } = await app.inject({ url: url(), headers: { host: '127.0.0.1', ...headers } });
    statuses[statusCode] = (statuses[statusCode] ?? 0) + 1;
  }
  return statuses;
}

test('more proofs than are given do not fill the log, and are no errors', async () => {
  vi.spyOn(performance, 'now').mockReturnValue(5_000);
  const api = startApi();
  const answers = await flood(api, () => `/v2/proof?nonce=${randomBytes(32).toString('hex')}`);
  const refused = MANY - 500;
  expect(answers).toEqual({ 200: 500, 503: refused });
  const values = {
    method: 'GET',
    path: '/v2/proof',
    status: 503,
    code: 'ERR_NOT_READY',
    reason: 'more than 500 proofs per second were requested',
  };
  const line = { level: 'warn', message: 'request refused', values };
  const first = [line, line, line, line, line];
  expect(api.logged).toEqual(first);
  await api.refusalClock.pass(MINUTE);
  const last = { level: 'warn', message: 'request refused … more', values: { ...values, more: refused - 5 } };
  expect(api.logged).toEqual([...first, last]);
});

test('callers cannot choose how many kinds of lines there are, nor how long a line is', async () => {
  const api = startApi({ checkToken: async (token) => ({ kind: 'unknown', name: token.slice('rdctl_'.length) }) });
  let number = 0;
  const path = () => {
    number += 1;
    return `/v2/${number}${'x'.repeat(4_000)}`;
  };
  expect(await flood(api, path)).toEqual({ 401: MANY });
  expect(await flood(api, path, { authorization: `Bearer rdctl_${randomBytes(4).toString('hex')}` })).toEqual({
    401: MANY,
  });
  expect(await flood(api, path, { host: 'evil.example' })).toEqual({ 403: MANY });
  await api.refusalClock.pass(MINUTE);
  // Refusals of two codes, and of a token, five times and with their number.
  expect(api.logged.length).toBe(3 * (5 + 1));
  expect(JSON.stringify(api.logged).length).toBeLessThan(10_000);
  expect(api.logged.filter(({ level }) => level === 'error')).toEqual([]);
});

/** Lines as a name with its number. */
function recorded() {
  const lines: string[] = [];
  const clock = steppedClock();
  const log = limitedLog((_level, message, values) => lines.push(`${message} ${JSON.stringify(values)}`), clock);
  const write = (n: number, kind = 'a') => log.write(kind, 'warn', kind, { n });
  return { lines, clock, log, write };
}

test('a flood that goes on is counted ever less often, with its latest line', async () => {
  const { lines, clock, write } = recorded();
  // One a second for a day.
  for (let second = 0; second < 24 * 3_600; second += 1) {
    write(second);
    if (second % 60 === 59) await clock.pass(MINUTE);
  }
  expect(lines.slice(0, 8)).toEqual([
    ...[0, 1, 2, 3, 4].map((n) => `a {"n":${n}}`),
    'a … more {"n":59,"more":55}',
    'a … more {"n":179,"more":120}',
    'a … more {"n":419,"more":240}',
  ]);
  expect(lines.length).toBeLessThan(5 + 6 + 24);
});

test('a kind that was quiet for a window is written at once again, and no kind counts for another', async () => {
  const { lines, clock, write } = recorded();
  for (let n = 0; n < 7; n += 1) write(n);
  write(0, 'b');
  await clock.pass(MINUTE);
  expect(lines.slice(5)).toEqual(['b {"n":0}', 'a … more {"n":6,"more":2}']);
  await clock.pass(2 * MINUTE);
  expect(clock.sleepers()).toBe(0);
  write(8);
  expect(lines.at(-1)).toBe('a {"n":8}');
});

test('what was left out is counted when the log is closed, and nothing waits any more', async () => {
  const { lines, clock, log, write } = recorded();
  for (let n = 0; n < 9; n += 1) write(n);
  log.close();
  expect(lines.at(-1)).toBe('a … more {"n":8,"more":4}');
  expect(clock.sleepers()).toBe(0);
});
