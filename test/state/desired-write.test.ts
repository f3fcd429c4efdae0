import { lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type FileOperations, fileOperations } from '../../src/os/atomic-file.ts';
import type { Desired } from '../../src/reconcile/contract.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { finishWrite, saveDesired, stateOf } from '../../src/state/desired-write.ts';
import { places } from '../../src/state/places.ts';
import { saveSettings } from '../../src/state/settings-file.ts';
import { loadState, saveState } from '../../src/state/state-file.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { settingsWith } from '../reconcile/worlds.ts';

const BEFORE: Desired = {
  settings: settingsWith({ 'virtualMachine.memoryInGB': 4 }),
  ...DEFAULT_BLOCKS,
  power: 'started',
  generation: 7,
};
const NEXT: Desired = {
  settings: settingsWith({ 'virtualMachine.memoryInGB': 8 }),
  machine: { ...DEFAULT_BLOCKS.machine, hostPorts: [80] },
  power: 'stopped',
  generation: 8,
};
const OLD = { memoryInGB: 4, power: 'started', hostPorts: [] };
const NEW = { memoryInGB: 8, power: 'stopped', hostPorts: [80] };

type Fault = 'killed' | 'killed in the middle of a write' | 'ENOSPC' | 'EACCES';

/** Operations of which the n-th fails; a killed process does nothing afterwards, and a full disk stays full. */
function failingAt(fatal: number, fault: Fault, dead: () => void) {
  let count = 0;
  const guarded =
    (work: (...args: never[]) => Promise<unknown>, isWrite: boolean) =>
    async (...args: never[]) => {
      count += 1;
      if (count < fatal || (count > fatal && fault === 'EACCES')) return work(...args);
      if (fault === 'killed' || fault === 'killed in the middle of a write') {
        if (count === fatal && isWrite && fault !== 'killed') {
          const [path, data] = args as unknown as [string, string];
          writeFileSync(path, data.slice(0, data.length / 2));
        }
        dead();
        return new Promise<never>(() => undefined);
      }
      // Removing and renaming need no space.
      if (fault === 'ENOSPC' && !isWrite && count > fatal) return work(...args);
      throw Object.assign(new Error(fault), { code: fault });
    };
  const operations = Object.fromEntries(
    Object.entries(fileOperations).map(([name, work]) => [name, guarded(work, name === 'writeNew')]),
  ) as unknown as FileOperations;
  return { operations, count: () => count };
}

async function stored({ linked = false } = {}) {
  const home = temporaryDirectory();
  const here = places({ RDCTL_HOME: home }, 'linux', '');
  mkdirSync(here.state, { recursive: true });
  if (linked) {
    mkdirSync(here.config);
    mkdirSync(join(home, 'dotfiles'));
    writeFileSync(join(home, 'dotfiles', 'desktop.json'), '{}');
    symlinkSync('../dotfiles/desktop.json', here.settingsFile);
  }
  await saveSettings(here.settingsFile, undefined, BEFORE.settings);
  await saveState(here.stateFile, stateOf('simulated', BEFORE));
  /** What the next service finds. */
  const found = async () => {
    const before = await loadState(here.stateFile);
    await finishWrite(here, before.kind === 'loaded' ? before.state : undefined);
    const loaded = await loadState(here.stateFile);
    if (loaded.kind !== 'loaded') throw new Error('no state');
    const { virtualMachine } = JSON.parse(readFileSync(here.settingsFile, 'utf8'));
    const { power, machine } = loaded.state;
    return { memoryInGB: virtualMachine.memoryInGB, power, hostPorts: machine.hostPorts };
  };
  return { here, found };
}

const FAULTS: readonly Fault[] = ['killed', 'killed in the middle of a write', 'ENOSPC', 'EACCES'];

const CASES = FAULTS.flatMap((fault) => [false, true].map((linked) => [fault, linked ? 'a link' : 'a file'] as const));

test.each(CASES)('%s at any step, of %s: the old or the new state, never half of each', async (fault, kind) => {
  const linked = kind === 'a link';
  const seen = new Set<string>();
  for (let fatal = 1; ; fatal += 1) {
    const { here, found } = await stored({ linked });
    const { operations, count, result } = await new Promise<{
      operations: FileOperations;
      count: () => number;
      result: 'killed' | 'written' | 'refused';
    }>((resolve) => {
      const failing = failingAt(fatal, fault, () => resolve({ ...failing, result: 'killed' }));
      saveDesired(here, 'simulated', { before: BEFORE, next: NEXT }, failing.operations).then(
        () => resolve({ ...failing, result: 'written' }),
        () => resolve({ ...failing, result: 'refused' }),
      );
    });
    expect(operations).toBeDefined();
    const state = await found();
    expect([OLD, NEW], `${fault} at operation ${fatal}`).toContainEqual(state);
    if (result === 'written') expect(state).toEqual(NEW);
    // What happens once can be taken back; a full disk stays full.
    if (result === 'refused' && fault === 'EACCES') expect(state, `at operation ${fatal}`).toEqual(OLD);
    seen.add(JSON.stringify(state));
    expect(await found()).toEqual(state);
    expect(lstatSync(here.settingsFile).isSymbolicLink()).toBe(linked);
    if (count() < fatal) break;
  }
  expect(seen).toEqual(new Set([JSON.stringify(OLD), JSON.stringify(NEW)]));
});

test('settings that were refused do not come with the next write of the same number', async () => {
  for (let fatal = 1; fatal <= 12; fatal += 1) {
    const { here, found } = await stored();
    const { operations } = failingAt(fatal, 'EACCES', () => undefined);
    const isRefused = await saveDesired(here, 'simulated', { before: BEFORE, next: NEXT }, operations).then(
      () => false,
      () => true,
    );
    if (!isRefused) continue;
    await saveDesired(here, 'simulated', { before: BEFORE, next: { ...BEFORE, power: 'stopped', generation: 8 } });
    expect(await found(), `refused at operation ${fatal}`).toEqual({ ...OLD, power: 'stopped' });
  }
});

test('settings that a person edited after a crash are kept', async () => {
  const { here, found } = await stored();
  await new Promise<void>((resolve) => {
    const { operations } = failingAt(8, 'killed', resolve);
    void saveDesired(here, 'simulated', { before: BEFORE, next: NEXT }, operations);
  });
  const edited = settingsWith({ 'virtualMachine.memoryInGB': 5 });
  writeFileSync(here.settingsFile, JSON.stringify(edited));
  expect((await found()).memoryInGB).toBe(5);
});

test('a change of power alone writes no settings', async () => {
  const { here, found } = await stored();
  const settings = readFileSync(here.settingsFile, 'utf8');
  await saveDesired(here, 'simulated', { before: BEFORE, next: { ...BEFORE, power: 'stopped', generation: 8 } });
  expect(await found()).toEqual({ ...OLD, power: 'stopped' });
  expect(readFileSync(here.settingsFile, 'utf8')).toBe(settings);
  expect(() => readFileSync(join(here.state, 'settings.staged.json'))).toThrow('ENOENT');
});
