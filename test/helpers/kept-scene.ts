import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RdError } from '../../src/errors.ts';
import { type Journal, journalFile } from '../../src/features/snapshots/journal.ts';
import { createKeptState, type KeptState } from '../../src/features/snapshots/kept-state.ts';
import { type SwapOperations, swapOperations } from '../../src/features/snapshots/swap.ts';
import type { MaintenanceWork } from '../../src/reconcile/maintenance.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import type { Settings } from '../../src/settings/settings.gen.ts';
import { createDesiredStore } from '../../src/state/desired-store.ts';
import { saveSettings } from '../../src/state/settings-file.ts';
import { temporaryDirectory } from './temp-home.ts';

export const BEFORE = defaultSettings({ platform: 'linux', arch: 'x64' });
export const AFTER: Settings = { ...BEFORE, virtualMachine: { ...BEFORE.virtualMachine, memoryInGB: 9 } };

/** A home with a kept directory and two kept files; one file exists only before, one only in the snapshot. */
export interface Scene {
  here: {
    backendLock: string;
    settingsFile: string;
    snapshots: string;
    state: string;
    historyFile: string;
    kept: string[];
  };
  kept: string[];
  sources: Map<string, string>;
  /** Everything visible of it, including leftovers. */
  seen(): Record<string, string>;
}

export async function scene(): Promise<Scene> {
  const home = temporaryDirectory();
  const live = join(home, 'live');
  const saved = join(home, 'saved');
  const here = {
    backendLock: join(home, 'backend.lock'),
    settingsFile: join(home, 'settings.json'),
    snapshots: join(home, 'snapshots'),
    state: join(home, 'state'),
    historyFile: join(home, 'state', 'history.jsonl'),
    kept: ['data', 'disk', 'cluster'].map((name) => join(live, name)),
  };
  for (const path of [join(live, 'data', 'deep'), join(saved, '0-data'), here.state])
    mkdirSync(path, { recursive: true });
  writeFileSync(join(live, 'data', 'deep', 'image'), 'of now');
  writeFileSync(join(live, 'disk'), 'disk of now');
  writeFileSync(join(saved, '0-data', 'image'), 'of then');
  writeFileSync(join(saved, '2-cluster'), 'cluster of then');
  await saveSettings(here.settingsFile, undefined, BEFORE);
  return {
    here,
    kept: here.kept,
    sources: new Map([
      [join(live, 'data'), join(saved, '0-data')],
      [join(live, 'cluster'), join(saved, '2-cluster')],
    ]),
    seen: () => ({ ...tree(live), settings: settingsName(here.settingsFile) }),
  };
}

export const OLD = { 'data/deep/image': 'of now', disk: 'disk of now', settings: 'before' };
export const NEW = { 'data/image': 'of then', cluster: 'cluster of then', settings: 'after' };
export const REPLACED = { 'data.before-restore/deep/image': 'of now', 'disk.before-restore': 'disk of now' };

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
  const names: Record<number, string> = { 9: 'after', 12: 'later' };
  return names[JSON.parse(readFileSync(file, 'utf8')).virtualMachine.memoryInGB] ?? 'before';
}

/** Allows `count` effects. The next one fails, before or after it took effect; after a death nothing works any more. */
export function failing(real: SwapOperations, count: number, how: { when: 'before' | 'after'; dies: boolean }) {
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

export function keptStateOf(
  { here, kept }: Scene,
  operations: SwapOperations,
  isDead = () => false,
  begin: { unproven?: Journal; settings?: Settings } = {},
): KeptState {
  const { unproven, settings = BEFORE } = begin;
  const store = createDesiredStore({
    initial: { settings, ...DEFAULT_BLOCKS, power: 'started', generation: 1 },
    locks: {},
    async persist(next) {
      if (isDead()) throw new Error('dead');
      await saveSettings(here.settingsFile, undefined, next.settings);
    },
    onChange: () => undefined,
  });
  return createKeptState({
    kept,
    journalFile: journalFile(here),
    operations,
    store,
    log: () => undefined,
    ...(unproven ? { unproven } : {}),
  });
}

export function work(): MaintenanceWork & { kept: string[] } {
  const kept: string[] = [];
  return {
    kept,
    signal: new AbortController().signal,
    progress: () => undefined,
    resetCluster: async () => undefined,
    keepOff: (reason) => kept.push(reason),
  };
}

export const replaceWith = ({ sources }: Scene) => ({
  snapshot: 'one',
  source: (live: string) => sources.get(live),
  check: async () => undefined,
  settings: AFTER,
});

export const replacement = (state: KeptState, at: Scene) => state.replace(replaceWith(at), work());
export const wiping = (state: KeptState) => state.wipe(work());

/** Flushing takes time on a busy machine, and has no visible effect. */
export function real({ here }: Scene): SwapOperations {
  return { ...swapOperations(journalFile(here)), flush: async () => undefined };
}

/** Tries a failure at step 0, `stride`, … until one is past the end; returns the first step past the end. */
export async function everyStep(tried: (step: number) => Promise<{ struck: boolean }>, stride = 1): Promise<number> {
  for (let step = 0; ; step += stride) if (!(await tried(step)).struck) return step;
}

export function settledWell(outcome: Promise<unknown>): Promise<boolean> {
  return outcome.then(
    () => true,
    () => false,
  );
}
