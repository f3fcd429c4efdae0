import { onTestFinished } from 'vitest';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import type { FileDrift } from '../../src/features/host-integration/file-drift.ts';
import type { Clock } from '../../src/os/clock.ts';
import type { PlanRequest } from '../../src/plan/change.ts';
import type { Author, HistoryEntry } from '../../src/plan/history.ts';
import type { Desired } from '../../src/reconcile/contract.ts';
import type { ApplyWork } from '../../src/reconcile/status-document.ts';
import { createPlanner } from '../../src/service/planner.ts';
import type { Keep } from '../../src/service/watch/keeper.ts';
import { createWatch } from '../../src/service/watch/watch.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { leafAt, setLeaf } from '../../src/settings/leaf-paths.ts';
import type { WatchRules } from '../../src/settings/watch-rules.ts';
import { createDesiredStore } from '../../src/state/desired-store.ts';
import type { KeptRecord } from '../../src/state/kept-file.ts';
import { NO_SAFETY_SNAPSHOTS, runsWith } from '../helpers/api.ts';
import { requestFor, type Values } from '../plan/planning.ts';
import { settingsWith } from '../reconcile/worlds.ts';

/** A Tuesday. */
export const NOW = Date.parse('2026-11-24T15:00:00Z');

/** A clock that stands still until it is moved; sleepers that are due wake then. */
function standingClock(now = NOW): Clock & { move(ms: number): void } {
  let sleepers: { at: number; wake(): void }[] = [];
  return {
    now: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        const sleeper = { at: now + ms, wake: resolve };
        sleepers.push(sleeper);
        signal?.addEventListener('abort', () => resolve(), { once: true });
      }),
    move(ms) {
      now += ms;
      const due = sleepers.filter(({ at }) => at <= now);
      sleepers = sleepers.filter(({ at }) => at > now);
      for (const { wake } of due) wake();
    },
  };
}

interface SceneOptions {
  live?: Values;
  locks?: Record<string, never> | object;
  /** Left by the last service. */
  stored?: string;
  entries?: readonly HistoryEntry[];
  /** Writes fail while it returns an error. */
  failing?(): Error | undefined;
  generation?: number;
  oldestRollback?: number;
}

/** A watch with the real store and planner above a backend that runs with what it was first given. */
export function watchScene(options: SceneOptions = {}) {
  const clock = standingClock();
  const settings = settingsWith(options.live ?? {});
  const initial: Desired = {
    ...{ settings, ...DEFAULT_BLOCKS, power: 'started' as const },
    generation: options.generation ?? 1,
  };
  const writes: { generation: number; by: Author }[] = [];
  const logged: { level: string; message: string; values?: object }[] = [];
  const saved: string[] = [];
  let work: ApplyWork | undefined;
  let maintenance: string | undefined;
  const store = createDesiredStore({
    initial,
    locks: (options.locks ?? {}) as never,
    async persist(next, _before, by) {
      const error = options.failing?.();
      if (error) throw error;
      writes.push({ generation: next.generation, by });
    },
    onChange: (next, _what, written) => watch.written(next, written),
  });
  const log = (level: string, message: string, values?: object) =>
    logged.push({ level, message, ...(values ? { values } : {}) });
  const planner = createPlanner({
    ...{ store, log, driver: SIMULATED_INFO, host: { platform: 'linux', arch: 'x64' }, idle: false, home: '/home/x' },
    counters: { settingsWrites: 0 },
    kubernetesVersions: () => undefined,
    measured: () => [],
    foresee: (write) => watch.foresee(write),
    safetySnapshots: NO_SAFETY_SNAPSHOTS,
    clock,
    controllers: { observed: () => runsWith(settings), status: () => ({ backendState: 'STARTED' }) } as never,
    portForwards: { list: () => ({ portForwards: [] }) } as never,
    applies: { reserve: () => undefined },
  });
  const records: KeptRecord[] = options.stored === undefined ? [] : JSON.parse(options.stored);
  let fileDrift: FileDrift[] = [];
  const repairs: (readonly string[])[] = [];
  let changes = 0;
  const watch = createWatch({
    ...{ planner, records, clock, log },
    save: async (next) => void saved.push(JSON.stringify(next)),
    entries: options.entries ?? [],
    applies: { report: () => work },
    idle: false,
    startedForApply: false,
    maintenance: () => maintenance,
    generation: () => store.snapshot().desired.generation,
    oldestRollback: () => options.oldestRollback ?? 0,
    files: {
      fileDrift: async () => fileDrift,
      repair: async (parts) => void repairs.push(parts),
      onFilesChanged: () => () => undefined,
    },
    zone: 'UTC',
    onChange: () => {
      changes += 1;
    },
  });
  watch.start();
  onTestFinished(() => watch.close());
  return {
    ...{ watch, store, planner, clock, writes, logged, saved },
    changes: () => changes,
    repairs,
    setFileDrift: (next: FileDrift[]) => {
      fileDrift = next;
    },
    setWork: (next: ApplyWork | undefined) => {
      work = next;
    },
    setMaintenance: (text: string | undefined) => {
      maintenance = text;
    },
    /** Everything that is due has been done. */
    async calm() {
      for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
      await store.idle();
      for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
    },
    value: (path: string) => leafAt(store.snapshot().desired.settings, path),
    /** A write of one setting. */
    async set(path: string, value: never | string | number | boolean, by: Author = { how: 'set', program: 'rdctl/1' }) {
      await store.write(({ desired }) => {
        const next = structuredClone(desired.settings);
        setLeaf(next as never, path, value);
        return { next: { settings: next }, answer: undefined, by };
      });
      await this.calm();
    },
    async keep(
      values: Values,
      watchRules: Partial<WatchRules> = {},
      more: Partial<Keep> & { rest?: Partial<PlanRequest> } = {},
    ) {
      const { rest = {}, ...keepMore } = more;
      const request = requestFor(values, rest);
      const tag = planner.plan(planner.check(request)).tag ?? '';
      const keep = {
        name: 'team',
        watch: { heal: 'report' as const, fields: {}, ...watchRules },
        places: {},
        ...keepMore,
      };
      const reply = await watch.apply(request, tag, { how: 'apply', profile: keep.name }, keep, 'return');
      await this.calm();
      return reply;
    },
  };
}
