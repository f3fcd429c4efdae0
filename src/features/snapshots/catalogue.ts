import { lstat, readdir, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { RdError } from '../../errors.ts';
import { ioError, systemCode } from '../../os/io-error.ts';
import { readRecord } from '../../os/record.ts';
import { isThere } from '../../os/regular-file.ts';
import type { SnapshotRecord } from './contract.ts';
import { hasMac, MAC, METADATA, readKey, type SnapshotKey } from './key.ts';
import { quoted } from './name.ts';

/** Files of a snapshot beside the saved state; the manifest lists its contents. */
export const MANIFEST = 'manifest.json';
export { METADATA } from './key.ts';
/**
 * Name of the file that marks a snapshot as complete, and ours. The compatible application uses another mark, and lists, deletes and restores
 * directories with it by replacing files, so it must not find that mark here.
 */
export const COMPLETE = 'rdctl-complete.txt';
/** The mark of the compatible application. */
const COMPATIBLE_COMPLETE = 'complete.txt';
export const SETTINGS = 'settings.json';

export const MARKS: readonly string[] = [COMPLETE, COMPATIBLE_COMPLETE];

/** Maximum bytes of the small files: a description may be long. */
const MAX_BYTES = 1024 * 1024;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** Names of snapshots being created or deleted. They are not ids, so such snapshots are never listed. */
const UNFINISHED = /^\.[0-9a-f-]{36}\.(?:partial|deleted)$/i;

/** A complete snapshot on the disk. */
export interface Snapshot extends SnapshotRecord {
  /** A UUID, which is the name of its directory. */
  id: string;
  directory: string;
  /** Path of the mark of completeness. */
  mark: string;
  /** Generation of the change that destroys data and before which the service made this snapshot. */
  covers?: number;
}

export interface Catalogue {
  /** Snapshots, oldest first. */
  snapshots: Snapshot[];
  /** A sentence for each directory that is named like a snapshot and unusable. */
  warnings: string[];
}

/** Reads the directory of snapshots; empty when it is missing. @throws RdError `ERR_IO` when it cannot be read. */
export async function readCatalogue(root: string): Promise<Catalogue> {
  const names = await readdir(root).catch((cause: unknown) => {
    if (systemCode(cause) === 'ENOENT') return [];
    throw ioError('read the snapshots in', root, cause);
  });
  const key = await readKey(root).catch(() => 'damaged' as const);
  const snapshots: Snapshot[] = [];
  const warnings: string[] = [];
  for (const id of names.filter((name) => UUID.test(name))) {
    const directory = join(root, id);
    const snapshot = await readSnapshot(id, directory);
    if (typeof snapshot === 'string') {
      warnings.push(`The snapshot in ${directory} is skipped: ${snapshot}. Remove it if it is not needed.`);
    } else snapshots.push((await isForeign(snapshot, key)) ? { ...snapshot, foreign: true } : snapshot);
  }
  return { snapshots: snapshots.sort(byAge), warnings: warnings.sort() };
}

/**
 * Finds a snapshot by name. A foreign one may have the same name, and so may one of the compatible application, because it does not see ours; ours is
 * preferred.
 * @throws RdError `ERR_SNAPSHOT` with the cause that scripts match on.
 */
export async function findSnapshot(root: string, name: string): Promise<Snapshot> {
  const named = (await readCatalogue(root)).snapshots.filter((snapshot) => snapshot.name === name);
  const own = named.filter(({ foreign }) => !foreign);
  const match = own.find(({ mark }) => basename(mark) === COMPLETE) ?? own[0] ?? named[0];
  if (match) return match;
  throw new RdError('ERR_SNAPSHOT', `can't find snapshot ${quoted(name)}`);
}

/**
 * Refuses to restore a snapshot from elsewhere without the consent of the user.
 * @throws RdError `ERR_SNAPSHOT` with a clause.
 */
export function requireOwn({ foreign }: Pick<Snapshot, 'foreign'>, consent: boolean): void {
  if (!foreign || consent) return;
  throw new RdError(
    'ERR_SNAPSHOT',
    'it was not made in this home, or was changed since; what is in it can run its containers with the rights of the engine',
    {
      advice:
        'Restore it only if you trust who made it: `rdctl snapshot restore NAME --foreign`, or `foreign=true` in the query.',
    },
  );
}

/** Whether the compatible application made a snapshot: without a manifest it is never restored. */
export async function isOfCompatible({ directory, mark }: Pick<Snapshot, 'directory' | 'mark'>): Promise<boolean> {
  return basename(mark) === COMPATIBLE_COMPLETE && !(await isThere(join(directory, MANIFEST)));
}

/**
 * Whether a snapshot is from elsewhere. Without a key, only one with a MAC is: the next service makes a key, and marks the snapshots of earlier
 * releases.
 */
async function isForeign(snapshot: Snapshot, key: SnapshotKey | 'damaged' | undefined): Promise<boolean> {
  const { id, directory, mark } = snapshot;
  if (await isOfCompatible(snapshot)) return false;
  if (key === 'damaged') return true;
  const hasOne = await isThere(join(directory, MAC));
  if (key === undefined) return hasOne;
  return !(hasOne ? await hasMac(key, directory, mark) : key.adopting.includes(id));
}

/** Returns the directory in which a snapshot is created. */
export function partialDirectory(root: string, id: string): string {
  return join(root, `.${id}.partial`);
}

/** Deletes a snapshot. It stops being one when its mark is removed, even if the rest is interrupted. @throws RdError `ERR_IO`. */
export async function deleteSnapshot(
  root: string,
  { id, directory }: Pick<Snapshot, 'id' | 'directory'>,
): Promise<void> {
  const gone = join(root, `.${id}.deleted`);
  try {
    for (const mark of MARKS) await rm(join(directory, mark), { force: true });
    await rename(directory, gone);
    await rm(gone, { recursive: true, force: true });
  } catch (cause) {
    throw ioError('delete', directory, cause);
  }
}

/**
 * Removes partial and partly deleted snapshots of a killed service. Must only be called while no operation works on snapshots.
 * @returns the errors for those that stay, which are harmless.
 */
export async function sweep(root: string): Promise<RdError[]> {
  const names = await readdir(root).catch(() => []);
  const failures: RdError[] = [];
  for (const name of names.filter((each) => UNFINISHED.test(each))) {
    await rm(join(root, name), { recursive: true, force: true }).catch((cause: unknown) => {
      failures.push(ioError('remove', join(root, name), cause));
    });
  }
  return failures;
}

/** Returns the snapshot, or the reason why it is invalid, as a clause. */
async function readSnapshot(id: string, directory: string): Promise<Snapshot | string> {
  const kind = await lstat(directory).catch(() => undefined);
  // The target of a link is foreign, and would be deleted with the snapshot.
  if (!kind?.isDirectory()) return 'it is not a directory';
  const marks = MARKS.map((name) => join(directory, name));
  const present = await Promise.all(marks.map(isThere));
  const mark = marks.find((_, index) => present[index]);
  if (mark === undefined) return 'it is not complete';
  const value = await readRecord(join(directory, METADATA), { limit: MAX_BYTES }).catch((error: unknown) =>
    error instanceof RdError && error.code === 'ERR_OTHER_VERSION' ? 'newer' : undefined,
  );
  if (value === 'newer') return `a newer release wrote its ${METADATA}`;
  if (value === undefined) return `its ${METADATA} cannot be read`;
  if (value === 'damaged') return `its ${METADATA} is not JSON`;
  if (typeof value.name !== 'string' || typeof value.created !== 'string') {
    return `its ${METADATA} does not say its name and when it was made`;
  }
  const { created, name, description, covers } = value;
  if (Number.isNaN(Date.parse(created))) return `its ${METADATA} has no date`;
  return {
    ...{ id, directory, mark, created, name },
    description: typeof description === 'string' ? description : '',
    ...(typeof covers === 'number' ? { covers } : {}),
  };
}

function byAge(a: Snapshot, b: Snapshot): number {
  return Date.parse(a.created) - Date.parse(b.created) || (a.name < b.name ? -1 : 1);
}
