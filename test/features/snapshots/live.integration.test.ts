import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Driver } from '../../../src/drivers/driver.ts';
import { emptyModel } from '../../../src/drivers/machines/simulated/model.ts';
import { RdError } from '../../../src/errors.ts';
import { createSnapshots } from '../../../src/features/snapshots/snapshots.ts';
import { stagedPath } from '../../../src/features/snapshots/swap.ts';
import { systemClock } from '../../../src/os/clock.ts';
import type { Desired } from '../../../src/reconcile/contract.ts';
import { createControllers } from '../../../src/reconcile/controllers.ts';
import { createMaintenance } from '../../../src/reconcile/maintenance.ts';
import { DEFAULT_BLOCKS } from '../../../src/settings/blocks.gen.ts';
import { backendLock } from '../../../src/state/backend-lock.ts';
import { memorySimulation } from '../../helpers/memory-simulation.ts';
import { withKey } from '../../helpers/sealed-snapshot.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';
import { settingsWith } from '../../reconcile/worlds.ts';

const SETTINGS = settingsWith({ 'kubernetes.enabled': false });
const LOCKED =
  'failed to create snapshot: backend lock file already exists; if there is no snapshot operation in progress, you can remove this error with `rdctl snapshot unlock`';

function gate() {
  let resolve = () => {};
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<void>((go, fail) => {
    resolve = go;
    reject = fail;
  });
  return { promise, resolve, reject };
}

/** The loop and its maintenance over a simulation that supports live copies, which proceed when the test lets them. */
async function scene({ live = true, power = 'started' }: { live?: boolean; power?: Desired['power'] } = {}) {
  const home = temporaryDirectory();
  const root = await withKey(join(home, 'snapshots'));
  const disk = join(home, 'disk');
  const memo = join(home, 'memo');
  writeFileSync(disk, 'of then');
  const simulation = memorySimulation({
    model: emptyModel(),
    now: systemClock.now,
    sleep: systemClock.sleep,
    latency: () => 0,
  });
  const copies: string[] = [];
  const world = {
    /** Lets the copy proceed; with an error it fails. */
    go: gate(),
    damaged: false,
  };
  const driver: Driver = {
    ...simulation.driver,
    keeps: [disk, memo],
    async checkKept({ of, at }) {
      copies.push(`check ${of === disk ? 'disk' : of}`);
      expect(existsSync(at)).toBe(true);
      if (world.damaged) throw new RdError('ERR_DRIVER_FAILED', 'the copy of the data disk is damaged');
    },
  };
  if (live) {
    driver.copyLive = async (pairs, signal, progress) => {
      copies.push('live');
      for (const { from, to } of pairs) if (existsSync(from)) writeFileSync(to, readFileSync(from));
      progress?.(0.406);
      signal.addEventListener('abort', () => world.go.reject(new RdError('ERR_CANCELLED', 'cancelled')));
      await world.go.promise;
    };
  }
  let desired: Desired = { settings: SETTINGS, ...DEFAULT_BLOCKS, power, generation: 1 };
  const controllers = createControllers({ driver, desired, clock: systemClock, random: () => 0, log: () => undefined });
  onTestFinished(() => controllers.close());
  const lock = join(home, 'backend.lock');
  const maintenance = createMaintenance({
    lock: backendLock(lock),
    controllers,
    desired: () => desired,
    clock: systemClock,
    log: () => undefined,
  });
  const unused = async () => Promise.reject(new Error('not part of this test'));
  const snapshots = createSnapshots({
    root,
    safetySnapshotInput: { entries: async () => [], notice: () => undefined },
    safetySnapshotRecord: join(home, 'covering.json'),
    driver,
    maintenance,
    controllers,
    desired: () => desired,
    keptState: {
      // Up to the check of what is staged: later steps have their own tests.
      async replace({ source, check }) {
        const parts = [disk, memo].map((path) => ({ live: path, hadLive: true, comes: source(path) !== undefined }));
        for (const part of parts) {
          const from = source(part.live);
          if (from !== undefined) writeFileSync(stagedPath(part), readFileSync(from));
        }
        await check(parts);
      },
    },
    proof: { waitUntilProven: async () => undefined, watch: () => undefined, close: unused },
    readSettings: async () => SETTINGS,
    log: () => undefined,
    async copy(from, to) {
      copies.push('stopped');
      expect(controllers.status().backendState).toBe('STOPPED');
      writeFileSync(to, readFileSync(from));
    },
  });
  await expect.poll(() => controllers.status().converged).toBe(true);
  const states: string[] = [];
  controllers.onChange(({ backendState, converged }) => {
    const state = `${backendState}${converged ? '' : ' and not converged'}`;
    if (states.at(-1) !== state) states.push(state);
  });
  return {
    root,
    disk,
    memo,
    lock,
    world,
    copies,
    states,
    controllers,
    maintenance,
    snapshots,
    steps: () => controllers.status().counters.steps,
    desire(next: Partial<Desired>) {
      desired = { ...desired, ...next, generation: desired.generation + 1 };
      maintenance.desire(desired);
    },
    manifest() {
      const [id = ''] = readdirSync(root);
      return JSON.parse(readFileSync(join(root, id, 'manifest.json'), 'utf8'));
    },
  };
}

const begun = (copies: string[]) => expect.poll(() => copies).toContain('live');

test('everything runs on during the copy, and only the lock shows it', async () => {
  const { root, world, copies, states, lock, controllers, maintenance, snapshots, steps, manifest } = await scene();
  const before = controllers.status();
  const pending = snapshots.create('one', 'while it runs');
  await begun(copies);
  expect(JSON.parse(readFileSync(lock, 'utf8'))).toMatchObject({ action: 'Creating snapshot "one"' });
  await expect(snapshots.create('two', '')).rejects.toMatchObject({ message: LOCKED });
  expect(maintenance.doing()).toMatch(/^Creating snapshot "one": copying .+, 40 %\.$/);
  world.go.resolve();
  await pending;
  expect(copies).toEqual(['live', 'check disk']);
  expect(maintenance.doing()).toBeUndefined();
  expect(existsSync(lock)).toBe(false);
  expect(states).toEqual([]);
  expect(controllers.status()).toEqual(before);
  expect(steps()).toBe(before.counters.steps);
  expect(await snapshots.list()).toEqual([{ created: expect.any(String), name: 'one', description: 'while it runs' }]);
  expect(manifest()).toMatchObject({ live: true, parts: [{ name: 'disk', saved: '0-disk' }, { name: 'memo' }] });
  const [id = ''] = readdirSync(root);
  expect(readFileSync(join(root, id, '0-disk'), 'utf8')).toBe('of then');
  await snapshots.remove('one');
  expect(readdirSync(root)).toEqual([]);
});

test('changes made meanwhile wait for its end, and say so', async () => {
  const { world, copies, states, controllers, snapshots, desire, steps } = await scene();
  const pending = snapshots.create('one', '');
  await begun(copies);
  const before = steps();
  desire({ settings: settingsWith({ 'kubernetes.enabled': false, 'virtualMachine.memoryInGB': 9 }) });
  await controllers.look(new AbortController().signal);
  const held = controllers.status();
  expect(held).toMatchObject({ generation: 2, converged: false, backendState: 'DISABLED' });
  expect(held.conditions.find(({ type }) => type === 'Converged')).toMatchObject({
    reason: 'Held',
    message: expect.stringMatching(/^Creating snapshot "one": copying .*takes effect after it\.$/),
  });
  expect(steps()).toBe(before);
  world.go.resolve();
  await pending;
  expect(controllers.status()).toMatchObject({ converged: true, machine: { state: 'on', spec: { memoryGiB: 9 } } });
  expect(states[0]).toBe('DISABLED and not converged');
});

test('--stop, a stopped backend, and a driver without live copies: it is stopped', async () => {
  const stopped = await scene();
  await stopped.snapshots.create('one', '', { stop: true });
  expect(stopped.copies).toEqual(['stopped', 'check disk']);
  expect(stopped.states).toContain('STOPPED and not converged');
  expect(stopped.controllers.status()).toMatchObject({ converged: true, backendState: 'DISABLED' });
  expect(stopped.manifest()).not.toHaveProperty('live');

  const off = await scene({ power: 'stopped' });
  await off.snapshots.create('one', '');
  expect(off.copies).toEqual(['stopped', 'check disk']);

  const unable = await scene({ live: false });
  await unable.snapshots.create('one', '', { stop: true });
  expect(unable.copies).toEqual(['stopped', 'check disk']);
});

test.each<[string, (at: Awaited<ReturnType<typeof scene>>) => void, string]>([
  ['a cancel', ({ snapshots }) => void snapshots.cancel(), 'the operation was canceled'],
  ['the end of the service', ({ maintenance }) => void maintenance.close(), 'the operation was canceled'],
  ['a machine that goes', ({ world }) => world.go.reject(new RdError('ERR_DRIVER_FAILED', 'QEMU ended')), 'QEMU ended'],
  [
    'a damaged copy',
    ({ world }) => {
      world.damaged = true;
      world.go.resolve();
    },
    'the copy of the data disk is damaged',
  ],
])('after %s nothing is left, and the backend runs on', async (_what, strike, text) => {
  const at = await scene();
  const pending = at.snapshots.create('one', '');
  await begun(at.copies);
  strike(at);
  await expect(pending).rejects.toMatchObject({
    code: 'ERR_SNAPSHOT',
    message: `failed to create snapshot: ${text}`,
  });
  expect(readdirSync(at.root)).toEqual([]);
  expect(existsSync(at.lock)).toBe(false);
  expect(at.states).toEqual([]);
});

test('a copy is verified before it is restored, and a damaged one is refused', async () => {
  const { disk, world, copies, snapshots, controllers } = await scene();
  world.go.resolve();
  await snapshots.create('one', '');
  await snapshots.restore('one');
  expect(copies).toEqual(['live', 'check disk', 'check disk']);
  world.damaged = true;
  await expect(snapshots.restore('one')).rejects.toMatchObject({
    message: 'failed to restore snapshot "one": the copy of the data disk is damaged',
  });
  expect(controllers.status()).toMatchObject({ converged: true, backendState: 'DISABLED' });
  expect(readFileSync(disk, 'utf8')).toBe('of then');
});

test('a name that is taken during the wait is refused, and no copy starts', async () => {
  const at = await scene();
  mkdirSync(join(at.root, '00000000-0000-4000-8000-000000000000'), { recursive: true });
  const pending = at.snapshots.create('one', '');
  const directory = join(at.root, '00000000-0000-4000-8000-000000000000');
  writeFileSync(join(directory, 'metadata.json'), '{"created":"2026-01-02T03:04:05Z","name":"one","description":""}');
  writeFileSync(join(directory, 'complete.txt'), '');
  await expect(pending).rejects.toMatchObject({ message: expect.stringContaining('name "one" already exists') });
  expect(at.copies).toEqual([]);
});
