import type { RdError } from '../../errors.ts';
import type { MaintenanceWork } from '../../reconcile/maintenance.ts';
import type { Settings } from '../../settings/settings.gen.ts';

/** A snapshot as `GET /v1/snapshots` returns it (docs/snapshots.md). */
export interface SnapshotRecord {
  /** RFC 3339. */
  created: string;
  name: string;
  /** `''` when there is none. */
  description: string;
  /** It was not made in this home, or was changed since. */
  foreign?: true;
}

/** Operations on the snapshots of this home, one at a time. */
export interface Snapshots {
  /** Oldest first. @throws RdError `ERR_IO` when the directory cannot be read. */
  list(): Promise<SnapshotRecord[]>;
  /**
   * Resolves when it is complete and the backend continues. `stop`: stops the backend even if it could be copied live.
   * @throws RdError `ERR_SNAPSHOT` with the texts that scripts match on.
   */
  create(name: string, description: string, how?: { stop?: boolean }): Promise<void>;
  /** @throws RdError `ERR_SNAPSHOT` with the texts that scripts match on. */
  remove(name: string): Promise<void>;
  /**
   * Resolves when the restored state runs, or at once when the backend is desired off. On failure everything is rolled back. `foreign`: the
   * user consents to one from elsewhere.
   * @throws RdError `ERR_SNAPSHOT` with the texts that scripts match on.
   */
  restore(name: string, how?: { foreign?: boolean }): Promise<void>;
  /** Cancels the current operation and waits for its rollback. True when there was one. */
  cancel(): Promise<boolean>;
}

/** A change that destroys data. */
export interface DataLoss {
  /** Of the change. */
  generation: number;
  /** Clauses: `deletes the workloads and data of the cluster (version 1.30.2)`. */
  items: readonly string[];
  /** Those of the snapshot, where the change is already written; otherwise those in force. */
  settings?: Settings;
}

/** What a snapshot would take now. */
export interface SnapshotEstimate {
  /** To copy: none where the file system can share blocks. */
  bytes: number;
  /** The backend keeps running meanwhile. */
  isLive: boolean;
  /** There is no room for it. */
  noSpace?: RdError;
}

/** Safety snapshots: those made before changes that destroy data. They have names of their own; `retention.ts` says how long they stay. */
export interface SafetySnapshots {
  /** Why there are none, as a clause. */
  readonly impossible?: string;
  /** `isOn`: the machine is. */
  estimate(isOn: boolean): Promise<SnapshotEstimate>;
  /**
   * Makes a snapshot, then the change, while nothing else works on the data; the backend stays stopped in between if it was stopped for the
   * copy. `change` gets the name of the snapshot. If either fails, the snapshot is gone, and so is the change.
   * @throws RdError `ERR_NO_SPACE`, `ERR_SNAPSHOT` if it cannot be made, `ERR_CANCELLED` by the signal, and what `change` throws.
   */
  around<T>(loss: DataLoss, change: (snapshot: string) => Promise<T>, signal: AbortSignal): Promise<T>;
  /**
   * As `around`, for a loop that waits in the middle of its work, and with the machine as it is. Throws `ERR_BACKEND_LOCKED` also while
   * other work is in progress.
   */
  whenDue<T>(loss: DataLoss, change: (snapshot: string) => Promise<T>, signal: AbortSignal): Promise<T>;
  /** As `around`, in work on the stopped backend. */
  within<T>(
    loss: DataLoss,
    work: Pick<MaintenanceWork, 'signal' | 'progress'>,
    change: (snapshot: string) => Promise<T>,
  ): Promise<T>;
  /** Deletes, in the background, those that are not needed any more (`retention.ts`). */
  prune(): void;
  /** Resolves when old ones are deleted. */
  close(): Promise<void>;
}
