import { rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';

const MIB = 2 ** 20;
const PAGE = 4096;

/**
 * Takes all the space of the directory's file system except `leave` pages.
 * @returns a function that frees it. @throws any error other than a lack of space.
 */
export async function fillDisk(directory: string, leave = 0): Promise<() => void> {
  const path = join(directory, 'ballast');
  const file = await open(path, 'w');
  try {
    for (const size of [MIB, PAGE]) await fillIn(file, size);
    const { size } = await file.stat();
    await file.truncate(Math.ceil(size / PAGE) * PAGE - leave * PAGE);
  } finally {
    await file.close();
  }
  return () => rmSync(path, { force: true });
}

async function fillIn(file: Awaited<ReturnType<typeof open>>, size: number): Promise<void> {
  const data = Buffer.alloc(size, 1);
  for (;;) {
    try {
      await file.write(data);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOSPC') return;
      throw error;
    }
  }
}
