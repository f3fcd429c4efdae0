import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { RdError } from '../errors.ts';
import { readRecord } from '../os/record.ts';
import { readHistory } from './history-file.ts';
import type { Places } from './places.ts';

/** Maximum bytes of a record. */
const MAX_BYTES = 4 * 1024 * 1024;

/**
 * Refuses a home in which a newer release has written any file that this one cannot read. Called before a service changes anything, because it would
 * complete, replace or set aside files that it does not understand.
 * @throws RdError `ERR_OTHER_VERSION` naming the file. Damaged and unreadable files are left to the code that needs them.
 */
export async function refuseNewerFiles({ state, historyFile }: Pick<Places, 'state' | 'historyFile'>): Promise<void> {
  const drivers = join(state, 'drivers');
  const directories = [state, ...(await namesIn(drivers)).map((name) => join(drivers, name))];
  for (const directory of directories) {
    for (const name of (await namesIn(directory)).filter((each) => each.endsWith('.json'))) {
      await readRecord(join(directory, name), { limit: MAX_BYTES }).catch(rethrowNewer);
    }
  }
  await readHistory(historyFile).catch(rethrowNewer);
}

async function namesIn(directory: string): Promise<string[]> {
  return readdir(directory).catch(() => []);
}

function rethrowNewer(error: unknown): void {
  if (error instanceof RdError && error.code === 'ERR_OTHER_VERSION') throw error;
}
