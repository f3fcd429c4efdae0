import { open } from 'node:fs/promises';

/** Flushes a file written by another program or a stream, so that it survives a power failure. */
export async function syncFile(path: string): Promise<void> {
  const handle = await open(path, 'r+');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
