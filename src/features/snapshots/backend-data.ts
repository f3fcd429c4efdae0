import type { Driver } from '../../drivers/driver.ts';
import { RdError } from '../../errors.ts';
import { defined } from '../../json.ts';
import type { LogFile } from '../../os/log-file.ts';
import { unprotected } from '../../plan/blocks.ts';
import type { Controllers } from '../../reconcile/contract.ts';
import type { Maintenance } from '../../reconcile/maintenance.ts';
import { objectOf } from '../../settings/fields.ts';
import { leafAt } from '../../settings/leaf-paths.ts';
import { isLocked } from '../../settings/locks.ts';
import type { Settings } from '../../settings/settings.gen.ts';
import type { DesiredStore } from '../../state/desired-store.ts';
import type { Places } from '../../state/places.ts';
import { type FileHost, loadSettings } from '../../state/settings-file.ts';
import type { SafetySnapshots, Snapshots } from './contract.ts';
import { journalFile } from './journal.ts';
import { createKeptState } from './kept-state.ts';
import { createLossGuard, type LossGuard, type LossHistory } from './loss-guard.ts';
import { createProof } from './proof.ts';
import type { Recovered } from './recovery.ts';
import { createResets, type Resets } from './resets.ts';
import { safetySnapshotRecord } from './safety-snapshot-record.ts';
import { createSnapshots } from './snapshots.ts';
import { type SwapOperations, swapOperations } from './swap.ts';
import { copyRecord, recordCopies } from './tree.ts';

/** Everything that works on the data of the stopped backend: snapshots and resets. */
export interface BackendData {
  snapshots: Snapshots;
  safetySnapshots: SafetySnapshots;
  /** The work of `PUT /v1/k8s_reset`. */
  reset: Resets;
  mayDelete: LossGuard['mayDelete'];
  /** Whether a restored snapshot has not been seen running yet. */
  isRestoreUnproven(): boolean;
  /** Cancels the current operation and waits for its rollback. */
  close(): Promise<void>;
}

export interface BackendDataInput {
  places: Pick<Places, 'snapshots' | 'state'>;
  driver: Driver;
  host: FileHost;
  store: DesiredStore;
  maintenance: Maintenance;
  controllers: Controllers;
  recovered: Pick<Recovered, 'unproven'>;
  history: LossHistory;
  /** Time at which this installation first ran. */
  since?: string;
  /** Records that a reset failed, in the history. */
  failed(generation: number, reason: string): void;
  /** Shows a notice in the status. */
  notice(text: string): void;
  log: LogFile['write'];
  operations?: SwapOperations;
}

export function createBackendData(input: BackendDataInput): BackendData {
  const { places, driver, host, store, maintenance, controllers, notice, log, recovered } = input;
  const closing = new AbortController();
  const desired = () => store.snapshot().desired;
  const journal = journalFile(places);
  const copy = recordCopies(copyRecord(places));
  const keptState = createKeptState({
    kept: driver.keeps,
    journalFile: journal,
    operations: input.operations ?? swapOperations(journal, copy),
    store,
    log,
    ...(recovered.unproven ? { unproven: recovered.unproven } : {}),
  });
  const proof = createProof({ keptState, maintenance, controllers, desired, notice, log });
  const snapshots = createSnapshots({
    root: places.snapshots,
    driver,
    maintenance,
    controllers,
    desired,
    keptState,
    proof,
    readSettings: (file) => restoredSettings(file, { host, driver, store }),
    copy,
    safetySnapshotRecord: safetySnapshotRecord(places),
    safetySnapshotInput: { entries: input.history.entries, notice, ...defined({ since: input.since }) },
    log,
  });
  const { safetySnapshots } = snapshots;
  const guard = createLossGuard({ ...input, safetySnapshots, closing: closing.signal });
  proof.watch();
  return {
    snapshots,
    safetySnapshots,
    mayDelete: guard.mayDelete,
    isRestoreUnproven: () => keptState.unproven() !== undefined,
    reset: createResets({ ...input, keptState, safetySnapshots, closing: closing.signal }),
    async close() {
      closing.abort();
      // The proof closes first, so that a restore that waits for it leaves it to the next service.
      await proof.close();
      await guard.close();
      await snapshots.close();
    },
  };
}

/**
 * Returns the settings of a snapshot as they would apply now: migrated, with today's locked values, and with the extensions that are installed today,
 * because snapshots do not contain their files.
 * @throws RdError `ERR_SETTINGS_FILE`, `ERR_SETTING_UNSUPPORTED` for a protection that the driver cannot enforce.
 */
export async function restoredSettings(
  file: string,
  { host, driver, store }: Pick<BackendDataInput, 'host' | 'driver' | 'store'>,
): Promise<Settings> {
  const loaded = await loadSettings(file, file, host);
  if (loaded.kind !== 'loaded') throw new RdError('ERR_SETTINGS_FILE', `${file} contains no settings`);
  const now = store.snapshot().desired.settings;
  const keepsCurrent = (path: string) => path === 'application.extensions.installed' || isLocked(store.locks, path);
  // `Settings` is the type of the schema that it is built from.
  const settings = objectOf(({ path }) => leafAt(keepsCurrent(path) ? now : loaded.settings, path)) as Settings;
  const [unenforced] = unprotected(settings, driver);
  if (!unenforced) return settings;
  throw new RdError(
    'ERR_SETTING_UNSUPPORTED',
    `${unenforced.path} is true in it, and cannot be enforced: ${unenforced.reason}`,
  );
}
