import { existsSync } from 'node:fs';
import { rmdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RdError } from '../../../src/errors.ts';
import { deleteSnapshot, findSnapshot, readCatalogue } from '../../../src/features/snapshots/catalogue.ts';
import type { SnapshotRecord } from '../../../src/features/snapshots/contract.ts';
import { quoted } from '../../../src/features/snapshots/name.ts';
import { refuseRunning, requireAdopted } from '../../../src/state/adoption.ts';
import { lockHome } from '../../../src/state/home-lock.ts';
import type { Io } from '../../command.ts';
import { homeOf } from '../../session/absence.ts';
import { plainText } from '../../views/value.ts';

/** The snapshots on disk, for when no service runs. Skipped ones are reported on stderr. */
export async function storedSnapshots(io: Io): Promise<SnapshotRecord[]> {
  const { snapshots, warnings } = await readCatalogue(homeOf(io).snapshots);
  for (const warning of warnings) io.err(`notice: ${plainText(warning)}\n`);
  return snapshots;
}

/**
 * Avoids starting a service for an unknown name.
 * @throws RdError `ERR_SNAPSHOT` with the service's message.
 */
export async function checkStored(name: string, io: Io): Promise<void> {
  await findSnapshot(homeOf(io).snapshots, name).catch((cause: unknown) => failed('restore', name, cause));
}

/**
 * Deletes a snapshot while no service runs and keeps one from starting meanwhile. Leaves no new directories behind.
 * @throws RdError `ERR_SNAPSHOT` with the service's message, `ERR_WRONG_TARGET` for directories that were not adopted.
 */
export async function deleteStored(name: string, io: Io): Promise<void> {
  const here = homeOf(io);
  await requireAdopted(here);
  try {
    await findSnapshot(here.snapshots, name);
    const absent = absentDirectories(here.serviceLock);
    const lock = await lockHome(here.serviceLock, here.data);
    try {
      await refuseRunning(here);
      await deleteSnapshot(here.snapshots, await findSnapshot(here.snapshots, name));
    } finally {
      await lock.release();
      for (const path of absent) await rmdir(path).catch(() => undefined);
    }
  } catch (error) {
    failed('delete', name, error);
  }
}

/** The missing directories of a path, innermost first. */
function absentDirectories(path: string): string[] {
  return existsSync(path) ? [] : [path, ...absentDirectories(dirname(path))];
}

function failed(deed: string, name: string, cause: unknown): never {
  if (!(cause instanceof RdError)) throw cause;
  const { message, details, advice } = cause;
  throw new RdError('ERR_SNAPSHOT', `failed to ${deed} snapshot ${quoted(name)}: ${message}`, {
    cause,
    details,
    ...(advice === undefined ? {} : { advice }),
  });
}
