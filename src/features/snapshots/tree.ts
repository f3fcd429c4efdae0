import type { BigIntStats } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { systemCode } from '../../os/io-error.ts';

/** One file of a tree. */
export interface TreeEntry {
  /** Absolute. Bytes, because image file names may not be valid text. */
  path: Buffer;
  /** Relative to the top, one character per byte; `''` for the top itself. */
  name: string;
  stats: BigIntStats;
}

/** A file or directory tree, the top first, in a stable order; empty when missing. Follows no links. */
export async function* walk(top: string): AsyncGenerator<TreeEntry> {
  yield* below({ path: Buffer.from(top), name: '' });
}

async function* below({ path, name }: Pick<TreeEntry, 'path' | 'name'>): AsyncGenerator<TreeEntry> {
  const stats = await lstat(path, { bigint: true }).catch((error: unknown) => {
    if (name === '' && systemCode(error) === 'ENOENT') return undefined;
    throw error;
  });
  if (!stats) return;
  yield { path, name, stats };
  if (!stats.isDirectory()) return;
  const children = (await readdir(path, { encoding: 'buffer' })).sort(Buffer.compare);
  for (const child of children) {
    const own = child.toString('latin1');
    yield* below({ path: Buffer.concat([path, SLASH, child]), name: name === '' ? own : `${name}/${own}` });
  }
}

const SLASH = Buffer.from('/');
/** Unit of `st_blocks`. */
const BLOCK = 512n;

/** Disk usage of the trees in bytes, hard links counted once. */
export async function usage(tops: readonly string[]): Promise<number> {
  const seen = new Set<string>();
  let bytes = 0n;
  for (const top of tops) {
    for await (const { stats } of walk(top)) {
      const key = `${stats.dev}:${stats.ino}`;
      if (stats.nlink > 1n && !stats.isDirectory()) {
        if (seen.has(key)) continue;
        seen.add(key);
      }
      bytes += stats.blocks * BLOCK;
    }
  }
  return Number(bytes);
}
