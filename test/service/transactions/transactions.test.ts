import { appendFileSync, statSync, writeFileSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { RdError } from '../../../src/errors.ts';
import { openScene, refusesMemory } from './scene.ts';

const MEMORY = { 'virtualMachine.memoryInGB': 5 };
const SECRET = { 'experimental.virtualMachine.proxy.password': 'hunter2' };

test('a change that converges is done once it has run for three seconds, and that state is kept for its owner alone', async () => {
  const scene = await openScene();
  await scene.converged();
  const begun = scene.clock.now();
  const generation = await scene.write({ ...MEMORY, ...SECRET });
  expect(await scene.reaches('proving')).toEqual({ generation, onFailure: 'return', state: 'proving' });
  await scene.reaches('done');
  expect(scene.clock.now() - begun).toBeGreaterThanOrEqual(3000);
  expect(statSync(scene.here.provenFile).mode & 0o777).toBe(0o600);
  await vi.waitFor(() => expect(() => statSync(scene.here.transactionFile)).toThrow('ENOENT'));
  expect(await scene.entries()).toMatchObject([{ outcome: { result: 'converged' } }]);
});

test('a machine that does not boot is given up after two attempts; secrets come back as well', async () => {
  let time = 0;
  const scene = await openScene({
    refuses(desired, step) {
      time += 1;
      return refusesMemory(5, new RdError('ERR_DRIVER_FAILED', `${time}: QEMU ended`))(desired, step);
    },
  });
  await scene.write(SECRET);
  await scene.reaches('done');
  const before = scene.desired();
  await scene.write(MEMORY);
  await scene.reaches('returned');
  expect(scene.attempts.filter((name) => name === 'machine start')).toHaveLength(4);
  expect(scene.desired()).toEqual({ ...before, generation: before.generation + 2 });
});

test('a failure that differs each time gets all its attempts, and one that takes a minute gets two', async () => {
  let count = 0;
  const scene = await openScene({
    refuses: ({ settings: { virtualMachine } }, step) => {
      if (step !== 'machine start') return undefined;
      if (virtualMachine.memoryInGB === 4) return 'hang';
      count += 1;
      return virtualMachine.memoryInGB === 5 ? new RdError('ERR_DRIVER_FAILED', 'x'.repeat(count)) : undefined;
    },
  });
  await scene.converged();
  await scene.write(MEMORY);
  await scene.reaches('returned');
  expect(count).toBe(1 + 6 + 1);
  await scene.write({ 'virtualMachine.memoryInGB': 4 });
  await scene.reaches('returned');
  expect(scene.attempts.filter((name) => name === 'machine start')).toHaveLength(8 + 2 + 1);
});

test('a failure of the network gets all its attempts and is kept', async () => {
  const scene = await openScene({ refuses: refusesMemory(5, new RdError('ERR_CONNECTION', 'no route')) });
  await scene.converged();
  const generation = await scene.write(MEMORY);
  const { keptBecause } = await scene.reaches('kept');
  expect(keptBecause).toBe('the network or a registry failed');
  expect(scene.attempts.filter((name) => name === 'machine start')).toHaveLength(1 + 6);
  expect(scene.desired().generation).toBe(generation);
  expect((await scene.entries()).at(-1)?.outcome).toMatchObject({ result: 'failed', keptBecause });
});

test('what fails while it is proven is undone as well', async () => {
  let isBroken = false;
  const scene = await openScene({
    refuses: ({ settings }, step) =>
      isBroken && settings.virtualMachine.memoryInGB === 5 && step.endsWith(' start')
        ? new RdError('ERR_DRIVER_TERMINAL', 'it does not come up again')
        : undefined,
  });
  await scene.converged();
  await scene.write(MEMORY);
  await scene.reaches('proving');
  isBroken = true;
  scene.meddle((model) => ({
    ...model,
    engines: { ...model.engines, moby: { ...model.engines.moby, process: { state: 'stopped' } } },
  }));
  await scene.reaches('returned');
  expect(await scene.entries()).toMatchObject([{ outcome: { result: 'returned' } }, { by: { how: 'return' } }]);
});

test('a return that cannot be written is written once it can be, and says so until then', async () => {
  let room = 4;
  const refuses = refusesMemory(5);
  let hasFailed = false;
  const scene = await openScene({
    refuses(desired, step) {
      const error = refuses(desired, step);
      hasFailed ||= error !== undefined;
      return error;
    },
    async append(path, text) {
      if (hasFailed && room > 0) {
        room -= 1;
        throw Object.assign(new Error('no space left'), { code: 'ENOSPC' });
      }
      appendFileSync(path, text);
    },
  });
  await scene.converged();
  const before = scene.desired();
  const generation = await scene.write(MEMORY);
  expect((await scene.reaches('returning')).to).toBe(before.generation);
  const unwritten: string[] = [];
  scene.transactions.onChange(() => unwritten.push(scene.transactions.report()?.unwritten ?? ''));
  const report = await scene.reaches('returned');
  expect(unwritten).toContainEqual(expect.stringContaining('no space left'));
  expect(report).toEqual({
    ...{ generation, onFailure: 'return', state: 'returned', reason: report.reason },
    ...{ to: before.generation, returnGeneration: generation + 1 },
  });
  expect(scene.desired().settings).toEqual(before.settings);
});

/** Ends the engine two seconds after it runs, until the service goes back. */
async function keepsEnding(info: Parameters<typeof openScene>[0] = {}): Promise<void> {
  const scene = await openScene(info);
  await scene.converged();
  const before = scene.desired();
  const generation = await scene.write(MEMORY);
  let deaths = 0;
  for (let state = 'changing'; state !== 'returned'; state = scene.transactions.report()?.state ?? '') {
    await scene.clock.sleep(2_000);
    if (scene.desired().generation !== generation || !scene.controllers.status().converged) continue;
    deaths += 1;
    scene.meddle((model) => ({
      ...model,
      engines: { ...model.engines, moby: { ...model.engines.moby, process: { state: 'stopped' } } },
    }));
  }
  expect(deaths).toBe(3);
  expect(scene.transactions.report()?.reason).toMatch(
    /^the engine ended 3 times within \d+ s, each time soon after its start/,
  );
  expect(scene.desired().settings).toEqual(before.settings);
  expect(await scene.entries()).toMatchObject([{ outcome: { result: 'returned' } }, { by: { how: 'return' } }]);
}

test('an engine that ends again and again while it is proven is a failure of the change', () => keepsEnding());

test('an engine that ends again and again right after it was proven is a failure of the change', () =>
  keepsEnding({ info: { provingMs: 300 } }));

test('an engine that ends again and again is not blamed on a change that does not affect it', async () => {
  const scene = await openScene();
  await scene.converged();
  const generation = await scene.write({ 'images.namespace': 'other' });
  for (let state = 'changing'; state !== 'kept'; state = scene.transactions.report()?.state ?? '') {
    await scene.clock.sleep(2_000);
    if (!scene.controllers.status().converged) continue;
    scene.meddle((model) => ({
      ...model,
      engines: { ...model.engines, moby: { ...model.engines.moby, process: { state: 'stopped' } } },
    }));
  }
  expect(scene.transactions.report()?.keptBecause).toBe('the change does not affect the engine');
  expect(scene.desired().generation).toBe(generation);
});

test('another write supersedes it, and its own failure goes back to what ran before both', async () => {
  const memory = refusesMemory(5);
  const scene = await openScene({
    refuses: (desired, step) =>
      desired.settings.virtualMachine.memoryInGB === 4 && step === 'machine stop' ? 'hang' : memory(desired, step),
  });
  await scene.converged();
  const before = scene.desired();
  await scene.write({ 'virtualMachine.memoryInGB': 4 });
  await scene.write(MEMORY);
  expect(await scene.reaches('returned')).toMatchObject({ to: before.generation });
  expect(scene.desired().settings).toEqual(before.settings);
  expect(await scene.entries()).toMatchObject([
    { outcome: { result: 'superseded' } },
    { outcome: { result: 'returned' } },
    { by: { how: 'return' } },
  ]);
});

test('a write during a return stands', async () => {
  const scene = await openScene({ refuses: refusesMemory(5) });
  await scene.converged();
  await scene.write(MEMORY);
  await scene.reaches('returning');
  await scene.write({ 'virtualMachine.memoryInGB': 3 }, { how: 'set' });
  await scene.converged();
  expect(scene.desired().settings.virtualMachine.memoryInGB).toBe(3);
  expect(scene.transactions.report()?.state).toBe('superseded');
});

test('an earlier state that fails as well is reported, and is gone back to once', async () => {
  let isBroken = false;
  const scene = await openScene({
    refuses: (_, step) =>
      isBroken && step === 'machine start' ? new RdError('ERR_DRIVER_TERMINAL', 'QEMU ended') : undefined,
  });
  await scene.converged();
  isBroken = true;
  await scene.write(MEMORY);
  await scene.reaches('failed');
  expect(await scene.entries()).toMatchObject([
    { outcome: { result: 'returned' } },
    { by: { how: 'return' }, outcome: { result: 'failed' } },
  ]);
});

test('the next service continues: it goes back, or learns that the change runs', async () => {
  const first = await openScene({ refuses: (_, step) => (step === 'machine stop' ? 'hang' : undefined) });
  await first.converged();
  const generation = await first.write(MEMORY);
  first.kill();
  const { home } = first;
  const second = await openScene({ home, model: first.model(), refuses: refusesMemory(5) });
  expect(second.transactions.report()).toMatchObject({ generation, state: 'changing' });
  second.kill();
  const third = await openScene({ home, model: first.model() });
  await third.reaches('done');
  expect((await third.entries()).at(-1)).toMatchObject({ generation, outcome: { result: 'converged' } });
});

test('a lock that came meanwhile is not gone past', async () => {
  const first = await openScene({ refuses: (_, step) => (step === 'machine stop' ? 'hang' : undefined) });
  await first.converged();
  await first.write(MEMORY);
  first.kill();
  const locks = { virtualMachine: { memoryInGB: true } };
  const second = await openScene({ home: first.home, model: first.model(), locks, refuses: refusesMemory(5) });
  const { keptBecause } = await second.reaches('kept');
  expect(keptBecause).toBe('going back would change "virtualMachine.memoryInGB", which is locked');
});

test('settings that someone edited meanwhile end it', async () => {
  const first = await openScene({ refuses: (_, step) => (step === 'machine stop' ? 'hang' : undefined) });
  await first.converged();
  await first.write(MEMORY);
  first.kill();
  writeFileSync(first.here.settingsFile, JSON.stringify({ version: 19, virtualMachine: { memoryInGB: 3 } }));
  const second = await openScene({ home: first.home, model: first.model() });
  expect(second.transactions.report()).toBeUndefined();
});

test('an extension that the service records supersedes nothing', async () => {
  const scene = await openScene();
  await scene.converged();
  await scene.write(MEMORY);
  await scene.reaches('proving');
  const installed = { ...MEMORY, 'application.extensions.installed': { 'simulated/hello': '1.0.0' } };
  const generation = await scene.write(installed, { how: 'service' });
  expect(await scene.reaches('done')).toMatchObject({ generation: generation - 1 });
});
