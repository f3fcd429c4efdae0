import { lstat, readdir, readFile, readlink, realpath, rmdir, unlink } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, sep } from 'node:path';
import { RdError } from '../errors.ts';
import { ioError, systemCode } from './io-error.ts';
import type { Places } from './places.ts';

/** What a factory reset did. Paths are absolute, and each list is in the order of the work. */
export interface ResetSummary {
  removed: string[];
  kept: { path: string; why: string }[];
  /** `reason` is a clause. */
  failed: { path: string; reason: string }[];
}

/** The operations of a removal; tests replace them to let one fail. */
export interface RemovalOperations {
  unlink(path: string): Promise<void>;
  rmdir(path: string): Promise<void>;
  /** Absolute paths of everything that is mounted somewhere. */
  mounts(): Promise<readonly string[]>;
}

export const removalOperations: RemovalOperations = { unlink, rmdir, mounts: mountPoints };

export interface ResetOptions {
  /** Downloads too. */
  cache: boolean;
  operations?: RemovalOperations;
}

/** What of the data directory is ours, with `RDCTL_HOME`, where a user may keep other files beside it. */
const OWN_NAMES = ['containerd-shims'];

/**
 * Removes the files of an installation (tool facts, 11.3): settings, state, data, extensions, logs, with `cache` the downloads.
 * Snapshots that exist stay, and so do shims that a user has put there. Call it while holding the service lock, with nothing
 * running; the lock goes last. A link is removed, never followed; nothing outside of our directories and nothing on another file
 * system is touched. What cannot be removed is reported, and the rest is removed anyway; it can be called again.
 * @throws RdError `ERR_IO` when the places are such that they cannot be ours alone; nothing is removed then.
 */
export async function factoryReset(here: Places, options: ResetOptions): Promise<ResetSummary> {
  const { operations = removalOperations, cache } = options;
  const roots = rootsOf(here, cache);
  for (const root of roots) refuseSharedDirectory(root, here);
  const summary: ResetSummary = { removed: [], kept: [], failed: [] };
  const keep = new Map<string, string>();
  for (const path of [here.snapshots, join(here.data, 'containerd-shims')]) {
    if (await isFilledDirectory(path)) keep.set(path, 'not empty');
  }
  if (keep.size > 0 && here.dropInMarker !== undefined) keep.set(here.dropInMarker, 'says whose the directory is');
  if (!cache && (await isThere(here.cache))) keep.set(here.cache, 'downloads, which --cache removes');
  const mounts = await operations.mounts();
  const removal: Removal = { keep, last: here.serviceLock, mounts, operations, summary };
  for (const root of roots) {
    if (!(await isThere(root))) continue;
    const failures = summary.failed.length;
    const link = await linkTarget(root);
    const gone = await remove(root, await real(root), removal);
    if (gone || (summary.failed.length === failures && !keep.has(root))) summary.removed.push(root);
    if (gone && link !== undefined) summary.kept.push({ path: link, why: 'a link led there' });
  }
  await removeLock(here, roots, removal);
  for (const [path, why] of keep) if (await isThere(path)) summary.kept.push({ path, why });
  return summary;
}

/**
 * Removes the downloads alone.
 * @throws RdError `ERR_IO` naming what could not be removed.
 */
export async function clearCache(here: Places, operations: RemovalOperations = removalOperations): Promise<void> {
  refuseSharedDirectory(here.cache, here);
  if (!(await isThere(here.cache))) return;
  const summary: ResetSummary = { removed: [], kept: [], failed: [] };
  const mounts = await operations.mounts();
  await remove(here.cache, await real(here.cache), { keep: new Map(), mounts, operations, summary });
  const [first] = summary.failed;
  if (!first) return;
  throw new RdError('ERR_IO', `the cache was not cleared: could not remove ${first.path}: ${first.reason}`, {
    details: summary.failed.slice(1).map(({ path, reason }) => `${path}: ${reason}`),
    advice: 'Remove what is in the way, and call again.',
  });
}

interface Removal {
  keep: ReadonlyMap<string, string>;
  /** Stays until the end. */
  last?: string;
  mounts: readonly string[];
  operations: RemovalOperations;
  summary: ResetSummary;
}

/** The topmost things to remove, the data that is largest and easiest to miss first. */
function rootsOf(here: Places, cache: boolean): string[] {
  const own =
    here.home === undefined
      ? [here.data]
      : [
          here.extensions,
          here.snapshots,
          here.bin,
          here.connectionFile,
          here.backendLock,
          ...OWN_NAMES.map((name) => join(here.data, name)),
        ];
  const all = [
    here.state,
    here.extensions,
    here.logs,
    ...(cache ? [here.cache] : []),
    here.config,
    ...own,
    ...(here.dropIn === undefined ? [] : [dirname(here.bin)]),
  ];
  const unique = [...new Set(all)];
  return unique.filter((path) => !unique.some((other) => path !== other && path.startsWith(other + sep)));
}

/** A directory that holds more than ours is never removed: the root, what is directly below it, a home and what it is in. */
function refuseSharedDirectory(path: string, { home }: Places): void {
  const user = homedir();
  const depth = path.split(/[/\\]/).filter((part) => part !== '').length;
  const isOwn = home === undefined ? depth > 1 : path.startsWith(home + sep);
  if (isOwn && path !== user && !user.startsWith(path + sep)) return;
  throw new RdError('ERR_IO', `${path} is not a directory that is ours alone, and nothing was removed`, {
    advice: 'Look at the output of `rdctl paths` and at the variables that it depends on.',
  });
}

/** Removes a file, a link or a directory with what is in it. Returns true when it is gone. */
async function remove(path: string, realPath: string, removal: Removal): Promise<boolean> {
  const { keep, last, mounts, operations, summary } = removal;
  if (keep.has(path) || path === last) return false;
  try {
    const facts = await lstat(path);
    if (!facts.isDirectory()) {
      await operations.unlink(path);
      return true;
    }
    if (mounts.includes(realPath)) {
      summary.failed.push({ path, reason: 'something is mounted there' });
      return false;
    }
    let empty = true;
    for (const name of await readdir(path)) {
      if (!(await remove(join(path, name), join(realPath, name), removal))) empty = false;
    }
    if (empty) await operations.rmdir(path);
    return empty;
  } catch (cause) {
    if (systemCode(cause) === 'ENOENT') return true;
    summary.failed.push({ path, reason: reasonOf(cause) });
    return false;
  }
}

/** With the lock goes the last thing that keeps another service from starting in what is half removed. */
async function removeLock({ serviceLock }: Places, roots: readonly string[], removal: Removal): Promise<void> {
  const root = roots.find((each) => serviceLock.startsWith(each + sep));
  if (root === undefined || !(await isThere(serviceLock))) return;
  const { last: _, ...rest } = removal;
  if (!(await remove(serviceLock, await real(serviceLock), rest))) return;
  for (let at = dirname(serviceLock); at === root || at.startsWith(root + sep); at = dirname(at)) {
    try {
      await removal.operations.rmdir(at);
    } catch {
      // Something is kept in it, or was reported as not removed.
      return;
    }
  }
}

function reasonOf(cause: unknown): string {
  const { message } = ioError('remove', '', cause);
  return message.slice(message.indexOf(': ') + 2);
}

/** Where it really is, itself not followed: what the list of mounts shows. */
async function real(path: string): Promise<string> {
  const above = dirname(path);
  const realAbove = await realpath(above).catch(() => above);
  return join(realAbove, path.slice(above.length + (above.endsWith(sep) ? 0 : 1)));
}

async function linkTarget(path: string): Promise<string | undefined> {
  return readlink(path).catch(() => undefined);
}

async function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    (error: unknown) => systemCode(error) !== 'ENOENT' && systemCode(error) !== 'ENOTDIR',
  );
}

async function isFilledDirectory(path: string): Promise<boolean> {
  return readdir(path).then(
    (names) => names.length > 0,
    () => false,
  );
}

/** Linux tells; elsewhere no engine of ours mounts anything. */
async function mountPoints(): Promise<string[]> {
  const text = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '');
  return text
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((path) => path !== '')
    .map((path) => path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))));
}
