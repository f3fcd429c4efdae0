import { mkdirSync } from 'node:fs';
import { onTestFinished } from 'vitest';
import type { DriverInfo } from '../../../src/drivers/driver.ts';
import { emptyModel, type Model } from '../../../src/drivers/machines/simulated/model.ts';
import type { Fault } from '../../../src/drivers/machines/simulated/options.ts';
import { RdError } from '../../../src/errors.ts';
import type { JsonObject } from '../../../src/json.ts';
import type { FileOperations } from '../../../src/os/atomic-file.ts';
import type { Author } from '../../../src/plan/history.ts';
import type { OnFailure } from '../../../src/plan/rollback.ts';
import type { Desired } from '../../../src/reconcile/contract.ts';
import { createControllers } from '../../../src/reconcile/controllers.ts';
import type { TransactionReport } from '../../../src/reconcile/status-document.ts';
import { writeDurably } from '../../../src/service/durable-write.ts';
import { serviceHistory } from '../../../src/service/history.ts';
import { createTransactions } from '../../../src/service/transactions/transactions.ts';
import { DEFAULT_BLOCKS } from '../../../src/settings/blocks.gen.ts';
import type { Settings } from '../../../src/settings/settings.gen.ts';
import { createDesiredStore } from '../../../src/state/desired-store.ts';
import { finishWrite, saveDesired, stateOf } from '../../../src/state/desired-write.ts';
import { type HistoryOptions, openHistory } from '../../../src/state/history-file.ts';
import { places } from '../../../src/state/places.ts';
import { loadSettings, saveSettings } from '../../../src/state/settings-file.ts';
import { loadState, saveState } from '../../../src/state/state-file.ts';
import { transactionFiles } from '../../../src/state/transaction-files.ts';
import { memorySimulation } from '../../helpers/memory-simulation.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';
import { createVirtualClock } from '../../reconcile/virtual-clock.ts';
import { settingsWith } from '../../reconcile/worlds.ts';

const HOST = { platform: 'linux', arch: 'x64' } as const;

/** What a step of a backend with these settings fails with. */
export type Refuses = (desired: Desired, step: string) => RdError | 'hang' | undefined;

export interface SceneOptions {
  /** An existing home, and what runs in it, for the next service. */
  home?: string;
  model?: Model;
  /** Of a home that is new. */
  settings?: Settings;
  power?: Desired['power'];
  refuses?: Refuses;
  locks?: JsonObject;
  isRestoreUnproven?: boolean;
  operations?: FileOperations;
  append?: HistoryOptions['append'];
  info?: Partial<DriverInfo>;
}

/** The loop, the store, the history and the transactions of a service, on the disk and on a clock that never waits. */
export async function openScene(options: SceneOptions = {}) {
  const { home = temporaryDirectory(), model = emptyModel(), refuses = () => undefined, operations } = options;
  const here = places({ RDCTL_HOME: home }, 'linux', '');
  mkdirSync(here.state, { recursive: true });
  const loaded = await loadState(here.stateFile);
  const state = loaded.kind === 'loaded' ? loaded.state : undefined;
  await finishWrite(here, state);
  const found = await loadSettings(here.settingsFile, here.previousSettingsFile, HOST);
  const settings = found.kind === 'loaded' ? found.settings : (options.settings ?? NO_CLUSTER);
  if (found.kind !== 'loaded') await saveSettings(here.settingsFile, undefined, settings);
  const file = await openHistory(here.historyFile, state?.generation ?? Number.POSITIVE_INFINITY, Date.now, {
    ...(options.append ? { append: options.append } : {}),
  });
  const log: string[] = [];
  const write = (_level: string, message: string) => void log.push(message);
  let closing = Promise.resolve();
  const tracked: typeof file = {
    ...file,
    close(generation, outcome) {
      closing = file.close(generation, outcome);
      return closing;
    },
  };
  const history = serviceHistory(tracked, { write } as never);
  const initial: Desired = {
    settings,
    machine: state?.machine ?? DEFAULT_BLOCKS.machine,
    power: options.power ?? state?.power ?? 'started',
    generation: Math.max(state?.generation ?? 0, history.last) + 1,
  };
  await saveState(here.stateFile, stateOf('simulated', initial));
  const files = transactionFiles(here, HOST, operations);
  const [proven, left] = [await files.readProven(), await files.readTransaction()];

  const clock = createVirtualClock({ auto: true });
  let isDead = false;
  const attempts: string[] = [];
  const simulation = memorySimulation({
    model,
    now: clock.now,
    sleep: clock.sleep,
    ...(options.info ? { info: options.info } : {}),
    faults(part, step): Fault | undefined {
      if (isDead) return { kind: 'hang' };
      const name = `${part} ${step}`;
      const error = step === 'observe' ? undefined : refuses(store.snapshot().desired, name);
      if (step !== 'observe') attempts.push(name);
      if (error === 'hang') return { kind: 'hang' };
      return error && { kind: 'error', when: 'before', error };
    },
  });
  const { driver } = simulation;
  const controllers = createControllers({
    ...{ driver, desired: initial, clock, log: () => undefined },
    random: () => 0.5,
    givesUp: (failure, ms) => transactions.givesUp(failure, ms),
  });
  const locks = options.locks ?? {};
  const transactions = createTransactions({
    ...{ files, proven, left, initial, controllers, history, driver, locks, clock },
    power: state?.power ?? initial.power,
    desired: () => store.snapshot().desired,
    write: (decide) => store.write(decide),
    isHeld: () => false,
    isRestoreUnproven: () => options.isRestoreUnproven ?? false,
    idle: false,
    log: write,
  });
  history.follow(controllers, transactions.aftermath);
  const save = (next: Desired, before: Desired) => saveDesired(here, 'simulated', { before, next }, operations);
  const store = createDesiredStore({
    ...{ initial, locks },
    async persist(next, before, by, recorded) {
      await writeDurably({ history, transactions, save }, { next, before, by, recorded });
    },
    onChange: controllers.desire,
  });

  async function end(): Promise<void> {
    await controllers.close();
    await transactions.close();
    await history.close();
  }
  onTestFinished(async () => {
    if (!isDead) await end();
  });

  return {
    ...{ home, here, store, controllers, transactions, clock, log, attempts },
    model: simulation.model,
    meddle: simulation.meddle,
    /** Ends without a trace, as a killed process does. */
    kill() {
      isDead = true;
      void controllers.close();
    },
    end,
    /** Writes settings over the present ones, as an apply unless said otherwise. Returns the generation. */
    async write(values: Parameters<typeof settingsWith>[0], { how = 'apply', onFailure, ...rest }: Writing = {}) {
      const onItsFailure = onFailure ?? (how === 'apply' ? 'return' : undefined);
      const { now } = await store.write(({ desired }) => ({
        next: { settings: settingsWith({ 'kubernetes.enabled': false, ...values }), power: desired.power, ...rest },
        answer: undefined,
        by: { how },
        ...(onItsFailure ? { onFailure: onItsFailure } : {}),
      }));
      return now.desired.generation;
    },
    async reaches(...states: TransactionReport['state'][]): Promise<TransactionReport> {
      for (;;) {
        const report = transactions.report();
        if (report && states.includes(report.state)) return report;
        await nextPass();
      }
    },
    async converged(): Promise<void> {
      for (;;) {
        const { converged, generation, observedGeneration } = controllers.status();
        if (converged && observedGeneration === generation) return;
        await nextPass();
      }
    },
    async entries() {
      await closing;
      return file.entries();
    },
    desired: () => store.snapshot().desired,
  };
}

/** A look at each pass of the event loop sees every state that lasts for some time of the clock. */
const nextPass = () => new Promise((resolve) => setImmediate(resolve));

interface Writing {
  how?: Author['how'];
  onFailure?: OnFailure;
  power?: Desired['power'];
}

const NO_CLUSTER = settingsWith({ 'kubernetes.enabled': false });

/** Refuses an amount of memory: the machine does not boot with it. */
export function refusesMemory(memory: number, error = new RdError('ERR_DRIVER_FAILED', 'QEMU ended')): Refuses {
  return ({ settings }, step) =>
    step === 'machine start' && settings.virtualMachine.memoryInGB === memory ? error : undefined;
}
