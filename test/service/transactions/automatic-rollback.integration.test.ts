import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { DEFAULT_BLOCKS } from '../../../src/settings/blocks.gen.ts';
import { rdctl } from '../../helpers/cli.ts';
import { freePort } from '../../helpers/free-port.ts';
import { startService, type TestServiceOptions } from '../../helpers/service.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';

const REFUSED = { RDCTL_SIMULATED_FAULTS: 'containerd.start:terminal' };

/** A service whose engine moby runs and whose containerd refuses to start, and the tool beside it. */
async function scene(options: TestServiceOptions = {}) {
  const running = await startService({ ...options, env: REFUSED });
  await running.converged();
  const cwd = temporaryDirectory();
  const profile = (document: object) => {
    writeFileSync(join(cwd, 'profile.json'), JSON.stringify({ apiVersion: 'rdctl/v1', kind: 'Profile', ...document }));
    return join(cwd, 'profile.json');
  };
  const run = (...argv: string[]) => rdctl(argv, { env: running.env, cwd });
  const entries = async () => JSON.parse((await run('history', '-o', 'json')).out).entries;
  return { ...running, profile, run, entries };
}

const CHANGE = {
  settings: { version: 19, containerEngine: { name: 'containerd' }, virtualMachine: { memoryInGB: 3 } },
  machine: { hostPorts: [80] },
};

const KEPT = {
  metadata: { name: 'team' },
  watch: { heal: 'enforce' },
  settings: { version: 19, images: { namespace: 'web' } },
};

test('a profile whose next version is undone is kept again as it was, told, and enforced, every time', async () => {
  const { run, profile, client } = await scene();
  expect(await run('apply', '--keep', '-f', profile(KEPT))).toMatchObject({ exit: 0 });
  const next = { ...KEPT, settings: { ...CHANGE.settings, images: { namespace: 'new' } } };
  for (const flags of [['--keep'], []]) {
    const { exit, err } = await run('apply', ...flags, '-f', profile(next));
    expect(exit).toBe(1);
    expect(err).toContain('The kept profile team is again what it was before.');
    const { kept, transaction } = await client.status();
    expect(kept).toMatchObject([{ name: 'team', generation: transaction?.returnGeneration, state: 'in sync' }]);
  }
  await client.putSettings({ version: 19, images: { namespace: 'mine' }, virtualMachine: { memoryInGB: 4 } });
  const inForce = async () => (await client.settings()).settings;
  await expect.poll(inForce).toMatchObject({ images: { namespace: 'web' }, virtualMachine: { memoryInGB: 4 } });
});

test('a change that the engine refuses is undone, told, and recorded', async () => {
  const { run, profile, entries, client, here } = await scene();
  const before = await client.settings();
  const { generation } = await client.status();
  const { exit, err } = await run('apply', '-f', profile(CHANGE));
  expect(exit).toBe(1);
  expect(err).toContain(`The change failed; going back to generation ${generation}.`);
  expect(err).toContain('The change failed and was undone: engine start failed');
  expect(err).toContain(`Generation ${generation + 1} is undone by generation ${generation + 2}`);
  expect((await client.settings()).settings).toEqual(before.settings);
  expect(await client.status()).toMatchObject({
    converged: true,
    power: 'started',
    engine: { name: 'moby', state: 'running' },
    transaction: {
      generation: generation + 1,
      onFailure: 'return',
      state: 'returned',
      to: generation,
      returnGeneration: generation + 2,
    },
  });
  // The last outcome is recorded a moment after the status has it.
  await expect.poll(entries).toMatchObject([
    { by: { how: 'apply' }, outcome: { result: 'returned', reason: expect.stringContaining('engine start failed') } },
    {
      by: { how: 'return', to: generation },
      changes: [
        { path: 'containerEngine.name', before: 'containerd', after: 'moby' },
        { path: 'virtualMachine.memoryInGB', before: 3 },
        { path: 'machine.hostPorts', before: [80], after: DEFAULT_BLOCKS.machine.hostPorts },
      ],
      outcome: { result: 'converged' },
    },
  ]);
  expect((await run('history')).out).toMatch(new RegExp(`return to ${generation} +converged`));
  await vi.waitFor(() => expect(() => statSync(here.transactionFile)).toThrow('ENOENT'));
  // Nothing stands that could be undone.
  expect(await run('rollback')).toMatchObject({ exit: 1, err: expect.stringContaining('nothing to undo') });
});

test('it is undone without a tool that waits; extensions and forwards are not changed', async () => {
  const { client, converged } = await scene();
  const { generation } = await client.status();
  const hostPort = await freePort();
  const request = {
    settings: {
      containerEngine: { name: 'containerd' },
      application: { extensions: { installed: { 'simulated/hello': '1.0.0' } } },
    },
    state: 'unmanaged' as const,
    prune: [],
    portForwards: { entries: [{ namespace: 'default', service: 'web', k8sPort: 80, hostPort }], exclusive: false },
  };
  const { tag = '' } = await client.plan(request as never);
  await client.apply(request as never, tag);
  await vi.waitFor(async () => expect((await client.status()).apply?.state).toBe('failed'));
  await converged(generation + 2);
  expect((await client.status()).apply).toMatchObject({ steps: [], error: { code: 'ERR_CONVERGE_FAILED' } });
  const { live } = await client.planWithLive(request as never);
  expect(live.portForwards).toEqual([]);
  expect(live.settings).toMatchObject({ application: { extensions: { installed: {} } } });
});

test('with --on-failure keep it stays, and a rollback is offered', async () => {
  const { run, profile, entries, client } = await scene();
  const { exit, err } = await run('apply', '--on-failure', 'keep', '-f', profile(CHANGE));
  expect(exit).toBe(1);
  expect(err).toContain('rdctl rollback');
  expect(err).not.toContain('is kept');
  expect((await client.settings()).settings.containerEngine).toMatchObject({ name: 'containerd' });
  expect(await client.status()).toMatchObject({
    backendState: 'ERROR',
    transaction: { state: 'kept', onFailure: 'keep' },
  });
  await expect.poll(entries).toMatchObject([{ outcome: { result: 'failed' } }]);
  expect((await run('rollback')).exit).toBe(0);
});

test('a rollback after a change that was undone undoes the last one that succeeded, says which, and asks before it stops what runs', async () => {
  const { run, profile, entries, client } = await scene({ power: 'stopped' });
  expect((await run('up')).exit).toBe(0);
  const [started] = await entries();
  expect((await run('apply', '-f', profile(CHANGE))).exit).toBe(1);
  await expect.poll(entries).toMatchObject([{}, { outcome: { result: 'returned' } }, { by: { how: 'return' } }]);
  const said = `Undoing generation ${started?.generation} (apply, `;
  const plan = await run('rollback', '--plan');
  expect(plan.err).toContain(said);
  expect(plan.err).toContain('failed and is undone already.');
  expect(plan.out).toContain('warning: This stops the desktop, because it was off before the change that is undone.');
  const refused = await run('rollback');
  expect(refused.exit).not.toBe(0);
  expect(refused.err).toContain('This stops the desktop');
  expect(refused.err).toContain('--yes');
  expect((await client.status()).power).toBe('started');
  expect(await run('rollback', '--yes')).toMatchObject({ exit: 0, err: expect.stringContaining(said) });
  expect((await client.status()).power).toBe('stopped');
});

test('a rollback after a change that failed and was kept undoes that one alone', async () => {
  const { run, client, converged, entries } = await scene();
  await run('set', '--virtual-machine.memory-in-gb', '4');
  await converged();
  const { generation } = await client.status();
  await run('set', '--container-engine.name', 'containerd');
  await expect(converged(generation + 1)).rejects.toMatchObject({ code: 'ERR_CONVERGE_FAILED' });
  await expect.poll(async () => (await entries()).at(-1)?.outcome?.result).toBe('failed');
  const { exit, err } = await run('rollback');
  expect({ exit, err }).toMatchObject({
    exit: 0,
    err: expect.stringContaining(', which failed: containerEngine.name'),
  });
  expect((await client.settings()).settings).toMatchObject({
    containerEngine: { name: 'moby' },
    virtualMachine: { memoryInGB: 4 },
  });
});

test('a first start is kept, and says why', async () => {
  const { run, profile, entries, client } = await scene({ power: 'stopped' });
  const { exit, err } = await run('apply', '-f', profile({ ...CHANGE, state: 'started' }));
  expect(exit).toBe(1);
  expect(err).toContain('The change is kept, because the backend has not run in this home before.');
  expect(await client.status()).toMatchObject({ backendState: 'ERROR', transaction: { state: 'kept' } });
  await expect
    .poll(entries)
    .toMatchObject([{ outcome: { result: 'failed', keptBecause: 'the backend has not run in this home before' } }]);
});

test('a classic write stays, with the state ERROR', async () => {
  const { run, client, converged } = await scene();
  const { generation } = await client.status();
  await run('set', '--container-engine.name', 'containerd');
  await expect(converged(generation + 1)).rejects.toMatchObject({ code: 'ERR_CONVERGE_FAILED' });
  const { transaction, backendState } = await client.status();
  expect({ transaction, backendState }).toEqual({ transaction: undefined, backendState: 'ERROR' });
  // An apply that repairs it is none the worse for what failed before.
  expect((await run('rollback')).exit).toBe(0);
});

test('what was off before goes off again', async () => {
  const { run, profile, client } = await scene();
  await run('apply', '-f', profile({ settings: { version: 19 }, state: 'stopped' }));
  await run('set', '--virtual-machine.memory-in-gb', '4');
  const { exit, err } = await run('apply', '-f', profile({ ...CHANGE, state: 'started' }));
  expect([exit, err]).toEqual([1, expect.stringContaining('was undone')]);
  expect(await client.status()).toMatchObject({ power: 'stopped', backendState: 'STOPPED' });
  expect((await client.settings()).settings.virtualMachine).toMatchObject({ memoryInGB: 4 });
});
