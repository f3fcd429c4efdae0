import { lstat, readdir, readFile, rename, rm, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { RdError } from '../errors.ts';
import { isObject } from '../json.ts';
import { ioError, systemCode } from '../storage/io-error.ts';
import type { SnapshotRecord } from './contract.ts';
import { instantOf } from './created.ts';
import { quoted } from './name.ts';

/** Files of a snapshot beside the saved state itself (api facts, 17.6). */
export const METADATA = 'metadata.json';
export const COMPLETE = 'complete.txt';
export const SETTINGS = 'settings.json';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** Snapshots that are being made or deleted have a name that is no id, so nobody takes them for one. */
const UNFINISHED = /^\.[0-9a-f-]{36}\.(?:partial|deleted)$/i;

/** A complete snapshot on the disk. */
export interface Snapshot extends SnapshotRecord {
  /** A UUID, and the name of its directory. */
  id: string;
  directory: string;
}

export interface Catalogue {
  /** Oldest first. */
  snapshots: Snapshot[];
  /** A sentence for each directory that has the name of a snapshot and is none that could be used. */
  warnings: string[];
}

/** Reads the directory of snapshots; one that is not there is empty. @throws RdError `ERR_IO` when it cannot be read. */
export async function readCatalogue(root: string): Promise<Catalogue> {
  const names = await readdir(root).catch((cause: unknown) => {
    if (systemCode(cause) === 'ENOENT') return [];
    throw ioError('read the snapshots in', root, cause);
  });
  const snapshots: Snapshot[] = [];
  const warnings: string[] = [];
  for (const id of names.filter((name) => UUID.test(name))) {
    const directory = join(root, id);
    const found = await readSnapshot(id, directory);
    if (typeof found === 'string') {
      warnings.push(`The snapshot in ${directory} is passed over: ${found}. Remove it if nobody needs it.`);
    } else snapshots.push(found);
  }
  return { snapshots: snapshots.sort(byAge), warnings: warnings.sort() };
}

/** @throws RdError `ERR_SNAPSHOT` with the cause of the api facts, 17.4. */
export async function findSnapshot(root: string, name: string): Promise<Snapshot> {
  const found = (await readCatalogue(root)).snapshots.find((snapshot) => snapshot.name === name);
  if (found) return found;
  throw new RdError('ERR_SNAPSHOT', `can't find snapshot ${quoted(name)}`);
}

/** Where a snapshot is made. */
export function partialDirectory(root: string, id: string): string {
  return join(root, `.${id}.partial`);
}

/** From the removal of its mark on it is no snapshot any more, whatever comes in between. @throws RdError `ERR_IO`. */
export async function deleteSnapshot(
  root: string,
  { id, directory }: Pick<Snapshot, 'id' | 'directory'>,
): Promise<void> {
  const gone = join(root, `.${id}.deleted`);
  try {
    await unlink(join(directory, COMPLETE));
    await rename(directory, gone);
    await rm(gone, { recursive: true, force: true });
  } catch (cause) {
    throw ioError('delete', directory, cause);
  }
}

/**
 * Removes what a killed service left half made or half deleted. Call it only while nobody works on snapshots.
 * @returns what went wrong with those that stay: they are in nobody's way.
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

/** The snapshot, or why it is none as a clause. */
async function readSnapshot(id: string, directory: string): Promise<Snapshot | string> {
  const kind = await lstat(directory).catch(() => undefined);
  // What a link leads to belongs to somebody else, and would be deleted with the snapshot.
  if (!kind?.isDirectory()) return 'it is no directory';
  const complete = await lstat(join(directory, COMPLETE)).then(
    () => true,
    () => false,
  );
  if (!complete) return 'it is not complete';
  let value: unknown;
  try {
    value = JSON.parse(await readFile(join(directory, METADATA), 'utf8'));
  } catch (error) {
    return systemCode(error) === undefined ? `its ${METADATA} is not JSON` : `its ${METADATA} cannot be read`;
  }
  if (!isObject(value) || typeof value.name !== 'string' || typeof value.created !== 'string') {
    return `its ${METADATA} does not say its name and when it was made`;
  }
  const { created, name, description } = value;
  if (instantOf(created) === undefined) return `its ${METADATA} has no date`;
  return { id, directory, created, name, description: typeof description === 'string' ? description : '' };
}

function byAge(a: Snapshot, b: Snapshot): number {
  const [first, second] = [instantOf(a.created) ?? 0n, instantOf(b.created) ?? 0n];
  if (first === second) return a.name < b.name ? -1 : 1;
  return first < second ? -1 : 1;
}
