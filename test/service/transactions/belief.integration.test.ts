import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { rdctl } from '../../helpers/cli.ts';
import { startService, type TestServiceOptions } from '../../helpers/service.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';

const SLOW = { RDCTL_SIMULATED_LATENCY_MS: '200' };
const CHANGE = { settings: { version: 19, containerEngine: { name: 'containerd' } } };

/** A slow service whose engine moby runs, and an apply of another engine that it has begun. */
async function applying(options: TestServiceOptions = {}, ...flags: string[]) {
  const running = await startService({ ...options, power: 'started', env: { ...SLOW, ...options.env } });
  await running.converged();
  const cwd = temporaryDirectory();
  writeFileSync(join(cwd, 'profile.json'), JSON.stringify({ apiVersion: 'rdctl/v1', kind: 'Profile', ...CHANGE }));
  const run = (...argv: string[]) => rdctl(argv, { env: running.env, cwd });
  const { generation } = await running.client.status();
  const outcome = run('apply', '-f', 'profile.json', ...flags);
  await vi.waitFor(async () => expect((await running.client.status()).generation).toBe(generation + 1), 20_000);
  const entries = async () => JSON.parse((await run('history', '-o', 'json')).out).entries;
  return { ...running, run, outcome, generation: generation + 1, entries };
}

test('an apply whose service is stopped says so, and its change is unfinished until the next service finishes it', async () => {
  const { service, outcome, entries, generation, home } = await applying();
  await service.stop('the test wants it');
  const { exit, out, err } = await outcome;
  expect(exit).toBe(1);
  expect(err).toContain('The service was stopped before the change was in force.');
  expect(out).not.toContain('Converged');
  expect(await entries()).toMatchObject([{ generation }, { by: { how: 'power' } }]);
  expect((await entries())[0].outcome).toBeUndefined();
  const next = await startService({ home });
  await next.converged();
  expect((await next.client.status()).engine).toMatchObject({ name: 'containerd', state: 'running' });
  const converged = { outcome: { result: 'converged' } };
  await expect
    .poll(entries)
    .toMatchObject([{ generation, ...converged }, converged, { by: { how: 'start' }, ...converged }]);
});

test('an apply whose change is undone by a later write names it, whoever wrote', async () => {
  for (const write of [
    ['set', '--container-engine.name', 'moby'],
    ['api', '/v1/settings', '-X', 'PUT', '--body', '{"version":19,"containerEngine":{"name":"moby"}}'],
  ]) {
    const { run, outcome, generation, entries } = await applying();
    expect(await run(...write)).toMatchObject({ exit: 0 });
    const { exit, out, err } = await outcome;
    expect(exit).toBe(6);
    expect(err).toContain(`Generation ${generation} was superseded by generation ${generation + 1} (`);
    expect(err).toContain('containerEngine.name');
    expect(out).not.toContain('Converged');
    const own = async () => (await entries()).find((entry: { generation: number }) => entry.generation === generation);
    await expect.poll(own).toMatchObject({ outcome: { result: 'superseded' } });
  }
});

test('a later write that leaves in force what an apply asked for is waited for as well', async () => {
  const { run, outcome, client } = await applying();
  expect(await run('set', '--images.namespace', 'other')).toMatchObject({ exit: 0 });
  expect(await outcome).toMatchObject({ exit: 0, out: expect.stringContaining('Converged') });
  expect(await client.status()).toMatchObject({ converged: true, engine: { name: 'containerd', state: 'running' } });
});

test('a start that waits is told of a stop of the backend and of the service', async () => {
  const { client, service, env } = await startService({ power: 'stopped', env: SLOW });
  const begun = async () => {
    const outcome = rdctl(['start', '--wait'], { env });
    await vi.waitFor(async () => expect((await client.status()).power).toBe('started'), 20_000);
    return { outcome };
  };
  const first = await begun();
  await client.setBackendState('STOPPED');
  expect(await first.outcome).toMatchObject({ exit: 1, err: expect.stringContaining('(a start or stop)') });
  const second = await begun();
  await service.stop('the test wants it');
  expect(await second.outcome).toMatchObject({ exit: 1, err: expect.stringContaining('The service was stopped') });
});
