import { lstat, readdir, readFile, readlink, realpath, rmdir, unlink } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { RdError } from '../errors.ts';
import { ioError, systemCode } from '../os/io-error.ts';
import { isThere } from '../os/regular-file.ts';
import { userHome } from '../os/user-directories.ts';
import { PRODUCT } from '../product.ts';
import { type OwnPlace, ownPlaces } from './own-files.ts';
import type { Places } from './places.ts';
import { removeServiceSocket } from './service-socket.ts';

/** The name of the directory of a snapshot. */
const SNAPSHOT = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The result of a factory reset. Paths are absolute, and each list is in the order of the work. */
export interface ResetSummary {
  removed: string[];
  kept: { path: string; why: string }[];
  /** `reason`: a clause. */
  failed: { path: string; reason: string }[];
}

export interface ResetOptions {
  /** Remove downloads too. */
  cache: boolean;
  /** Keep the history of changes. */
  keepsHistory?: boolean;
  /** Remove nothing, and return what would be removed. Needs no lock then. */
  dryRun?: boolean;
  operations?: RemovalOperations;
}

/**
 * Removes the files of an installation: settings, state, data, extensions, logs, and with `cache` the downloads. Keeps existing snapshots with their
 * key, and shims that a user has added. Call it while holding the service lock, with nothing running, in places where `isInstalled` is true; the lock
 * is removed last, and only if nothing failed, so that a repeated call knows that the rest is ours. Links are removed, never followed; nothing
 * outside of our directories, no foreign file in shared directories, and nothing on another file system is touched. Failures are reported.
 * @throws RdError `ERR_IO` from `checkPlaces`, before anything is removed.
 */
export async function factoryReset(places: Places, options: ResetOptions): Promise<ResetSummary> {
  const { dryRun = false, cache, keepsHistory = false } = options;
  const operations = dryRun ? DRY_OPERATIONS : (options.operations ?? removalOperations);
  checkPlaces(places, cache);
  const ownedPlaces = ownPlaces(places, cache);
  const reasons = await reasonsToKeep(places, { cache, keepsHistory });
  const last = [places.serviceLock, ...(places.dropInMarker === undefined ? [] : [places.dropInMarker])];
  const removal: Removal = {
    keep: new Set([...reasons.keys(), ...last]),
    mounts: await operations.mounts(),
    operations,
    dryRun,
    failed: [],
  };
  const summary: ResetSummary = { removed: [], kept: [], failed: removal.failed };
  // The socket of a killed service may be outside of these places. A path that is not our socket is handled again below.
  if (!dryRun) await removeServiceSocket(places).catch(() => undefined);
  for (const place of ownedPlaces) {
    if (!(await isThere(place.path))) continue;
    const { removed, kept } = await (place.owns ? removeNames : removeWhole)(place, places, removal);
    summary.removed.push(...removed.filter((path) => !reasons.has(path)));
    summary.kept.push(...kept);
  }
  if (summary.failed.length === 0) await removeLast(places, ownedPlaces, { ...removal, keep: new Set(reasons.keys()) });
  for (const [path, why] of reasons) if (await isThere(path)) summary.kept.push({ path, why });
  return summary;
}

/** Returns the result of a reset if nothing proves that we created the files. */
export async function untouchedSummary(places: Places, cache: boolean): Promise<ResetSummary> {
  const kept: ResetSummary['kept'] = [];
  for (const place of ownPlaces(places, cache)) {
    for (const path of await ownIn(place)) {
      if ((await entryCount(path)) !== 0) kept.push({ path, why: `not created by ${PRODUCT.name}` });
    }
  }
  return { removed: [], kept, failed: [] };
}

/**
 * Refuses a reset when a directory that would be removed entirely holds more than ours: the root, its direct children, a home and its
 * parent.
 * @throws RdError `ERR_IO`.
 */
export function checkPlaces(places: Places, cache: boolean): void {
  const user = userHome();
  for (const { path, owns } of ownPlaces(places, cache)) {
    const depth = path.split(/[/\\]/).filter((part) => part !== '').length;
    if (owns || (depth > 1 && path !== user && !user.startsWith(path + sep))) continue;
    throw new RdError('ERR_IO', `${path} is not used by rdctl alone; nothing was removed`, {
      advice: 'Check the output of `rdctl paths` and the environment variables that it depends on.',
    });
  }
}

/**
 * Removes only the downloads.
 * @throws RdError `ERR_IO` naming what could not be removed.
 */
export async function clearCache(places: Places, operations: RemovalOperations = removalOperations): Promise<void> {
  checkPlaces(places, true);
  const ownedPlaces = ownPlaces(places, true);
  const removal: Removal = {
    keep: new Set(),
    mounts: await operations.mounts(),
    operations,
    dryRun: false,
    failed: [],
  };
  if (ownedPlaces.some(({ path, owns }) => !owns && isWithin(places.cache, path))) {
    if (await isThere(places.cache)) await remove(places.cache, removal);
  } else {
    for (const place of ownedPlaces) if (place.path === places.cache) await removeNames(place, places, removal);
  }
  const [first, ...others] = removal.failed;
  if (!first) return;
  throw new RdError('ERR_IO', `the cache was not cleared: could not remove ${first.path}: ${first.reason}`, {
    details: others.map(({ path, reason }) => `${path}: ${reason}`),
    advice: 'Remove the obstacle and retry.',
  });
}

/** Lists the paths that `clearCache` would remove. */
export async function downloadsIn(places: Places): Promise<string[]> {
  checkPlaces(places, true);
  const ownedPlaces = ownPlaces(places, true);
  if (ownedPlaces.some(({ path, owns }) => !owns && isWithin(places.cache, path))) {
    return (await isThere(places.cache)) ? [places.cache] : [];
  }
  const place = ownedPlaces.find(({ path }) => path === places.cache);
  return place ? ownIn(place) : [];
}

type Outcome = Pick<ResetSummary, 'removed' | 'kept'>;

async function removeWhole({ path }: OwnPlace, _: Places, removal: Removal): Promise<Outcome> {
  const failures = removal.failed.length;
  const link = await readlink(path).catch(() => undefined);
  const gone = await remove(path, removal);
  return {
    removed: gone || removal.failed.length === failures ? [path] : [],
    kept: gone && link !== undefined ? [{ path: link, why: 'reached through a link' }] : [],
  };
}

/** Removes our entries in a directory. The directory itself goes once only the lock is left in it, which goes later. */
async function removeNames(place: OwnPlace, { home, serviceLock }: Places, removal: Removal): Promise<Outcome> {
  const link = await readlink(place.path).catch(() => undefined);
  if (link !== undefined) return { removed: [], kept: [{ path: place.path, why: 'a link; links are not followed' }] };
  const removed: string[] = [];
  for (const path of await ownIn(place)) if (await remove(path, removal)) removed.push(path);
  const names = await readdir(place.path).catch(() => ['it cannot be read']);
  const left = removal.dryRun ? names.filter((name) => !removed.includes(join(place.path, name))) : names;
  if (place.path === home || left.some((name) => join(place.path, name) !== serviceLock)) return { removed, kept: [] };
  if (left.length === 0) await remove(place.path, removal);
  return { removed: [place.path], kept: [] };
}

/** Lists our entries in a directory, as of now. */
async function ownIn({ path, owns }: OwnPlace): Promise<string[]> {
  if (!owns) return (await isThere(path)) ? [path] : [];
  const names = await readdir(path).catch(() => []);
  return names
    .filter(owns)
    .sort()
    .map((name) => join(path, name));
}

async function reasonsToKeep(
  places: Places,
  { cache, keepsHistory }: Required<Pick<ResetOptions, 'cache' | 'keepsHistory'>>,
): Promise<Map<string, string>> {
  const reasons = new Map<string, string>();
  for (const path of [places.snapshots, join(places.data, 'containerd-shims')]) {
    if (await entryCount(path)) reasons.set(path, 'not empty');
  }
  // Files that others have put beside the snapshots do not count.
  const inSnapshots = await readdir(places.snapshots).catch(() => []);
  if (inSnapshots.some((name) => SNAPSHOT.test(name)) && (await isThere(places.snapshotKey))) {
    reasons.set(places.snapshotKey, 'the key of the snapshots');
  }
  if (keepsHistory && (await isThere(places.historyFile))) reasons.set(places.historyFile, 'the history, as requested');
  if (reasons.size > 0 && places.dropInMarker !== undefined) {
    reasons.set(places.dropInMarker, 'says whose the directory is');
  }
  // The copy that an adoption kept is not part of a reset.
  for (const name of places.dropInMarker === undefined ? [] : await readdir(places.config).catch(() => [])) {
    if (/^settings\.before-rdctl-[0-9TZ]+\.json$/.test(name)) {
      reasons.set(join(places.config, name), 'the settings from before the adoption');
    }
  }
  if (!cache && places.home === undefined && (await isThere(places.cache))) {
    reasons.set(places.cache, 'downloads, which --cache removes');
  }
  return reasons;
}

/** Removes the lock last: it keeps another service from starting in a half-removed home. */
async function removeLast(places: Places, ownedPlaces: readonly OwnPlace[], removal: Removal): Promise<void> {
  for (const path of [places.dropInMarker, places.serviceLock]) {
    const root = ownedPlaces.find((each) => path?.startsWith(each.path + sep))?.path;
    if (path === undefined || root === undefined || !(await isThere(path)) || !(await remove(path, removal))) continue;
    for (let at = dirname(path); isWithin(at, root) && at !== places.home; at = dirname(at)) {
      const isGone = await removal.operations.rmdir(at).then(
        () => true,
        // Not empty: an entry was kept in it, or reported as not removed.
        () => false,
      );
      if (!isGone) break;
    }
  }
}

function isWithin(path: string, root: string): boolean {
  return path === root || path.startsWith(root + sep);
}

/** Returns the number of entries in a directory, or undefined if it is unreadable or not a directory. */
async function entryCount(path: string): Promise<number | undefined> {
  return readdir(path).then(
    ({ length }) => length,
    () => undefined,
  );
}

/** The operations of a removal; tests replace them to inject failures. */
export interface RemovalOperations {
  unlink(path: string): Promise<void>;
  rmdir(path: string): Promise<void>;
  /** Returns the absolute paths of all mount points. */
  mounts(): Promise<readonly string[]>;
}

export const removalOperations: RemovalOperations = { unlink, rmdir, mounts: mountPoints };

const DRY_OPERATIONS: RemovalOperations = { unlink: async () => {}, rmdir: async () => {}, mounts: mountPoints };

interface Removal {
  /** Paths to keep, with their contents. */
  keep: ReadonlySet<string>;
  mounts: readonly string[];
  operations: RemovalOperations;
  /** The operations do nothing. */
  dryRun: boolean;
  /** `reason`: a clause. */
  failed: { path: string; reason: string }[];
}

/** Removes a file, a link or a directory tree; never follows links. Returns true once it is gone. */
async function remove(path: string, removal: Removal): Promise<boolean> {
  return removeAt(path, await real(path), removal);
}

async function removeAt(path: string, realPath: string, removal: Removal): Promise<boolean> {
  const { keep, mounts, operations, failed } = removal;
  if (keep.has(path)) return false;
  try {
    const facts = await lstat(path);
    if (!facts.isDirectory()) {
      await operations.unlink(path);
      return true;
    }
    if (mounts.includes(realPath)) {
      failed.push({ path, reason: 'something is mounted there' });
      return false;
    }
    let empty = true;
    for (const name of (await readdir(path)).sort()) {
      if (!(await removeAt(join(path, name), join(realPath, name), removal))) empty = false;
    }
    if (empty) await operations.rmdir(path);
    return empty;
  } catch (cause) {
    if (systemCode(cause) === 'ENOENT') return true;
    const { message } = ioError('remove', '', cause);
    failed.push({ path, reason: message.slice(message.indexOf(': ') + 2) });
    return false;
  }
}

/** Returns the real path, without following the last component, as in the mount table. */
async function real(path: string): Promise<string> {
  const above = dirname(path);
  const realAbove = await realpath(above).catch(() => above);
  return join(realAbove, path.slice(above.length + (above.endsWith(sep) ? 0 : 1)));
}

/** Returns the mount points. Only on Linux; elsewhere no engine of ours mounts anything. */
async function mountPoints(): Promise<string[]> {
  const text = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '');
  return text
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((path) => path !== '')
    .map((path) => path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))));
}
