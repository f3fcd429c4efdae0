import { unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { ioError, systemCode } from '../../os/io-error.ts';
import { readableRecord, writeRecord } from '../../os/record.ts';
import { readHistory } from '../../state/history-file.ts';
import type { Places } from '../../state/places.ts';
import { deleteSnapshot, readCatalogue } from './catalogue.ts';

/** The safety snapshot of a change, from before the copy until the change is made. */
interface SafetySnapshotRecord {
  /** Id of the snapshot. */
  id: string;
  name: string;
}

/** Returns the path of the record. */
export function safetySnapshotRecord({ state }: Pick<Places, 'state'>): string {
  return join(state, 'covering.json');
}

export async function writeSafetySnapshotRecord(path: string, record: SafetySnapshotRecord): Promise<void> {
  await writeRecord(path, record).catch((cause: unknown) => {
    throw ioError('write', path, cause);
  });
}

/** Removes the record. Throws `ERR_IO`. */
export async function removeSafetySnapshotRecord(path: string): Promise<void> {
  await unlink(path).catch((cause: unknown) => {
    if (systemCode(cause) !== 'ENOENT') throw ioError('remove', path, cause);
  });
}

/**
 * Removes the safety snapshot of a change that a killed service did not make: without the change it protects nothing. `generation` is the stored one.
 * @returns the name of a snapshot whose change was made. Throws `ERR_IO`.
 */
export async function recoverSafetySnapshot(
  places: Pick<Places, 'state' | 'snapshots' | 'historyFile'>,
  generation: number,
): Promise<string | undefined> {
  const path = safetySnapshotRecord(places);
  const record = await readableRecord(path);
  if (!record) return undefined;
  const { id, name } = record;
  const entry = (await readHistory(places.historyFile)).findLast(
    ({ loss }) => loss !== undefined && 'snapshot' in loss && loss.snapshot === name,
  );
  const isMade = entry !== undefined && entry.generation <= generation;
  if (!isMade) {
    const { snapshots } = await readCatalogue(places.snapshots);
    // Checked against the catalogue, because the snapshot that the record names is deleted.
    const snapshot = snapshots.find((each) => each.id === id && each.covers !== undefined);
    if (snapshot) await deleteSnapshot(places.snapshots, snapshot);
  }
  await removeSafetySnapshotRecord(path);
  return isMade && typeof name === 'string' ? name : undefined;
}
