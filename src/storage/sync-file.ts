import { open } from 'node:fs/promises';

/** Brings a file that another program or a stream has written to the disk, so that it outlives a power failure with its name. */
export async function syncFile(path: string): Promise<void> {
  const handle = await open(path, 'r+');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
