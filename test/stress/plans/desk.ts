import { mkdtempSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir, uptime } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import { emptyModel, type Model } from '../../../src/drivers/machines/simulated/model.ts';
import type { JsonObject } from '../../../src/json.ts';
import type { Change, Plan } from '../../../src/plan/change.ts';
import { type LockHolder, lockHolder } from '../../../src/state/home-lock.ts';
import { type Outcome, rdctlProgram } from '../../helpers/cli.ts';
import { isAlive } from '../kills/home.ts';

/** The time limit of a command in these sequences; a hang is a failure of its own. */
const PATIENCE = 90_000;

export type Power = 'started' | 'stopped';

/** What `apply -o json` prints. */
export interface Report {
  outcome: 'unchanged' | 'applied' | 'sent';
  changes: Change[];
  writes: number;
  converged: boolean;
}

interface DeskStatus {
  converged: boolean;
  power: Power;
  backendState: string;
  engine: { name: string; state: string };
}

/** What can be read from a home without changing anything. */
export interface Facts {
  /** Absent before the first start. */
  settings?: JsonObject;
  /** The desired power state that a service last recorded; a shutdown does not change it. */
  recorded?: Power;
  model: Model;
  /** Whether a service answers. */
  served: boolean;
}

/** A home of the built tool with the simulated driver, whose model can be changed behind the service's back. */
export interface Desk {
  home: string;
  /** Throws when the command hangs. */
  rdctl(argv: readonly string[], options?: { stdin?: string; onSpawn?: (pid: number) => void }): Promise<Outcome>;
  plan(profile: string, ...more: string[]): Promise<{ exit: number; err: string; plan: Plan }>;
  status(): Promise<DeskStatus>;
  facts(): Promise<Facts>;
  model(): Model;
  /** Changes the model atomically, as someone other than the service would. */
  change(change: (model: Model) => Model): void;
  service(): Promise<LockHolder | undefined>;
  /** Kills the service if one lives. */
  kill(): Promise<void>;
  /** Kills the service and everything that it ran, and leaves what a reboot leaves. */
  reboot(): Promise<void>;
  /** Waits until a running service has nothing left to do. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

export function openDesk(entry: string): Desk {
  const home = mkdtempSync(join(tmpdir(), 'rdctl-plans-'));
  const env = {
    RDCTL_HOME: home,
    HOME: home,
    RDCTL_DRIVER: 'simulated',
    RDCTL_SIMULATED_LATENCY_MS: '6',
    RDCTL_SIMULATED_WORKLOAD: 'containers=2,images=3',
  };
  const lock = join(home, 'state', 'service.lock');
  const connectionFile = join(home, 'app-engine.json');
  const modelFile = join(home, 'state', 'drivers', 'simulated', 'machine.json');

  const rdctl: Desk['rdctl'] = async (argv, { stdin = '', onSpawn } = {}) => {
    let hung = false;
    let timer: NodeJS.Timeout | undefined;
    const outcome = await rdctlProgram(argv, {
      entry,
      env,
      stdin,
      onSpawn(child) {
        onSpawn?.(child.pid ?? 0);
        timer = setTimeout(() => {
          hung = true;
          child.kill('SIGKILL');
        }, PATIENCE);
      },
    });
    clearTimeout(timer);
    if (hung) throw new Error(`rdctl ${argv.join(' ')} hangs: ${outcome.err}`);
    return outcome;
  };

  const model = (): Model => readJson<Model>(modelFile) ?? emptyModel();

  const desk: Desk = {
    home,
    rdctl,
    model,
    async plan(profile, ...more) {
      const argv = ['plan', '-f', '-', '-o', 'json', '--detailed-exitcode', ...more];
      const { exit, out, err } = await rdctl(argv, { stdin: profile });
      return { exit, err, plan: JSON.parse(out) };
    },
    async status() {
      const { out, err } = await rdctl(['status', '-o', 'json']);
      expect(err).toBe('');
      return JSON.parse(out);
    },
    async facts() {
      const service = await desk.service();
      const settings = readJson<JsonObject>(join(home, 'config', 'settings.json'));
      const state = readJson<{ power: Power }>(join(home, 'state', 'state.json'));
      return {
        ...(settings ? { settings } : {}),
        ...(state ? { recorded: state.power } : {}),
        model: model(),
        served: service !== undefined,
      };
    },
    change(change) {
      const temporary = `${modelFile}.by-the-test`;
      const before = model();
      const after = change(before);
      if (isDeepStrictEqual(after, before)) return;
      writeFileSync(temporary, JSON.stringify(after));
      renameSync(temporary, modelFile);
    },
    async service() {
      const holder = await lockHolder(lock);
      return holder?.alive ? holder : undefined;
    },
    async kill() {
      const holder = await desk.service();
      if (!holder) return;
      process.kill(holder.pid, 'SIGKILL');
      await expect.poll(() => isAlive(holder.pid)).toBe(false);
    },
    async reboot() {
      await desk.kill();
      desk.change(({ machine, engines, cluster, ...rest }) => ({
        ...rest,
        machine: machine.state === 'absent' ? machine : { state: 'off' },
        engines: { moby: stopped(engines.moby), containerd: stopped(engines.containerd) },
        cluster: cluster.state === 'absent' ? cluster : down(cluster),
      }));
      // Processes of an earlier boot hold no lock, and all files were written before this one.
      rmSync(lock, { recursive: true, force: true });
      const before = Date.now() / 1000 - uptime() - 60;
      if (readJson(connectionFile) !== undefined) utimesSync(connectionFile, before, before);
    },
    async settled() {
      await expect
        .poll(async () => {
          const { exit, out } = await rdctl(['status', '-o', 'json']);
          return exit !== 0 && exit !== 2 ? true : (JSON.parse(out) as DeskStatus).converged;
        })
        .toBe(true);
    },
    async close() {
      await rdctl(['shutdown']);
      await desk.kill();
      rmSync(home, { recursive: true, force: true });
    },
  };
  return desk;
}

/** An engine without its process; its data on disk stays. */
export function stopped(engine: Model['engines']['moby']): Model['engines']['moby'] {
  const containers = engine.containers.map((container) => ({ ...container, running: false }));
  return { ...engine, process: { state: 'stopped' }, containers };
}

/** A cluster without its processes. */
export function down(cluster: Exclude<Model['cluster'], { state: 'absent' }>): Model['cluster'] {
  const { installedVersion, workloads } = cluster;
  return { state: 'stopped', installedVersion, workloads };
}

function readJson<T>(path: string): T | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
