import { createHmac, randomBytes } from 'node:crypto';
import { indentedJson, type JsonObject } from '../json.ts';
import { SerialQueue } from '../os/serial-queue.ts';
import type { Author, RecordedChange, RecordedLoss, StatedSource } from '../plan/history.ts';
import type { OnFailure } from '../plan/rollback.ts';
import type { Desired } from '../reconcile/contract.ts';

/** The desired state with its entity tag. */
export interface DesiredSnapshot {
  desired: Desired;
  /** Strong entity tag, in quotes, of settings and locks. */
  etag: string;
}

/** The result of one write: the new state, if anything changes, and an answer. */
export interface WriteResult<T> {
  next?: Partial<Omit<Desired, 'generation' | 'hold'>>;
  /**
   * Changes of state stored elsewhere, which the caller makes next: port forwards, and extensions, which are not listed. They belong to the
   * generation of `next`; without one, to a generation that differs only in its number.
   */
  announced?: readonly RecordedChange[];
  answer: T;
  /** The author of the change, for the history; the service itself if absent. */
  by?: Author;
  /** The place in the sources that asks for each change. */
  sources?: readonly StatedSource[];
  /** Data that the change destroys. */
  loss?: RecordedLoss;
  /** Makes the write a transaction: the response if the backend fails because of it. If absent, the value stays. */
  onFailure?: OnFailure;
}

/** The parts of a write recorded besides its author. */
export type Recorded = Pick<WriteResult<unknown>, 'announced' | 'sources' | 'loss' | 'onFailure'>;

/** Holds the desired state. Writes are serialized and atomic. */
export interface DesiredStore {
  snapshot(): DesiredSnapshot;
  readonly locks: JsonObject;
  /**
   * Runs `decide` after all earlier writes. A `next` is first made durable, then becomes visible with the next generation; if that fails,
   * nothing has changed.
   */
  write<T>(decide: (now: DesiredSnapshot) => WriteResult<T>): Promise<{ answer: T; now: DesiredSnapshot }>;
  /** Resolves when all queued writes are done. */
  idle(): Promise<void>;
}

/** The kind and content of a new state, for listeners. */
export interface Written {
  before: Desired;
  by: Author;
  /** Changes of state stored elsewhere; see `WriteResult.announced`. */
  announced: readonly RecordedChange[];
}

export interface DesiredStoreInput {
  initial: Desired;
  locks: JsonObject;
  /** Makes the state durable, or throws and leaves the old one in place. */
  persist(next: Desired, before: Desired, by: Author, recorded: Recorded): Promise<void>;
  /** Called with every new state, before the write resolves. */
  onChange(next: Desired, what: 'state' | 'number only', written: Written): void;
}

export function createDesiredStore(input: DesiredStoreInput): DesiredStore {
  const { locks, persist, onChange } = input;
  const key = randomBytes(32);
  let snapshot = snapshotOf(input.initial, locks, key);
  const writes = new SerialQueue();

  async function write<T>(
    decide: (now: DesiredSnapshot) => WriteResult<T>,
  ): Promise<{ answer: T; now: DesiredSnapshot }> {
    const { next, answer, by = { how: 'service' }, ...recorded } = decide(snapshot);
    const { announced } = recorded;
    if (next || announced) {
      const before = snapshot.desired;
      const after: Desired = { ...before, ...next, generation: before.generation + 1 };
      await persist(after, before, by, recorded);
      snapshot = snapshotOf(after, locks, key);
      onChange(after, next ? 'state' : 'number only', { before, by, announced: announced ?? [] });
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

/** Returns the state with its tag. A digest without a key would let readers who see no secrets test guesses of them. */
function snapshotOf(desired: Desired, locks: JsonObject, key: Uint8Array): DesiredSnapshot {
  const digest = createHmac('sha256', key)
    .update(indentedJson(desired.settings))
    .update('\0')
    .update(JSON.stringify(locks))
    .digest('base64url');
  return { desired, etag: `"${digest}"` };
}
