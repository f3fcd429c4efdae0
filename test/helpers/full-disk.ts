import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';

const MIB = 2 ** 20;
const PAGE = 4096;

/** Only root may mount; `.ci/run` is. With `RDCTL_REQUIRE_REAL=1` it must work. */
export function cannotMount(): boolean {
  const cannot = process.platform !== 'linux' || process.getuid?.() !== 0;
  if (cannot && process.env.RDCTL_REQUIRE_REAL === '1') throw new Error('only root on Linux can make a full disk');
  if (cannot) process.stderr.write('\nSKIPPED: only root on Linux can make a full disk\n');
  return cannot;
}

/**
 * Mounts an empty file system on a directory. @param size as mount(8) takes it: `256k`.
 * @returns a function that takes it away; what still has files there keeps them.
 */
export function mountSmallDisk(directory: string, size: string): () => void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=0700`, 'rdctl-test', directory]);
  execFileSync('mount', ['--make-private', directory]);
  return () => void execFileSync('umount', ['--lazy', directory]);
}

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
