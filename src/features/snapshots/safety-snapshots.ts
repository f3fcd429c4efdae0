import { dirname } from 'node:path';
import { RdError } from '../../errors.ts';
import { defined } from '../../json.ts';
import { systemCode } from '../../os/io-error.ts';
import type { LogFile } from '../../os/log-file.ts';
import { sizeText } from '../../os/size.ts';
import type { HistoryEntry } from '../../plan/history.ts';
import type { MaintenanceWork } from '../../reconcile/maintenance.ts';
import { deleteSnapshot, readCatalogue } from './catalogue.ts';
import type { DataLoss, SafetySnapshots, SnapshotEstimate } from './contract.ts';
import { draftOf, type SnapshotMaking } from './creation.ts';
import { quoted } from './name.ts';
import { obsoleteSafetySnapshots } from './retention.ts';
import { removeSafetySnapshotRecord, writeSafetySnapshotRecord } from './safety-snapshot-record.ts';
import { type Room, roomFor } from './tree.ts';

export interface SafetySnapshotsInput {
  making: SnapshotMaking;
  /** Runs work while no other operation on snapshots does. */
  exclusively<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Whether the machine is on. */
  isOn(): boolean;
  /** Returns the id of the snapshot that is being restored. */
  restoring(): string | undefined;
  /** Path of the record of a snapshot whose change is not made yet. */
  record: string;
  /** Returns the history, oldest first. Throws `ERR_IO`. */
  entries(): Promise<HistoryEntry[]>;
  /** Time at which this installation first ran. */
  since?: string;
  /** Shows a notice in the status. */
  notice(text: string): void;
  log: LogFile['write'];
}

/**
 * Creates the safety snapshots. The change is made while the snapshot keeps everything else from the data, so nothing is lost between the two.
 * Without the change, the snapshot is deleted, even after a kill, by a record that names it.
 */
export function createSafetySnapshots(input: SafetySnapshotsInput): SafetySnapshots {
  const { making, exclusively, isOn, restoring, record, notice, log } = input;
  const { root, driver, maintenance, rest, interrupting } = making;
  const { keeps, copyLive } = driver;
  let pruning: Promise<void> = Promise.resolve();

  async function nameFor(generation: number): Promise<string> {
    const taken = (await readCatalogue(root)).snapshots.map(({ name }) => name);
    const name = `before-generation-${generation}`;
    if (!taken.includes(name)) return name;
    for (let number = 2; ; number += 1) if (!taken.includes(`${name}-${number}`)) return `${name}-${number}`;
  }

  /** Throws `ERR_NO_SPACE` if there is no room. */
  async function requireRoom(isLive: boolean): Promise<void> {
    const room = await roomFor(keeps, dirname(root), !isLive);
    if (room.needed > room.free) throw noSpace(room, dirname(root));
  }

  async function make<T>(
    { name, loss, isLive }: { name: string; loss: DataLoss; isLive: boolean },
    work: Pick<MaintenanceWork, 'signal' | 'progress'>,
    change: (snapshot: string) => Promise<T>,
  ): Promise<T> {
    const description = `Made before generation ${loss.generation}, which ${loss.items.join(', and ')}`;
    const { settings } = loss;
    const from = settings ? { ...making, desired: () => ({ ...making.desired(), settings }) } : making;
    const draft = draftOf(from, { created: new Date().toISOString(), name, description }, loss.generation);
    try {
      await writeSafetySnapshotRecord(record, { id: draft.id, name });
      if (isLive && copyLive) await draft.saveLive(work, copyLive);
      else await draft.saveStopped(work);
      work.progress('verifying the copy');
      await draft.complete(work.signal);
      work.signal.throwIfAborted();
      const result = await change(name);
      await removeSafetySnapshotRecord(record).catch((error: unknown) => log('warn', 'a record stays', { error }));
      log('info', 'snapshot created before data is destroyed', { name });
      return result;
    } catch (error) {
      await remove(draft);
      throw error;
    }
  }

  /** Removes a snapshot. If something is left, the record stays, and the next start removes both. */
  async function remove(draft: { discard(): Promise<void> }): Promise<void> {
    try {
      await draft.discard();
      await removeSafetySnapshotRecord(record);
    } catch (error) {
      log('warn', 'a snapshot that is not needed could not be removed', { error });
    }
  }

  /** Adds to a failure before the change the advice how to go on without a snapshot. */
  async function made<T>(
    change: (snapshot: string) => Promise<T>,
    work: (change: (snapshot: string) => Promise<T>) => Promise<T>,
  ): Promise<T> {
    let isBegun = false;
    try {
      return await work((snapshot) => {
        isBegun = true;
        return change(snapshot);
      });
    } catch (error) {
      throw isBegun ? error : await failureOf(error);
    }
  }

  async function failureOf(cause: unknown): Promise<unknown> {
    if (isAbort(cause))
      return new RdError('ERR_CANCELLED', 'the operation was canceled; nothing was changed', { cause });
    if (!(cause instanceof RdError) || cause.code === 'ERR_CANCELLED' || cause.code === 'ERR_NO_SPACE') return cause;
    const room = await roomFor(keeps, dirname(root), true).catch(() => undefined);
    const text = [cause.message, ...cause.details].join('\n');
    if (room && (isFull(cause) || room.needed > room.free || /No space left on device|quota exceeded/i.test(text))) {
      return noSpace(room, dirname(root));
    }
    return new RdError('ERR_SNAPSHOT', `the snapshot of the data that this destroys failed: ${cause.message}`, {
      cause,
      details: cause.details,
      advice: [cause.advice, WITHOUT].filter((part) => part !== undefined).join(' '),
    });
  }

  /** Deletes obsolete snapshots. A failure never affects the preceding work. */
  function prune(): void {
    pruning = pruning
      .then(pruneNow)
      .catch((error: unknown) => log('warn', 'old snapshots were not deleted', { error }));
  }

  async function pruneNow(): Promise<void> {
    const { snapshots } = await readCatalogue(root);
    // A foreign snapshot must not decide about others by its own claims.
    const own = snapshots.filter(({ covers, foreign }) => covers !== undefined && !foreign);
    if (own.length < 1) return;
    const { since } = input;
    const facts = { snapshots: own, entries: await input.entries(), now: Date.now() };
    for (const { snapshot, why } of obsoleteSafetySnapshots({ ...facts, ...defined({ since }) })) {
      const { id, name, description } = snapshot;
      if (id === restoring()) continue;
      await deleteSnapshot(root, snapshot);
      log('info', 'a snapshot made before data was destroyed is deleted', { name, why });
      notice(`The snapshot ${quoted(name)} is deleted, because ${why}. ${description}.`);
    }
  }

  return {
    ...(keeps.length === 0 ? { impossible: `the ${driver.name} driver keeps no data that a snapshot could hold` } : {}),
    async estimate(isOn): Promise<SnapshotEstimate> {
      const isLive = copyLive !== undefined && isOn;
      const room = await roomFor(keeps, dirname(root), !isLive);
      return {
        bytes: room.bytes,
        isLive,
        ...(room.needed > room.free ? { noSpace: noSpace(room, dirname(root)) } : {}),
      };
    },
    around: (loss, change, signal) =>
      made(change, async (begin) => {
        const name = await nameFor(loss.generation);
        const action = `Creating snapshot ${quoted(name)}`;
        const result = await exclusively(async (cancelled) => {
          const either = AbortSignal.any([signal, cancelled]);
          await rest.begin(action, either);
          const isLive = copyLive !== undefined && (await rest.isSteady(either));
          // Checked while everything still runs.
          await requireRoom(isLive);
          const input = { name, loss, isLive };
          if (isLive) return maintenance.runLive(action, either, (work) => make(input, work, begin));
          return interrupting(() => maintenance.run(action, either, (work) => make(input, work, begin)));
        });
        prune();
        return result;
      }),
    whenDue: (loss, change, signal) =>
      made(change, async (begin) => {
        const name = await nameFor(loss.generation);
        const action = `Creating snapshot ${quoted(name)}`;
        const isLive = copyLive !== undefined && isOn();
        await requireRoom(isLive);
        const work = (at: Pick<MaintenanceWork, 'signal' | 'progress'>) => make({ name, loss, isLive }, at, begin);
        const result = await (isLive ? maintenance.runLive : maintenance.run)(action, signal, work);
        prune();
        return result;
      }),
    within: (loss, work, change) =>
      made(change, async (begin) => {
        const name = await nameFor(loss.generation);
        await requireRoom(false);
        const result = await make({ name, loss, isLive: false }, work, begin);
        prune();
        return result;
      }),
    prune,
    close: () => pruning,
  };
}

const WITHOUT = 'To go on without one: --no-snapshot, or `"snapshot": false` in the request.';

function noSpace({ needed, free }: Room, directory: string): RdError {
  return new RdError(
    'ERR_NO_SPACE',
    `a snapshot of the data that this destroys needs ${sizeText(needed)}, and ${sizeText(free)} is free in ${directory}`,
    { advice: `Nothing was changed. Make room, for example with \`rdctl snapshot delete\`. ${WITHOUT}` },
  );
}

function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

function isFull(error: RdError): boolean {
  return ['ENOSPC', 'EDQUOT'].includes(systemCode(error.cause) ?? '');
}
