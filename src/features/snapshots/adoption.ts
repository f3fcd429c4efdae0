import { join } from 'node:path';
import { RdError } from '../../errors.ts';
import { type FileOperations, fileOperations, setAside, writeFileAtomic } from '../../os/atomic-file.ts';
import { diskProblem, virtualBytes } from '../../os/disk-header.ts';
import type { LogFile } from '../../os/log-file.ts';
import { snapshotKeyOf } from '../../state/places.ts';
import { isOfCompatible, readCatalogue, type Snapshot } from './catalogue.ts';
import { MAC, macText, newKey, readKey, type SnapshotKey, sealedFiles, writeKey } from './key.ts';
import { readManifest } from './manifest.ts';
import { quoted } from './name.ts';

interface Preparation {
  /** Directory of all snapshots. */
  root: string;
  /** Whether a release without keys may have made snapshots here: the home was in use before. */
  wasUsed: boolean;
  log: LogFile['write'];
  operations?: FileOperations;
}

/**
 * Makes the key of a home that has none. This is the one moment at which snapshots without a MAC count as the home's own: those present now are
 * listed in the key, which is written first, and get their MAC then, even after a kill in between; later ones are foreign. Must be called while
 * holding the lock of the service.
 * @returns a sentence for the user when there is no key, or another one than before.
 * @throws RdError `ERR_OTHER_VERSION` for the key of a newer release.
 */
export async function prepareKey(preparation: Preparation): Promise<string | undefined> {
  const { root, operations = fileOperations } = preparation;
  try {
    const there = await readKey(root);
    if (there === 'damaged') {
      const aside = await setAside(snapshotKeyOf(root), Date.now());
      await writeKey(root, newKey([]), operations);
      return `The key of the snapshots was damaged, is now ${aside}, and another one was made. The snapshots from before count as foreign: a restore needs --foreign.`;
    }
    const key = there ?? newKey(await adoptable(preparation));
    if (!there) await writeKey(root, key, operations);
    if (key.adopting.length > 0) await adopt(key, { ...preparation, operations });
  } catch (error) {
    if (!(error instanceof RdError) || error.code === 'ERR_OTHER_VERSION') throw error;
    return `The key of the snapshots is not ready, so none can be made: ${error.message}. Fix this and restart the service.`;
  }
  return undefined;
}

async function adoptable({ root, wasUsed }: Preparation): Promise<string[]> {
  if (!wasUsed) return [];
  const { snapshots } = await readCatalogue(root);
  // The key was lost: the home that made these had one.
  if (snapshots.some(({ foreign }) => foreign)) return [];
  const ours = await Promise.all(snapshots.map(async (each) => !(await isOfCompatible(each))));
  return snapshots.filter((_, index) => ours[index]).map(({ id }) => id);
}

async function adopt(key: SnapshotKey, { root, log, operations }: Required<Preparation>): Promise<void> {
  const { snapshots } = await readCatalogue(root);
  for (const snapshot of snapshots.filter(({ id }) => key.adopting.includes(id))) {
    const { directory, name } = snapshot;
    const files = await checkedFiles(snapshot).catch((error: unknown) => {
      log('warn', 'a snapshot of an earlier release counts as foreign', { name, error });
    });
    if (!files) continue;
    // A failure here concerns the whole disk: the next start continues.
    await writeFileAtomic(join(directory, MAC), macText(key, files), { operations });
    log('info', 'a snapshot of an earlier release is marked as one of this home', { name });
  }
  await writeKey(root, { ...key, adopting: [] }, operations);
}

/** Returns the files that the MAC covers. @throws RdError `ERR_SNAPSHOT` for a damaged manifest, and for a disk that leads out of its file. */
async function checkedFiles({ directory, mark, name }: Snapshot): ReturnType<typeof sealedFiles> {
  const { parts } = await readManifest(directory, mark);
  for (const { saved } of parts) {
    if (saved === undefined || (await virtualBytes(join(directory, saved))) === undefined) continue;
    const problem = await diskProblem(join(directory, saved));
    if (problem) throw new RdError('ERR_SNAPSHOT', `the disk ${saved} of ${quoted(name)}: ${problem.why}`);
  }
  return sealedFiles(directory, mark);
}
