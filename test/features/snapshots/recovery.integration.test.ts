import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { RdError } from '../../../src/errors.ts';
import { journalFile, readJournal } from '../../../src/features/snapshots/journal.ts';
import { recoverBackend } from '../../../src/features/snapshots/recovery.ts';
import { copyRecord, recordCopies } from '../../../src/features/snapshots/tree.ts';
import { processTable } from '../../../src/os/process-table.ts';
import { keptStateOf, OLD, REPLACED, real, replacement, type Scene, scene } from '../../helpers/kept-scene.ts';
import { startService } from '../../helpers/service.ts';

const PART = { hadLive: true, comes: true };
const SETTINGS = { before: {}, after: {} };

describe('an invalid journal', () => {
  const first = ({ kept }: Scene) => kept[0] ?? '';
  const withPart = (at: Scene, more: object = {}) => ({
    format: 1,
    phase: 'swapping',
    parts: [{ live: first(at), ...PART }],
    ...more,
  });

  test.each<[string, (at: Scene) => unknown, string]>([
    ['is not JSON', () => '{"format":1', 'it is not a JSON object'],
    ['is a list', () => [], 'it is not a JSON object'],
    ['is of another format', (at) => withPart(at, { format: 0 }), 'its format is not known'],
    ['has no phase', (at) => withPart(at, { phase: undefined }), 'its phase is undefined'],
    ['has another phase', (at) => withPart(at, { phase: 'swapped' }), 'its phase is "swapped"'],
    ['has no parts', (at) => withPart(at, { parts: {} }), 'it has no parts'],
    ['has a part that is none', (at) => withPart(at, { parts: ['x'] }), 'one of its parts is not an object'],
    [
      'names a place that is not kept',
      (at) => withPart(at, { parts: [{ live: join(at.here.state, 'other'), ...PART }] }),
      'and the data is in ',
    ],
    [
      'names a place by another way',
      (at) => withPart(at, { parts: [{ live: `${first(at)}/../data`, ...PART }] }),
      'and the data is in ',
    ],
    [
      'has a part twice',
      (at) => withPart(at, { parts: [0, 1].map(() => ({ live: first(at), ...PART })) }),
      'it lists a part twice',
    ],
    [
      'does not say what was there',
      (at) => withPart(at, { parts: [{ live: first(at), hadLive: 1, comes: true }] }),
      'it does not say what was in ',
    ],
    [
      'has something unproven of nobody',
      (at) => withPart(at, { parts: [{ live: first(at), ...PART, unproven: true }] }),
      'the earlier journal is missing',
    ],
    [
      'has settings that are none',
      (at) => withPart(at, { settings: { before: 'x', after: {} } }),
      'its settings are invalid',
    ],
    ['has to bring back settings and has none', (at) => withPart(at, { phase: 'settings' }), 'it has no settings'],
    ['has another name', (at) => withPart(at, { snapshot: {} }), 'the name of its snapshot is not a string'],
    [
      'has an earlier one that cannot be',
      (at) => withPart(at, { earlier: withPart(at, { settings: SETTINGS }) }),
      'its phase is "swapping"',
    ],
  ])('%s: nothing is changed, and the backend waits for manual repair', async (_, content, why) => {
    const at = await scene();
    const outside = join(at.here.state, 'other');
    for (const path of [`${outside}.restoring`, `${first(at)}.restoring`, `${first(at)}.before-restore`]) {
      writeFileSync(path, 'of a person');
    }
    const before = at.seen();
    const value = content(at);
    writeFileSync(journalFile(at.here), typeof value === 'string' ? value : JSON.stringify(value));
    const { initialHold: found, notices, unproven } = await recoverBackend(at.here);
    expect(found).toMatchObject({ lasts: 'service', hold: { keep: 'off', damaged: true } });
    expect(unproven).toBeUndefined();
    expect(notices).toEqual([found?.hold.reason]);
    expect(notices[0]).toContain(why);
    expect(notices[0]).toContain('Start the release that wrote it, or repair the data yourself');
    expect(notices[0]).toContain(`Look at ${first(at)}.restoring, ${first(at)}.before-restore: `);
    expect(at.seen()).toEqual(before);
    expect(existsSync(`${outside}.restoring`)).toBe(true);
  });

  test('from a home that was moved is one of them', async () => {
    const at = await scene();
    await replacement(keptStateOf(at, real(at)), at);
    const before = at.seen();
    const moved = at.kept.map((path) => path.replace('/live/', '/moved/'));
    const { initialHold: found } = await recoverBackend({ ...at.here, kept: moved });
    expect(found?.hold.reason).toContain(`it names "${at.kept[0]}", and the data is in ${moved.join(', ')}`);
    expect(at.seen()).toEqual(before);
  });

  test('valid journals of every phase are recognized', async () => {
    const at = await scene();
    await replacement(keptStateOf(at, real(at)), at);
    expect(at.seen()).toMatchObject(REPLACED);
    expect(await readJournal(journalFile(at.here), at.kept)).toMatchObject(
      JSON.parse(readFileSync(journalFile(at.here), 'utf8').replace('"format": 1,', '')),
    );
  });
});

describe('files that cannot be removed', () => {
  test.each(['copying', 'swapping', 'undone', 'confirmed'])(
    'in phase %s are reported, and block nothing',
    async (phase) => {
      const at = await scene();
      const [live = ''] = at.kept;
      writeFileSync(`${live}.restoring`, 'a leftover');
      const journal = { format: 1, phase, parts: [{ live, hadLive: true, comes: true }] };
      writeFileSync(journalFile(at.here), JSON.stringify(journal));
      const { initialHold: found, notices } = await recoverBackend(at.here, {
        ...real(at),
        remove: async () => Promise.reject(new RdError('ERR_IO', 'the directory is not empty')),
      });
      expect(found).toBeUndefined();
      expect(notices).toContain(
        'An interrupted operation left files behind, which are harmless: the directory is not empty.',
      );
      expect((await recoverBackend(at.here)).initialHold).toBeUndefined();
      expect(at.seen()).toEqual(OLD);
      expect(existsSync(journalFile(at.here))).toBe(false);
    },
  );
});

test.skipIf(process.platform !== 'linux')('a copy that outlived its service is ended first', async () => {
  const at = await scene();
  const partial = join(at.here.snapshots, '.00000000-0000-4000-8000-000000000000.partial');
  mkdirSync(partial, { recursive: true });
  // Named like the copy, and as after a kill of the service: recorded, and not yet observed.
  const argv = ['sh', '-c', 'echo up; while :; do mkdir -p "$0"; done', join(partial, '0-data')];
  const [program = '', ...args] = argv;
  const copy = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void copy.kill('SIGKILL'));
  await once(copy.stdout, 'data');
  const ended = once(copy, 'exit');
  writeFileSync(copyRecord(at.here), JSON.stringify({ argv }));
  expect(await recoverBackend(at.here)).toEqual({ notices: [] });
  expect((await ended)[1]).toBe('SIGTERM');
  expect(existsSync(partial)).toBe(false);
  expect(existsSync(copyRecord(at.here))).toBe(false);
  expect(await processTable.isAlive({ pid: copy.pid ?? 0 })).toBe(false);
});

test('a copy is recorded while it runs', async () => {
  const at = await scene();
  const record = copyRecord(at.here);
  const [live = ''] = at.kept;
  const abort = new AbortController();
  const copying = recordCopies(record)(live, `${live}.copy`, abort.signal);
  const noted: unknown[] = [];
  const watch = (async () => {
    while (!existsSync(record)) await new Promise((resolve) => setImmediate(resolve));
    noted.push(JSON.parse(readFileSync(record, 'utf8')).argv.slice(-2));
  })();
  await watch;
  await copying;
  expect(noted).toEqual([[live, `${live}.copy`]]);
  expect(existsSync(record)).toBe(false);
  await expect(recordCopies(record)(join(live, 'nothing'), `${live}.copy`, abort.signal)).rejects.toThrow();
  expect(existsSync(record)).toBe(false);
});

test('a service that holds its backend off gives the reason to clients that wait or request a snapshot', async () => {
  const first = await startService();
  await first.converged();
  await first.service.stop('the test goes on');
  writeFileSync(journalFile(first.here), 'garbage');
  const { client, converged, here } = await startService({ home: first.home });
  const reason = `the journal ${journalFile(here)} of an interrupted operation cannot be read: it is not a JSON object`;
  await expect(converged()).rejects.toMatchObject({
    code: 'ERR_CONVERGE_FAILED',
    message: expect.stringContaining(`(Converged: DataNotWhole): The data of the backend may be incomplete`),
  });
  const { conditions, backendState, notices } = await client.status();
  expect(conditions.find(({ type }) => type === 'Converged')).toMatchObject({ concern: 'attention' });
  expect(backendState).toBe('STOPPED');
  expect(notices).toEqual([expect.stringContaining(reason)]);
  const answer = await client.request({ method: 'POST', path: '/v1/snapshots', body: '{"name":"one"}' });
  const text = answer.body.toString();
  expect({ status: answer.status, text }).toMatchObject({ status: 400, text: expect.stringContaining(reason) });
  expect(text).toMatch(/^failed to create snapshot: the backend is kept off\n/);
  expect(text).not.toContain('unlock');
  expect(readFileSync(journalFile(here), 'utf8')).toBe('garbage');
});
