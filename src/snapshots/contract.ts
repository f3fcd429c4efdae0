/** A snapshot as `GET /v1/snapshots` shows it (api facts, 17.1). */
export interface SnapshotRecord {
  /** RFC 3339 with up to nine digits of a second and the local offset. */
  created: string;
  name: string;
  /** `''` when there is none. */
  description: string;
}

/** What may be done with snapshots of this home, one operation at a time. */
export interface Snapshots {
  /** Oldest first. @throws RdError `ERR_IO` when the directory cannot be read. */
  list(): Promise<SnapshotRecord[]>;
  /**
   * Resolves when it is complete and the backend has been let go on. `stop`: the backend is stopped for it even where what runs can be
   * copied.
   * @throws RdError with the texts of the api facts, 17.3 and 17.4.
   */
  create(name: string, description: string, how?: { stop?: boolean }): Promise<void>;
  /** @throws RdError with the texts of the api facts, 17.4. */
  remove(name: string): Promise<void>;
  /**
   * Resolves when what was restored runs, or at once where the backend is to be off. Otherwise everything is as it was before.
   * @throws RdError with the texts of the api facts, 17.4.
   */
  restore(name: string): Promise<void>;
  /** Ends what is under way and waits until that has been undone. True when there was something. */
  cancel(): Promise<boolean>;
}
