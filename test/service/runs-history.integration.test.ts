import { expect, test } from 'vitest';
import { readHistory } from '../../src/state/history-file.ts';
import { rdctl } from '../helpers/cli.ts';
import { startService, type TestServiceOptions } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** A service without a cluster, and what its history says. */
async function scene(options: TestServiceOptions = {}) {
  const running = await startService({ settings: { kubernetes: { enabled: false } }, ...options });
  await running.converged();
  const { here, env } = running;
  return {
    ...running,
    run: (...argv: string[]) => rdctl(argv, { env, cwd: temporaryDirectory() }),
    entries: async () =>
      (await readHistory(here.historyFile)).map(({ by, changes, outcome }) => [
        by.how,
        changes.map(({ path, before, after }) => `${path}: ${before} → ${after}`).join(', '),
        outcome?.result,
      ]),
  };
}

const NAMED = ['set', 'images.namespace: default → web', 'converged'];
const STOPPED = ['power', 'service: started → stopped', 'converged'];
const STARTED = 'service: stopped → started';

test('who stopped and started the desktop is in the history, and no rollback counts it or stops the desktop', async () => {
  const { run, client, service, home, here, entries } = await scene();
  await run('set', '--images.namespace', 'web');
  await client.shutdown();
  await service.stopped;
  const [, stop] = await readHistory(here.historyFile);
  expect(stop?.by).toEqual({ how: 'power', program: expect.stringMatching(/^rdctl\//) });

  const second = await scene({ home, settings: {}, power: 'started' });
  await expect.poll(entries).toEqual([NAMED, STOPPED, ['start', STARTED, 'converged']]);
  await second.service.stop('to start again as `up` does');

  const third = await scene({ home, settings: {}, power: 'stopped' });
  expect((await third.run('up')).exit).toBe(0);
  await expect.poll(async () => (await entries()).slice(3)).toEqual([STOPPED, ['apply', STARTED, 'converged']]);
  const last = (await readHistory(here.historyFile)).at(-1)?.generation;
  expect((await third.run('history', 'diff', String(stop?.generation), String(last))).exit).toBe(0);

  const { err } = await third.run('rollback', '--plan');
  expect(err).toContain('images.namespace: default → web');
  const rolledBack = await third.run('rollback', '1');
  expect(rolledBack).toMatchObject({ exit: 0, err: expect.not.stringContaining('stops') });
  expect(await third.client.settings()).toMatchObject({ settings: { images: { namespace: 'default' } } });
  expect(await third.client.status()).toMatchObject({ power: 'started', converged: true });
});

test('the end of a service whose desktop is off is no stop', async () => {
  const first = await scene();
  await first.client.setBackendState('STOPPED');
  await first.converged();
  await first.service.stop('it is off');
  expect(await first.entries()).toEqual([['power', 'state: started → stopped', 'converged']]);
});
