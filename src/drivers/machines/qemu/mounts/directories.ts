import { createHash } from 'node:crypto';
import { realpath, stat } from 'node:fs/promises';
import { posix } from 'node:path';
import type { MachineSpec } from '../../../driver.ts';

/** A directory of this host that a machine shows at the same path. */
export interface Share {
  /** `home`, or a name derived from the directory: in file names, and in QEMU's and the guest's names of the share. */
  id: string;
  /** Absolute, as users write it. */
  path: string;
  /** `path` without symbolic links. */
  real: string;
  mode: 'read-only' | 'writable' | 'writable-notify';
  /** Directories in `real` that an empty one covers in the machine, none inside another. */
  hidden: readonly string[];
}

/** A share, or the reason that there is none, as a clause; `none`: the profile does not share it. */
export type ShareChoice = Share | { path: string; missing: string } | { path: string; mode: 'none' };

/** Facts that decide which directories are shared. */
export interface DirectoryFacts {
  /** The value of `HOME` of the service. */
  home: string | undefined;
  mounts: MachineSpec['mounts'];
  /** Real paths of the directories among `HOME` and `mounts`, by absolute path. */
  real: ReadonlyMap<string, string>;
  /** Real paths of our own directories: keys, secrets and disks of the machine. */
  own: readonly string[];
}

/** Maximum number of shares: each takes a device of QEMU or a connection. */
export const MOST_SHARES = 16;

/** System paths of the guest; no directory is shared at, below or above one. */
export const GUEST_SYSTEM_PATHS: readonly string[] = [
  '/bin',
  '/boot',
  '/dev',
  '/etc',
  '/lib',
  '/lib32',
  '/lib64',
  '/libx32',
  '/proc',
  '/run',
  '/sbin',
  '/sys',
  '/usr/bin',
  '/usr/lib',
  '/usr/sbin',
  '/var/lib/rdctl',
  '/var/root',
];
/** No directory is shared at or above one of these; one below is. */
const GUEST_TEMPORARY_PATHS: readonly string[] = ['/tmp', '/var/tmp'];

/**
 * Returns the directories to share: the home directory first, then the others so that each comes after those that contain it. A directory that is not
 * shared, or covered, hides its contents from every share. Pure.
 */
export function directoriesToShare({ home, mounts, real, own }: DirectoryFacts): ShareChoice[] {
  const homePath = home === undefined || home === '' ? undefined : home;
  const problem = homeProblem(home);
  const homeAt = homePath === undefined || problem !== undefined ? undefined : normalizePath(homePath);
  const requests = Object.entries(mounts).map(([name, mode]) => ({ name, mode, path: pathOf(name, homeAt) }));
  const isHome = (path: string | undefined) =>
    path !== undefined && homeAt !== undefined && (path === homeAt || isSame(real.get(path), real.get(homeAt)));
  const forHome = requests.filter(({ name, path }) => name === '~' || isHome(path));
  const homeMode = (forHome.find(({ name }) => name === '~') ?? forHome[0])?.mode ?? 'writable';
  const others = requests.filter((request) => !forHome.includes(request));

  const covered = others.flatMap(({ path, mode }) => {
    const place = mode === 'none' && path !== undefined ? real.get(path) : undefined;
    return place === undefined ? [] : [place];
  });
  const choose = (id: string | undefined, path: string, mode: Share['mode'], name: string): ShareChoice => {
    const place = real.get(path);
    const missing = obstacle(path, place, name, own, covered);
    if (place === undefined || missing !== undefined) return { path, missing: missing ?? `${name} is not a directory` };
    return { id: id ?? idOf(place), path, real: place, mode, hidden: hiddenIn(place, [...own, ...covered]) };
  };

  const first: ShareChoice =
    homeMode === 'none'
      ? { path: homeAt ?? '~', mode: 'none' }
      : homeAt === undefined
        ? { path: '~', missing: problem ?? 'HOME is not set for the service' }
        : choose('home', homeAt, homeMode, `HOME (${homeAt})`);
  const choices = others.map(({ name, path, mode }): ShareChoice => {
    if (path === undefined)
      return { path: name, missing: problem ?? `${JSON.stringify(name)} is not an absolute path` };
    if (mode !== 'none') return choose(undefined, path, mode, path);
    // A cover needs an existing directory. Nothing is covered in advance.
    return real.has(path) ? { path, mode } : { path, missing: `${path} is not a directory, so nothing hides it` };
  });
  return [first, ...limitShares(inOrder(choices), first)];
}

/** Collects the paths whose real paths `directoriesToShare` needs. */
export async function directoryFacts(
  home: string | undefined,
  mounts: MachineSpec['mounts'],
  own: readonly string[],
): Promise<DirectoryFacts> {
  const homeAt = homeProblem(home) === undefined && home !== undefined ? normalizePath(home) : undefined;
  const paths = [homeAt, ...Object.keys(mounts).map((name) => pathOf(name, homeAt))];
  const known = paths.filter((path) => path !== undefined);
  const entries = await Promise.all(known.map(async (path) => [path, await realDirectory(path)] as const));
  const places = await Promise.all(own.map(realDirectory));
  return {
    home,
    mounts,
    real: new Map(entries.flatMap(([path, real]) => (real === undefined ? [] : [[path, real]]))),
    own: places.filter((place) => place !== undefined),
  };
}

/** True if `path` is `place` or below it. */
export function isWithin(path: string, place: string): boolean {
  return path === place || path.startsWith(place === '/' ? '/' : `${place}/`);
}

function homeProblem(home: string | undefined): string | undefined {
  if (home === undefined || home === '') return 'HOME is not set for the service';
  return posix.isAbsolute(home) ? undefined : `HOME is ${JSON.stringify(home)}, which is not an absolute path`;
}

/** Returns the absolute path behind a name in a profile, or undefined if there is none. */
function pathOf(name: string, home: string | undefined): string | undefined {
  if (name === '~' || name.startsWith('~/'))
    return home === undefined ? undefined : normalizePath(home + name.slice(1));
  return posix.isAbsolute(name) ? normalizePath(name) : undefined;
}

/** Returns the reason that the directory is not shared, as a clause, or undefined. */
function obstacle(
  path: string,
  real: string | undefined,
  name: string,
  own: readonly string[],
  covered: readonly string[],
): string | undefined {
  if (real === undefined) return `${name} is not a directory`;
  for (const candidate of new Set([path, real])) {
    // Mount tables and command lines are line-oriented.
    if (/\p{Cc}/u.test(candidate)) return 'the path contains control characters';
    const systemPath =
      GUEST_SYSTEM_PATHS.find((place) => isWithin(candidate, place) || isWithin(place, candidate)) ??
      GUEST_TEMPORARY_PATHS.find((place) => isWithin(place, candidate));
    if (systemPath === undefined) continue;
    const what = candidate === path ? name : `${name} leads to ${candidate}, which`;
    return `${what} cannot be shared, because the guest uses ${systemPath} itself`;
  }
  const enclosing = own.find((place) => isWithin(real, place));
  if (enclosing !== undefined) {
    const where = enclosing === real ? enclosing : `in ${enclosing}`;
    return `${name} is ${where}, where rdctl keeps the keys of the machine`;
  }
  const place = covered.find((place) => isWithin(real, place));
  return place === undefined ? undefined : `${name} is in ${place}, which the profile hides`;
}

function hiddenIn(real: string, places: readonly string[]): string[] {
  const nested = places.filter((place) => place !== real && isWithin(place, real));
  return [...new Set(nested.filter((place) => !nested.some((other) => other !== place && isWithin(place, other))))];
}

/** Sorts the choices. Directories that are not shared keep their order, at the end. */
function inOrder(choices: readonly ShareChoice[]): ShareChoice[] {
  const shares = choices.filter((choice) => 'real' in choice);
  const depth = ({ real }: Share) => real.split('/').length;
  shares.sort((one, other) => depth(one) - depth(other) || (one.real < other.real ? -1 : 1));
  return [...shares, ...choices.filter((choice) => !('real' in choice))];
}

/** Leaves out directories that are already shared, and those beyond the limit. */
function limitShares(choices: readonly ShareChoice[], home: ShareChoice): ShareChoice[] {
  const paths = new Map<string, string>();
  if ('real' in home) paths.set(home.real, home.path);
  return choices.map((choice) => {
    if (!('real' in choice)) return choice;
    const { path, real } = choice;
    const same = paths.get(real);
    if (same !== undefined) return { path, missing: `${path} is the same directory as ${same}` };
    if (paths.size >= MOST_SHARES) return { path, missing: `a machine can share ${MOST_SHARES} directories` };
    paths.set(real, path);
    return choice;
  });
}

function idOf(real: string): string {
  return `mount-${createHash('sha256').update(real).digest('hex').slice(0, 8)}`;
}

function isSame(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && one === other;
}

async function realDirectory(path: string): Promise<string | undefined> {
  try {
    return (await stat(path)).isDirectory() ? await realpath(path) : undefined;
  } catch {
    return undefined;
  }
}

function normalizePath(path: string): string {
  const normal = posix.normalize(path);
  return normal.length > 1 && normal.endsWith('/') ? normal.slice(0, -1) : normal;
}
