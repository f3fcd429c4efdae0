import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createDesiredStore } from '../../src/api/desired-store.ts';
import { RdError } from '../../src/errors.ts';
import { journalFile } from '../../src/service/backend-data.ts';
import { createKeptState, type KeptState } from '../../src/service/kept-state.ts';
import type { MaintenanceWork } from '../../src/service/maintenance.ts';
import { recoverBackend } from '../../src/service/recover-backend.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import type { Settings } from '../../src/settings/settings.gen.ts';
import { readJournal } from '../../src/snapshots/journal.ts';
import { type SwapOperations, swapOperations } from '../../src/snapshots/swap.ts';
import { saveSettings } from '../../src/storage/settings-file.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const BEFORE = defaultSettings({ platform: 'linux', arch: 'x64' });
const AFTER: Settings = { ...BEFORE, virtualMachine: { ...BEFORE.virtualMachine, memoryInGB: 9 } };

/** A home with a directory and two files that are kept; one file only before, one only in the snapshot. */
interface Scene {
  here: { backendLock: string; settingsFile: string; snapshots: string; state: string };
  kept: string[];
  sources: Map<string, string>;
  /** Everything that can be seen of it, leftovers included. */
  seen(): Record<string, string>;
}

async function scene(): Promise<Scene> {
  const home = temporaryDirectory();
  const live = join(home, 'live');
  const saved = join(home, 'saved');
  const here = {
    backendLock: join(home, 'backend.lock'),
    settingsFile: join(home, 'settings.json'),
    snapshots: join(home, 'snapshots'),
    state: join(home, 'state'),
  };
  for (const path of [join(live, 'data', 'deep'), join(saved, '0-data'), here.state])
    mkdirSync(path, { recursive: true });
  writeFileSync(join(live, 'data', 'deep', 'image'), 'of now');
  writeFileSync(join(live, 'disk'), 'disk of now');
  writeFileSync(join(saved, '0-data', 'image'), 'of then');
  writeFileSync(join(saved, '2-cluster'), 'cluster of then');
  await saveSettings(here.settingsFile, undefined, BEFORE);
  const kept = ['data', 'disk', 'cluster'].map((name) => join(live, name));
  return {
    here,
    kept,
    sources: new Map([
      [join(live, 'data'), join(saved, '0-data')],
      [join(live, 'cluster'), join(saved, '2-cluster')],
    ]),
    seen: () => ({ ...tree(live), settings: settingsName(here.settingsFile) }),
  };
}

const OLD = { 'data/deep/image': 'of now', disk: 'disk of now', settings: 'before' };
const NEW = { 'data/image': 'of then', cluster: 'cluster of then', settings: 'after' };
const REPLACED = { 'data.before-restore/deep/image': 'of now', 'disk.before-restore': 'disk of now' };

function tree(top: string): Record<string, string> {
  const files = readdirSync(top, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    files.map(({ parentPath, name }) => {
      const path = join(parentPath, name);
      return [path.slice(top.length + 1), readFileSync(path, 'utf8')];
    }),
  );
}

function settingsName(file: string): string {
  return JSON.parse(readFileSync(file, 'utf8')).virtualMachine.memoryInGB === 9 ? 'after' : 'before';
}

/** Lets `count` effects happen. The next one fails, before or after it took effect; after a death nothing works any more. */
function failing(real: SwapOperations, count: number, how: { when: 'before' | 'after'; dies: boolean }) {
  let left = count;
  let dead = false;
  function guarded<A extends unknown[]>(name: string, work: (...args: A) => Promise<void>) {
    return async (...args: A) => {
      if (dead) throw new Error('dead');
      if (left-- !== 0) {
        await work(...args);
        return;
      }
      dead = how.dies;
      if (how.when === 'after') await work(...args);
      throw new RdError('ERR_IO', `${name} failed`);
    };
  }
  const operations: SwapOperations = {
    copy: guarded('copy', real.copy),
    rename: guarded('rename', real.rename),
    remove: guarded('remove', real.remove),
    flush: guarded('flush', real.flush),
    writeJournal: guarded('writeJournal', real.writeJournal),
    removeJournal: guarded('removeJournal', real.removeJournal),
  };
  return { operations, isDead: () => dead, struck: () => left < 0 };
}

function keptStateOf({ here, kept }: Scene, operations: SwapOperations, isDead = () => false): KeptState {
  const store = createDesiredStore({
    initial: { settings: BEFORE, power: 'started', generation: 1 },
    locks: {},
    async persist(next) {
      if (isDead()) throw new Error('dead');
      await saveSettings(here.settingsFile, undefined, next.settings);
    },
    onChange: () => undefined,
  });
  return createKeptState({ kept, journalFile: journalFile(here), operations, store, log: () => undefined });
}

function work(): MaintenanceWork & { kept: string[] } {
  const kept: string[] = [];
  return {
    kept,
    signal: new AbortController().signal,
    progress: () => undefined,
    resetCluster: async () => undefined,
    keepOff: (reason) => kept.push(reason),
  };
}

const replaceWith = ({ sources }: Scene) => ({
  snapshot: 'one',
  source: (live: string) => sources.get(live),
  check: async () => undefined,
  settings: AFTER,
});

const replacement = (state: KeptState, at: Scene) => state.replace(replaceWith(at), work());
const wiping = (state: KeptState) => state.wipe(work());

/** Bringing it to the disk takes its time on a busy machine, and has no effect that could be seen. */
function real({ here }: Scene): SwapOperations {
  return { ...swapOperations(journalFile(here)), flush: async () => undefined };
}

/** Tries with a failure at step 0, 1, … until one is past the end; returns how many steps there were. */
async function everyStep(tried: (step: number) => Promise<{ struck: boolean }>): Promise<number> {
  for (let step = 0; ; step++) if (!(await tried(step)).struck) return step;
}

describe('replacing what is kept', () => {
  test('puts everything in place, keeps what it replaced, and lets it go when that is confirmed', async () => {
    const at = await scene();
    const state = keptStateOf(at, real(at));
    await replacement(state, at);
    expect(at.seen()).toEqual({ ...NEW, ...REPLACED });
    expect(await readJournal(journalFile(at.here))).toMatchObject({ phase: 'proving', snapshot: 'one' });
    await state.confirm();
    expect(at.seen()).toEqual(NEW);
    expect(await readJournal(journalFile(at.here))).toBeUndefined();
  });

  test('goes back to what was there before, settings included', async () => {
    const at = await scene();
    const state = keptStateOf(at, real(at));
    await replacement(state, at);
    // The backend has been running with it.
    writeFileSync(join(at.kept[0] ?? '', 'image'), 'changed');
    writeFileSync(at.kept[1] ?? '', 'made anew');
    await state.revert(work());
    expect(at.seen()).toEqual(OLD);
    expect(await readJournal(journalFile(at.here))).toBeUndefined();
  });

  test.each(['before', 'after'] as const)('that fails %s any step took effect changes nothing', async (when) => {
    const count = await everyStep(async (step) => {
      const at = await scene();
      const { operations, struck } = failing(real(at), step, { when, dies: false });
      const held = work();
      if (await settledWell(keptStateOf(at, operations).replace(replaceWith(at), held))) {
        expect(at.seen()).toEqual({ ...NEW, ...REPLACED });
      } else {
        expect(at.seen()).toEqual(OLD);
        expect(held.kept).toEqual([]);
        expect(existsSync(journalFile(at.here))).toBe(false);
      }
      return { struck: struck() };
    });
    expect(count).toBeGreaterThan(12);
  });

  test.each(['before', 'after'] as const)(
    'that is killed %s any step is undone or goes on at the next start',
    async (when) => {
      const outcomes = new Set<string>();
      await everyStep(async (step) => {
        const at = await scene();
        const { operations, isDead, struck } = failing(real(at), step, {
          when,
          dies: true,
        });
        await settledWell(keptStateOf(at, operations, isDead).replace(replaceWith(at), work()));
        const { unproven, found } = await recoverBackend(at.here);
        expect(found).toBeUndefined();
        expect(at.seen()).toEqual(unproven ? { ...NEW, ...REPLACED } : OLD);
        expect(existsSync(journalFile(at.here))).toBe(unproven !== undefined);
        outcomes.add(unproven ? 'goes on' : 'undone');
        return { struck: struck() };
      });
      expect([...outcomes].sort()).toEqual(['goes on', 'undone']);
    },
  );

  test('whose undoing is killed at any step too is undone by the start after that', async () => {
    let deaths = 0;
    await everyStep(async (step) => {
      let struck = false;
      await everyStep(async (second) => {
        const at = await scene();
        const first = failing(real(at), step, { when: 'after', dies: true });
        await settledWell(keptStateOf(at, first.operations, first.isDead).replace(replaceWith(at), work()));
        struck = first.struck();
        const again = failing(real(at), second, { when: 'before', dies: true });
        const recovered = await recoverBackend(at.here, again.operations);
        if (again.isDead()) expect(recovered.found).toMatchObject({ lasts: 'service' });
        if (again.isDead()) deaths++;
        const { unproven } = await recoverBackend(at.here);
        expect(at.seen()).toEqual(unproven ? { ...NEW, ...REPLACED } : OLD);
        return { struck: again.isDead() };
      });
      return { struck };
    });
    expect(deaths).toBeGreaterThan(50);
  });

  test('that cannot be undone keeps the backend off, and the next start undoes it', async () => {
    const at = await scene();
    const operationsOf = real(at);
    let swapping = false;
    const operations: SwapOperations = {
      ...operationsOf,
      async rename(from, to) {
        if (swapping) throw new RdError('ERR_IO', 'the disk is gone');
        swapping = to.endsWith('.before-restore');
        await operationsOf.rename(from, to);
      },
    };
    const held = work();
    await expect(keptStateOf(at, operations).replace(replaceWith(at), held)).rejects.toThrow('the disk is gone');
    expect(held.kept).toEqual([
      'The data of the backend could not be put back: the disk is gone. Restart the service to try it again.',
    ]);
    expect((await recoverBackend(at.here)).notices).toEqual([
      'The last service ended during the restore of the snapshot "one"; everything is as it was before.',
    ]);
    expect(at.seen()).toEqual(OLD);
  });

  test('is canceled between the copy and the swap', async () => {
    const at = await scene();
    const abort = new AbortController();
    const state = keptStateOf(at, real(at));
    const input = { ...replaceWith(at), check: async () => abort.abort() };
    await expect(state.replace(input, { ...work(), signal: abort.signal })).rejects.toThrow();
    expect(at.seen()).toEqual(OLD);
  });

  test('does not overwrite what somebody else put in its way', async () => {
    const at = await scene();
    writeFileSync(`${at.kept[1]}.before-restore`, 'of a person');
    const state = keptStateOf(at, real(at));
    await expect(replacement(state, at)).rejects.toThrow('is in the way');
    expect(at.seen()).toMatchObject(OLD);
  });
});

describe('wiping what is kept', () => {
  test('leaves nothing but the settings', async () => {
    const at = await scene();
    await wiping(keptStateOf(at, real(at)));
    expect(at.seen()).toEqual({ settings: 'before' });
    expect(existsSync(journalFile(at.here))).toBe(false);
  });

  test.each(['before', 'after'] as const)(
    'that is killed %s any step has wiped everything or nothing',
    async (when) => {
      const outcomes = new Set<unknown>();
      await everyStep(async (step) => {
        const at = await scene();
        const { operations, isDead, struck } = failing(real(at), step, {
          when,
          dies: true,
        });
        await settledWell(keptStateOf(at, operations, isDead).wipe(work()));
        await recoverBackend(at.here);
        expect([OLD, { settings: 'before' }]).toContainEqual(at.seen());
        expect(existsSync(journalFile(at.here))).toBe(false);
        outcomes.add(Object.keys(at.seen()).length);
        return { struck: struck() };
      });
      expect(outcomes.size).toBe(2);
    },
  );

  test('that fails at any step either throws and has changed nothing, or is done', async () => {
    const outcomes = new Set<boolean>();
    await everyStep(async (step) => {
      const at = await scene();
      const { operations, struck } = failing(real(at), step, {
        when: 'before',
        dies: false,
      });
      const well = await settledWell(keptStateOf(at, operations).wipe(work()));
      if (well) expect(existsSync(at.kept[0] ?? '')).toBe(false);
      else expect(at.seen()).toEqual(OLD);
      outcomes.add(well);
      return { struck: struck() };
    });
    expect(outcomes.size).toBe(2);
  });
});

function settledWell(outcome: Promise<unknown>): Promise<boolean> {
  return outcome.then(
    () => true,
    () => false,
  );
}
