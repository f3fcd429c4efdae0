import { appendFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import type { HistoryEntry } from '../../../src/plan/history.ts';
import { rounds } from '../../helpers/rounds.ts';
import { type DiskFault, FAULTS, type FaultyDisk, faultyDisk } from './faulty-disk.ts';
import { openScene, refusesMemory } from './scene.ts';

/** Two settings in different groups and the power, so that a mixture would show. */
const CHANGE = { 'virtualMachine.memoryInGB': 5, 'images.namespace': 'new' };
const OLD = { memory: 2, namespace: 'default' };
const NEW = { memory: 5, namespace: 'new' };

type Scene = Awaited<ReturnType<typeof openScene>>;

function stateOf(scene: Scene): typeof OLD {
  const { virtualMachine, images } = scene.desired().settings;
  return { memory: virtualMachine.memoryInGB, namespace: images.namespace };
}

/** What the history says is in force. */
function recordedState(entries: readonly HistoryEntry[]): typeof OLD {
  const state = { ...OLD };
  for (const { changes, outcome } of entries) {
    if (outcome?.result === 'not applied') continue;
    for (const { path, after } of changes) {
      if (path === 'virtualMachine.memoryInGB') state.memory = Number(after);
      if (path === 'images.namespace') state.namespace = String(after);
    }
  }
  return state;
}

/** Runs until the transaction ended or the process was killed. */
async function run(scene: Scene, disk: FaultyDisk, fatal: number, fault: DiskFault, work: () => Promise<unknown>) {
  const killed = new Promise<'killed'>((resolve) =>
    disk.arm(fatal, fault, () => {
      scene.kill();
      resolve('killed');
    }),
  );
  const ended = work().then(
    () => settled(scene, fault),
    () => 'refused' as const,
  );
  const end = await Promise.race([killed, ended]);
  if (end === 'killed') return end;
  // What follows the end is on the disk as well.
  return Promise.race([killed, scene.end().then(() => end)]);
}

/** A disk that stays full keeps a return from being written, for the next service to write it. */
async function settled(scene: Scene, fault: DiskFault): Promise<string> {
  for (;;) {
    const { state = 'changing', unwritten } = scene.transactions.report() ?? {};
    if (['returned', 'kept', 'failed'].includes(state)) return state;
    if (fault === 'ENOSPC' && unwritten !== undefined) return 'unwritten';
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function sceneOn(disk: FaultyDisk, before?: Scene) {
  return openScene({
    ...(before ? { home: before.home, model: before.model() } : {}),
    refuses: refusesMemory(5),
    operations: disk.operations,
    append: disk.append,
  });
}

const newDisk = () => faultyDisk((path, text) => appendFile(path, text, { mode: 0o600 }));

/** The next service: it finds one of both states, goes on, and ends with the old one; the history tells how. */
async function checkNext(before: Scene, end: string): Promise<void> {
  const next = await sceneOn(newDisk(), before);
  const found = stateOf(next);
  expect([OLD, NEW]).toContainEqual(found);
  expect(recordedState(await next.entries())).toEqual(found);
  const isOpen = next.transactions.report() !== undefined;
  if (found.memory === NEW.memory) expect(isOpen).toBe(true);
  if (isOpen) expect((await next.reaches('returned', 'kept', 'done')).state).toBe('returned');
  if (isOpen || found.memory === OLD.memory) expect(stateOf(next)).toEqual(OLD);
  const entries = await next.entries();
  expect(recordedState(entries)).toEqual(stateOf(next));
  const applied = entries.filter(({ outcome }) => outcome?.result !== 'not applied');
  const returns = applied.filter(({ by }) => by.how === 'return');
  const change = applied.find(({ by }) => by.how === 'apply');
  expect(returns.length).toBe(change && stateOf(next).memory === OLD.memory ? 1 : 0);
  // An outcome that could not be written is missing; the rollback itself tells it.
  const outcomes = end === 'killed' ? ['returned'] : ['returned', undefined];
  if (returns.length > 0) expect(outcomes).toContain(change?.outcome?.result);
  await next.end();
}

test.each(FAULTS)(
  '%s at any step of a failing change: the old or the new state, and it goes back once',
  async (fault) => {
    const ends = new Map<string, number>();
    for (let fatal = 1; ; fatal += 1) {
      const disk = newDisk();
      const scene = await sceneOn(disk);
      await scene.converged();
      const end = await run(scene, disk, fatal, fault, () => scene.write(CHANGE));
      ends.set(end, (ends.get(end) ?? 0) + 1);
      if (end === 'returned') expect(stateOf(scene)).toEqual(OLD);
      if (end === 'refused') expect(stateOf(scene)).toEqual(OLD);
      if (end === 'unwritten') expect(stateOf(scene)).toEqual(NEW);
      await checkNext(scene, end);
      if (disk.count() < fatal) break;
    }
    // Every step was reached: those before the change, and those of its return.
    const others = fault.startsWith('killed')
      ? ['killed']
      : fault === 'ENOSPC'
        ? ['refused', 'unwritten']
        : ['refused'];
    expect([...ends.keys()].sort()).toEqual([...others, 'returned'].sort());
    expect([...ends.values()].reduce((sum, each) => sum + each)).toBeGreaterThan(30);
  },
);

test('a service that is killed while it continues a return is followed by one that does, once', async () => {
  // The write itself is over at the first failure; what follows is the rollback.
  const step = rounds(5, 1);
  let pairs = 0;
  for (let first = 20; ; first += step) {
    let wasReached = false;
    for (let second = 1; ; second += step) {
      const disk = newDisk();
      const scene = await sceneOn(disk);
      await scene.converged();
      const end = await run(scene, disk, first, 'killed', () => scene.write(CHANGE));
      if (end !== 'killed') break;
      wasReached = true;
      const again = newDisk();
      const next = await sceneOn(again, scene);
      if (!next.transactions.report()) {
        await next.end();
        break;
      }
      await run(next, again, second, 'killed', async () => undefined);
      pairs += 1;
      await checkNext(next, 'killed');
      if (again.count() < second) break;
    }
    if (!wasReached) break;
  }
  expect(pairs).toBeGreaterThan(10);
});
