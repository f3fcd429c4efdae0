/** A snapshot as `GET /v1/snapshots` returns it (docs/snapshots.md). */
export interface SnapshotRecord {
  /** RFC 3339. */
  created: string;
  name: string;
  /** `''` when there is none. */
  description: string;
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
   * Resolves when the restored state runs, or at once when the backend is desired off. On failure everything is rolled back.
   * @throws RdError `ERR_SNAPSHOT` with the texts that scripts match on.
   */
  restore(name: string): Promise<void>;
  /** Cancels the current operation and waits for its rollback. True when there was one. */
  cancel(): Promise<boolean>;
}
