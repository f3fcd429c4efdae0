import type { RdError } from '../../errors.ts';
import type { MaintenanceWork } from '../../reconcile/maintenance.ts';
import type { Settings } from '../../settings/settings.gen.ts';

/** A snapshot as `GET /v1/snapshots` returns it (docs/snapshots.md). */
export interface SnapshotRecord {
  /** Time of creation in RFC 3339. */
  created: string;
  name: string;
  /** Text for people; empty when there is none. */
  description: string;
  /** Set if it was not made in this home, or was changed since. */
  foreign?: true;
}

/** Operations on the snapshots of this home, one at a time. */
export interface Snapshots {
  /** Lists the snapshots, oldest first. @throws RdError `ERR_IO` when the directory cannot be read. */
  list(): Promise<SnapshotRecord[]>;
  /**
   * Creates a snapshot. Resolves when it is complete and the backend continues. `stop` stops the backend even if it could be copied live.
   * @throws RdError `ERR_SNAPSHOT` with the texts that scripts match on.
   */
  create(name: string, description: string, how?: { stop?: boolean }): Promise<void>;
  /** Deletes a snapshot. @throws RdError `ERR_SNAPSHOT` with the texts that scripts match on. */
  remove(name: string): Promise<void>;
  /**
   * Restores a snapshot. Resolves when the restored state runs, or at once when the backend is desired off. On failure everything is rolled back.
   * `foreign` is the user's consent to one from elsewhere.
   * @throws RdError `ERR_SNAPSHOT` with the texts that scripts match on.
   */
  restore(name: string, how?: { foreign?: boolean }): Promise<void>;
  /** Cancels the current operation and waits for its rollback. Returns true when there was one. */
  cancel(): Promise<boolean>;
}

/** A change that destroys data. */
export interface DataLoss {
  /** Generation of the change. */
  generation: number;
  /** The destroyed data as clauses: `deletes the workloads and data of the cluster (version 1.30.2)`. */
  items: readonly string[];
  /** Settings for the snapshot, if the change is already written; by default those in force. */
  settings?: Settings;
}

/** The cost of a snapshot taken now. */
export interface SnapshotEstimate {
  /** Bytes to copy; 0 if the file system can share blocks. */
  bytes: number;
  /** Whether the backend keeps running meanwhile. */
  isLive: boolean;
  /** The error for a lack of space; absent if there is room. */
  noSpace?: RdError;
}

/** Safety snapshots: those made before changes that destroy data. They have names of their own; `retention.ts` decides how long they stay. */
export interface SafetySnapshots {
  /** Reason why none can be made, as a clause; absent if they can. */
  readonly impossible?: string;
  /** Estimates a snapshot. `isOn`: whether the machine is on. */
  estimate(isOn: boolean): Promise<SnapshotEstimate>;
  /**
   * Makes a snapshot, then the change, while nothing else works on the data; the backend stays stopped in between if it was stopped for the copy.
   * `change` gets the name of the snapshot. If either fails, the snapshot is gone, and so is the change.
   * @throws RdError `ERR_NO_SPACE`, `ERR_SNAPSHOT` if the snapshot cannot be made, `ERR_CANCELLED` by the signal, and the error of `change`.
   */
  around<T>(loss: DataLoss, change: (snapshot: string) => Promise<T>, signal: AbortSignal): Promise<T>;
  /**
   * Makes a snapshot, then the change, for a loop that waits in the middle of its work, with the machine in its present state.
   * @throws RdError the errors of `around`, and `ERR_BACKEND_LOCKED` while other work is in progress.
   */
  whenDue<T>(loss: DataLoss, change: (snapshot: string) => Promise<T>, signal: AbortSignal): Promise<T>;
  /** Makes a snapshot, then the change, as part of work on the stopped backend. Throws the errors of `around`. */
  within<T>(
    loss: DataLoss,
    work: Pick<MaintenanceWork, 'signal' | 'progress'>,
    change: (snapshot: string) => Promise<T>,
  ): Promise<T>;
  /** Deletes, in the background, the snapshots that `retention.ts` considers obsolete. */
  prune(): void;
  /** Resolves when obsolete snapshots are deleted. */
  close(): Promise<void>;
}
