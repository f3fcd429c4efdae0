import { constants } from 'node:fs';
import { copyFile, mkdir, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { openToAppend, openToRead } from './regular-file.ts';
import { lastLines } from './run.ts';

/** Size at which the older half of a log moves to `FILE.1`. */
const MAX_LOG_BYTES = 10 * 1024 * 1024;

async function sizeOf(file: string): Promise<number> {
  return stat(file).then(
    (facts) => facts.size,
    () => 0,
  );
}

/** Opens a log for appending (0600); rotates an oversized one to `FILE.1` first. Refuses a link or a pipe in place of a log. */
export async function openLog(file: string, maxBytes = MAX_LOG_BYTES) {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  if ((await sizeOf(file)) > maxBytes) await rename(file, `${file}.1`);
  return openToAppend(file);
}

/**
 * Bounds the log of a running program, which has the file open for appending: the content moves to `FILE.1` and the file restarts. Lines
 * written in between are lost. Does nothing for a small or missing file.
 */
export async function boundLog(file: string, maxBytes = MAX_LOG_BYTES): Promise<void> {
  if ((await sizeOf(file)) <= maxBytes) return;
  const older = `${file}.1`;
  const log = await openToAppend(file);
  try {
    // Replaces whatever exists there, links included.
    await rm(older, { force: true });
    await copyFile(file, older, constants.COPYFILE_EXCL);
    await log.truncate(0);
  } finally {
    await log.close();
  }
}

/** Returns the last lines of a log, for the details of an error; empty if it cannot be read. */
export async function tailOf(file: string, lines = 8): Promise<string[]> {
  const handle = await openToRead(file).catch(() => undefined);
  if (!handle) return [];
  try {
    const { size } = await handle.stat();
    const length = Math.min(size, 16 * 1024);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, size - length);
    return lastLines(buffer.subarray(0, bytesRead).toString('utf8'), lines);
  } finally {
    await handle.close();
  }
}
