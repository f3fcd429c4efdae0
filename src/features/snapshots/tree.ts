import { randomBytes } from 'node:crypto';
import { type BigIntStats, constants } from 'node:fs';
import { copyFile, lstat, readdir, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RdError } from '../../errors.ts';
import { steadyClock } from '../../os/clock.ts';
import { removeDaemonRecord, stopDaemon, writeDaemonRecord } from '../../os/daemon.ts';
import { ioError, systemCode } from '../../os/io-error.ts';
import { lastLines, run } from '../../os/run.ts';
import { sizeText } from '../../os/size.ts';
import { SHARE_TRIAL } from '../../state/own-files.ts';
import type { Places } from '../../state/places.ts';

/** One file of a tree. */
export interface TreeEntry {
  /** Absolute path in bytes, because image file names may not be valid text. */
  path: Buffer;
  /** Path relative to the top, one character per byte; `''` for the top itself. */
  name: string;
  stats: BigIntStats;
}

/** Yields a file or directory tree, the top first, in a stable order; empty when missing. Follows no links. */
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
/** Bytes in the unit of `st_blocks`. */
const BLOCK = 512n;

/** Returns the disk usage of the trees in bytes, hard links counted once. */
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

/** Milliseconds that a copy may take: terabytes take long, and the caller's signal ends it earlier. */
const LIMIT_MS = 24 * 3_600_000;
/** Space to keep free beside the copy, in bytes. */
const MARGIN = 64 * 1024 * 1024;
/** Milliseconds until a canceled copy is killed. */
const END_MS = 2_000;

/**
 * Copies a file or directory with all metadata: hard links, owners, times, extended attributes, devices, holes. Shares blocks with the
 * original where the file system supports it. `to` must not exist.
 * @throws RdError `ERR_DRIVER_FAILED` with the program's error, `ERR_CANCELLED` by the signal.
 */
export async function copyTree(from: string, to: string, signal: AbortSignal): Promise<void> {
  await run([...copyCommand(process.platform), from, to], { signal, timeoutMs: LIMIT_MS });
}

/**
 * Returns `copyTree` for one copy at a time. `record` identifies the copying program, because it survives a kill of this process.
 * @throws RdError `ERR_IO` when the program cannot be recorded, and the errors of `copyTree`.
 */
export function recordCopies(record: string): typeof copyTree {
  return async (from, to, signal) => {
    await writeDaemonRecord(record, { argv: [...copyCommand(process.platform), from, to] }).catch((cause: unknown) => {
      throw ioError('write', record, cause);
    });
    try {
      await copyTree(from, to, signal);
    } finally {
      await removeDaemonRecord(record);
    }
  };
}

/** Path of the record of the copying program. */
export function copyRecord({ state }: Pick<Places, 'state'>): string {
  return join(state, 'copy.json');
}

/** Stops the copy of a killed process. @throws RdError `ERR_DRIVER_FAILED` when it survives. */
export async function endCopy(record: string): Promise<void> {
  // On other systems processes cannot be listed: the target is deleted beneath the copy.
  if (process.platform === 'linux') await stopDaemon(record, { graceMs: END_MS, clock: steadyClock });
  else await removeDaemonRecord(record);
}

/** Returns the copy command of a platform. Naming `xattr` makes a lost attribute an error: image layers depend on them. */
function copyCommand(platform: NodeJS.Platform): string[] {
  if (platform === 'darwin') return ['cp', '-c', '-R', '-p'];
  return ['cp', '-a', '--preserve=mode,ownership,timestamps,links,xattr', '--reflink=auto', '--no-target-directory'];
}

/**
 * Flushes these file systems to disk.
 * @throws RdError `ERR_IO` when that fails: the copy is then unreliable.
 */
export async function flush(directories: readonly string[]): Promise<void> {
  if (process.platform === 'linux') {
    const argv = ['sync', '--file-system', ...directories];
    const { exitCode, stderr } = await run(argv, { timeoutMs: LIMIT_MS, accept: [0, 1] });
    if (exitCode === 0) return;
    // Minimal versions of the program on some systems lack that option.
    if (!/option/.test(stderr)) {
      const why = lastLines(stderr).at(-1) ?? 'sync does not say why';
      throw new RdError('ERR_IO', `the copy could not be flushed to disk: ${why}`, {
        advice: 'Check the kernel log (dmesg) for disk errors.',
      });
    }
  }
  await run(['sync'], { timeoutMs: LIMIT_MS });
}

/**
 * Checks the space for a copy. `shares` tells whether the copy shares blocks with the original if supported.
 * @returns the bytes that a copy of these trees to the directory has to move: 0 if blocks are shared.
 * @throws RdError `ERR_SNAPSHOT` with the required and the free space.
 */
export async function checkSpace(tops: readonly string[], directory: string, shares = true): Promise<number> {
  const { bytes, needed, free } = await roomFor(tops, directory, shares);
  if (needed <= free) return bytes;
  throw new RdError(
    'ERR_SNAPSHOT',
    `there is not enough space: the copy needs ${sizeText(needed)}, and ${sizeText(free)} is free in ${directory}`,
  );
}

/** The space that a copy takes and the space that there is, in bytes. */
export interface Room {
  /** Bytes to move; 0 if blocks are shared. */
  bytes: number;
  /** Bytes that must be free, with a margin; 0 if blocks are shared. */
  needed: number;
  free: number;
}

/** Returns the space for a copy. `shares` tells whether the copy shares blocks with the original if supported. */
export async function roomFor(tops: readonly string[], directory: string, shares: boolean): Promise<Room> {
  const bytes = await usage(tops);
  const { bavail, bsize } = await statfs(directory);
  const free = bavail * bsize;
  if (shares && bytes > 0 && (await sharesBlocks(directory))) return { bytes: 0, needed: 0, free };
  return { bytes, needed: bytes + MARGIN, free };
}

/** Whether a file system shares blocks. Tested with a small file, because none reports it. */
async function sharesBlocks(directory: string): Promise<boolean> {
  const [from, to] = [trialFile(directory), trialFile(directory)];
  try {
    await writeFile(from, 'x'.repeat(4096), { flag: 'wx', mode: 0o600 });
    await copyFile(from, to, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL);
    return true;
  } catch {
    return false;
  } finally {
    for (const path of [from, to]) await rm(path, { force: true }).catch(() => undefined);
  }
}

/** Returns the path of the test file. It is named like a draft, so that a killed process's file is removed at the next start. */
function trialFile(directory: string): string {
  return join(directory, `.${SHARE_TRIAL}.${randomBytes(6).toString('hex')}.tmp`);
}
