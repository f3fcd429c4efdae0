import { createHash } from 'node:crypto';
import { indentedJson, type JsonObject } from '../json.ts';
import { SerialQueue } from '../os/serial-queue.ts';
import type { Desired } from '../reconcile/contract.ts';

/** The desired state with its entity tag. */
export interface DesiredSnapshot {
  desired: Desired;
  /** Strong entity tag, in quotes, of settings and locks. */
  etag: string;
}

/** What a turn in the write queue does: a next state to keep, or nothing, and an answer either way. */
export interface Turn<T> {
  next?: Omit<Desired, 'generation'>;
  answer: T;
}

/** Holds the one desired state. Writes take turns; a reader never sees half of one. */
export interface DesiredStore {
  snapshot(): DesiredSnapshot;
  readonly locks: JsonObject;
  /**
   * Runs `decide` when all writes before it are done. A `next` is made durable first and becomes visible after that, with the
   * generation grown by one; when that fails the error is thrown and nothing has changed.
   */
  write<T>(decide: (now: DesiredSnapshot) => Turn<T>): Promise<{ answer: T; now: DesiredSnapshot }>;
  /** Resolves when the writes under way are done. */
  idle(): Promise<void>;
}

export interface DesiredStoreInput {
  initial: Desired;
  locks: JsonObject;
  /** Makes the state durable, or throws and leaves the old one in place. */
  persist(next: Desired, before: Desired): Promise<void>;
  /** Hears of every new state, before the writer gets its answer. */
  onChange(next: Desired): void;
}

export function createDesiredStore(input: DesiredStoreInput): DesiredStore {
  const { locks, persist, onChange } = input;
  let snapshot = snapshotOf(input.initial, locks);
  const writes = new SerialQueue();

  async function write<T>(decide: (now: DesiredSnapshot) => Turn<T>): Promise<{ answer: T; now: DesiredSnapshot }> {
    const { next, answer } = decide(snapshot);
    if (next) {
      const before = snapshot.desired;
      const after: Desired = { ...next, generation: before.generation + 1 };
      await persist(after, before);
      snapshot = snapshotOf(after, locks);
      onChange(after);
    }
    return { answer, now: snapshot };
  }

  return {
    snapshot: () => snapshot,
    locks,
    write: (decide) => writes.run(() => write(decide)),
    idle: () => writes.idle(),
  };
}

function snapshotOf(desired: Desired, locks: JsonObject): DesiredSnapshot {
  const digest = createHash('sha256')
    .update(indentedJson(desired.settings))
    .update('\0')
    .update(JSON.stringify(locks))
    .digest('base64url');
  return { desired, etag: `"${digest}"` };
}
