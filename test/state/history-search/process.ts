import { RdError } from '../../../src/errors.ts';
import type { Author } from '../../../src/plan/history.ts';
import type { Desired } from '../../../src/reconcile/contract.ts';
import { serviceHistory } from '../../../src/service/history.ts';
import type { Settings } from '../../../src/settings/settings.gen.ts';
import { createDesiredStore, type DesiredStore, type WriteResult } from '../../../src/state/desired-store.ts';
import { finishWrite, saveDesired } from '../../../src/state/desired-write.ts';
import { openHistory } from '../../../src/state/history-file.ts';
import type { Places } from '../../../src/state/places.ts';
import { loadState } from '../../../src/state/state-file.ts';
import type { FaultyFiles } from './faults.ts';

const DRIVER = 'simulated';

/** What one process of a service does with its store and its history, as `src/service/backend.ts` wires them. */
export interface StoreProcess {
  store: DesiredStore;
  /** What a port forward does after its number is written. */
  finished(generation: number): void;
  /** The start changed something. */
  started?: { before: Desired; next: Desired; by: Author };
  close(): Promise<void>;
}

/** What is stored, after what a killed process left is completed. Throws `ERR_IO`. */
export async function storedState(here: Places, readSettings: () => Settings, files?: FaultyFiles): Promise<Desired> {
  const { operations } = files ?? {};
  const loaded = await loadState(here.stateFile);
  if (loaded.kind !== 'loaded') throw new Error('no state');
  await finishWrite(here, loaded.state, operations);
  const { power, machine, generation } = loaded.state;
  return { settings: readSettings(), machine, power, generation };
}

/** Opens what an earlier process left. `policy`: changes the settings at the start, as a deployment profile does. */
export async function openProcess(
  here: Places,
  files: FaultyFiles,
  readSettings: () => Settings,
  policy?: (settings: Settings) => Settings,
): Promise<StoreProcess> {
  const { operations, append } = files;
  const stored = await storedState(here, readSettings, files);
  const file = await openHistory(here.historyFile, stored.generation, Date.now, { append, operations });
  const history = serviceHistory(file, { write: () => undefined });
  const settings = policy?.(stored.settings) ?? stored.settings;
  const initial: Desired = { ...stored, settings, generation: Math.max(stored.generation, file.last) + 1 };
  const by: Author = { how: 'policy' };
  await history.writing({ ...initial, settings: stored.settings }, initial, by);
  const before = { ...stored, settings: policy ? { ...stored.settings } : initial.settings };
  await saveDesired(here, DRIVER, { before, next: initial }, operations);
  const store = createDesiredStore({
    initial,
    locks: {},
    async persist(next, before, author, recorded) {
      await history.writing(before, next, author, recorded);
      await saveDesired(here, DRIVER, { before, next }, operations).catch(async (error: unknown) => {
        await history.notApplied(next.generation);
        throw error;
      });
    },
    onChange: () => undefined,
  });
  return {
    store,
    finished: history.finished,
    ...(policy ? { started: { before: { ...initial, settings: stored.settings }, next: initial, by } } : {}),
    close: () => history.close(),
  };
}

/** Whether a write was refused because of a fault; any other error is thrown. */
export async function isWritten<T>(store: DesiredStore, decide: () => WriteResult<T>): Promise<boolean> {
  return store.write(decide).then(
    () => true,
    (error: unknown) => {
      if (error instanceof RdError && error.code === 'ERR_IO') return false;
      throw error;
    },
  );
}
