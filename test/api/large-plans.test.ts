import { expect, test, vi } from 'vitest';
import { createPlanTurns } from '../../src/api/plan-turns.ts';
import { startApi } from '../helpers/api.ts';

const muted = (count: number) => ({
  diagnostics: { mutedChecks: Object.fromEntries(Array.from({ length: count }, (_, at) => [`CHECK_${at}`, true])) },
});
const patterns = (count: number, text = (at: number) => `registry.example/${at}`) => ({
  containerEngine: { allowedImages: { patterns: Array.from({ length: count }, (_, at) => text(at)) } },
});

interface Reply {
  status: number;
  document: { changes: { path: string; blocked?: object }[]; warnings: string[] };
}

async function plan(settings: object): Promise<Reply> {
  const body = JSON.stringify({ settings: { version: 19, ...settings }, state: 'unmanaged', prune: [] });
  const answer = await startApi().client.request({ method: 'POST', path: '/v2/plan', body });
  return { status: answer.status, document: JSON.parse(answer.body.toString()) };
}

const changesOf = ({ document }: Reply, path: string) => document.changes.filter((change) => change.path === path);

test('a plan takes as much as anyone writes, and refuses what would occupy the service', async () => {
  expect(changesOf(await plan(muted(1_900)), 'diagnostics.mutedChecks')).toHaveLength(1_900);
  expect(changesOf(await plan(patterns(9_900)), 'containerEngine.allowedImages.patterns')).toHaveLength(1);
  for (const settings of [muted(60_000), patterns(60_000), { unknown: muted(60_000) }]) {
    expect(await plan(settings)).toMatchObject({
      status: 400,
      document: {
        code: 'ERR_SETTINGS_INVALID',
        message: expect.stringMatching(
          /^the request has \d+ keys, and \d+ more parts in lists; the most are 2000 and 10000$/,
        ),
      },
    });
  }
});

test('the largest number of extensions is compared with the longest list of allowed ones', async () => {
  const installed = Object.fromEntries(Array.from({ length: 1_900 }, (_, at) => [`example/tool-${at}`, '1']));
  const list = Array.from({ length: 9_900 }, (_, at) => `registry.example/tool-${at}`);
  const reply = await plan({
    application: { extensions: { allowed: { enabled: true, list }, installed } },
  });
  const changes = changesOf(reply, 'application.extensions.installed');
  expect(changes.filter(({ blocked }) => blocked)).toHaveLength(1_900);
  // Parsing the list anew for each extension took half a minute.
}, 15_000);

test('extensions are compared with patterns of allowed images by name, and with those that have stars up to a limit', async () => {
  const installed = Object.fromEntries(Array.from({ length: 1_900 }, (_, at) => [`example/tool-${at}`, '1']));
  const warningsWith = async (pattern: (at: number) => string) => {
    const allowedImages = { enabled: true, patterns: Array.from({ length: 9_900 }, (_, at) => pattern(at)) };
    const reply = await plan({ application: { extensions: { installed } }, containerEngine: { allowedImages } });
    return reply.document.warnings.filter((warning) => /extension/.test(warning));
  };
  expect(await warningsWith((at) => `example/tool-${at}`)).toEqual([]);
  expect(await warningsWith((at) => `registry.example/tool-${at}`)).toHaveLength(1_900);
  // Each with each took seven seconds.
  const stars = await warningsWith((at) => `example/*o*o*l*-*x${at}`);
  expect(stars.at(-1)).toMatch(/^Whether the allowed images include another 1\d{3} extensions was not looked up/);
}, 15_000);

test('of patterns that match nothing, the first are named and the others counted', async () => {
  const { document } = await plan(patterns(9_900, (at) => `registry.example//${at}`));
  const about = document.warnings.filter((warning) => warning.includes('allowedImages.patterns'));
  expect(about).toHaveLength(21);
  expect(about.at(-1)).toBe('Another 9880 patterns in "containerEngine.allowedImages.patterns" match nothing.');
});

test('keys and texts of a plan are limited in length, and a proposal as a plan', async () => {
  const mutedChecks = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`${at}`.padEnd(2_000, 'x'), true]));
  expect(await plan({ diagnostics: { mutedChecks } })).toMatchObject({
    status: 400,
    document: {
      message: expect.stringMatching(
        /^the keys and texts of the request have 20\d{5} characters; the most are 1048576$/,
      ),
    },
  });
  const answer = await startApi().client.request({
    method: 'PUT',
    path: '/v1/propose_settings',
    body: JSON.stringify(muted(60_000)),
  });
  expect(answer.status).toBe(400);
  expect(answer.body.toString()).toMatch(/^the request has 60002 keys, and 0 more parts in lists; the most are 2000/);
});

test('a plan with the most keys or elements holds the service no longer at a time than reading its text 60 times takes', async () => {
  const { client } = startApi();
  const installed = Object.fromEntries(Array.from({ length: 1_900 }, (_, at) => [`example/tool-${at}`, '1']));
  const list = Array.from({ length: 9_900 }, (_, at) => `registry.example/tool-${at}`);
  const extensions = { allowed: { enabled: true, list }, installed };
  const allowedImages = { enabled: true, patterns: list.map((text) => text.replace('tool', 'example/*o*o*l')) };
  const largest: object[] = [
    muted(1_900),
    patterns(9_900),
    { application: { extensions } },
    { application: { extensions: { installed } }, containerEngine: { allowedImages } },
  ];
  for (const settings of largest) {
    const body = JSON.stringify({ settings: { version: 19, ...settings }, state: 'unmanaged', prune: [] });
    const holds: number[] = [];
    const readings: number[] = [];
    // The best of several rounds, in which the code is compiled.
    for (let round = 0; round < 6; round += 1) {
      holds.push(await longestHold(() => client.request({ method: 'POST', path: '/v2/plan', body })));
      readings.push(readingTime(body));
    }
    expect(Math.min(...holds) / Math.min(...readings)).toBeLessThan(60);
  }
}, 30_000);

/** The time of this process in milliseconds that reading and writing a JSON text takes, on average of twenty times. */
function readingTime(text: string): number {
  const began = process.cpuUsage();
  for (let count = 0; count < 20; count += 1) JSON.stringify(JSON.parse(text));
  const { user, system } = process.cpuUsage(began);
  return (user + system) / 20_000;
}

/** The longest time of this process in milliseconds between two turns of the event loop during the work. */
async function longestHold(work: () => Promise<unknown>): Promise<number> {
  let done = false;
  let longest = 0;
  const working = work().finally(() => {
    done = true;
  });
  while (!done) {
    // Time of this process: other programs on the computer are not meant.
    const began = process.cpuUsage();
    await new Promise((turn) => setImmediate(turn));
    const { user, system } = process.cpuUsage(began);
    longest = Math.max(longest, (user + system) / 1_000);
  }
  await working;
  return longest;
}

test('one plan of a caller is computed at a time, eight wait, and more are to come later', async () => {
  const looks: (() => void)[] = [];
  const { client, script } = startApi();
  script.look = () => new Promise((seen) => looks.push(() => seen(true)));
  const body = JSON.stringify({ settings: { version: 19 }, state: 'unmanaged', prune: [] });
  const send = () => client.request({ method: 'POST', path: '/v2/plan', body });
  const accepted = Array.from({ length: 9 }, send);
  await vi.waitUntil(() => looks.length === 9);
  const refused = await send();
  expect(refused.status).toBe(429);
  expect(refused.headers['retry-after']).toBe('1');
  expect(JSON.parse(refused.body.toString())).toMatchObject({
    code: 'ERR_TOO_MANY',
    message: '9 plans of this caller are in progress already',
  });
  for (const see of looks) see();
  expect((await Promise.all(accepted)).map(({ status }) => status)).toEqual(Array(9).fill(200));
  script.look = () => true;
  expect((await send()).status).toBe(200);
});

test('another caller does not wait for them, and the parts of two plans of one caller do not overlap', async () => {
  const turns = createPlanTurns();
  const order: string[] = [];
  let finish = (): void => undefined;
  const first = turns.admit('a', (turn) =>
    turn(async () => {
      order.push('first begins');
      await new Promise<void>((done) => {
        finish = done;
      });
      order.push('first ends');
    }),
  );
  const second = turns.admit('a', (turn) => turn(() => void order.push('second')));
  await turns.admit('b', (turn) => turn(() => void order.push('another caller')));
  await vi.waitUntil(() => order.includes('first begins'));
  finish();
  await Promise.all([first, second]);
  expect(order.indexOf('another caller')).toBeLessThan(order.indexOf('first ends'));
  expect(order.slice(-2)).toEqual(['first ends', 'second']);
});
