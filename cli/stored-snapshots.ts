import { RdError } from '../src/errors.ts';
import { readCatalogue } from '../src/snapshots/catalogue.ts';
import type { SnapshotRecord } from '../src/snapshots/contract.ts';
import { quoted } from '../src/snapshots/name.ts';
import { homeOf } from './absence.ts';
import type { Io } from './command.ts';
import { plainText } from './views/value.ts';

/** The snapshots on the disk of this home, for when no service runs. What is passed over is said on stderr. */
export async function storedSnapshots(io: Io): Promise<SnapshotRecord[]> {
  const { snapshots, warnings } = await readCatalogue(homeOf(io).snapshots);
  for (const warning of warnings) io.err(`notice: ${plainText(warning)}\n`);
  return snapshots;
}

/** Saves starting a service for a name that nobody has. @throws RdError `ERR_SNAPSHOT` with the text that the service would give. */
export async function checkStored(name: string, deed: 'delete' | 'restore', io: Io): Promise<void> {
  const { snapshots } = await readCatalogue(homeOf(io).snapshots);
  if (snapshots.some((snapshot) => snapshot.name === name)) return;
  throw new RdError('ERR_SNAPSHOT', `failed to ${deed} snapshot ${quoted(name)}: can't find snapshot ${quoted(name)}`);
}
