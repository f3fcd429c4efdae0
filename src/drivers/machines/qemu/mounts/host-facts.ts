import { constants } from 'node:fs';
import { access, realpath, stat } from 'node:fs/promises';
import { posix } from 'node:path';
import { findProgram, programPath } from '../../../../os/program.ts';

/** What this host has for sharing directories. */
export interface HostFacts {
  /** Absolute paths; undefined for missing programs. */
  sftpServer: string | undefined;
  virtiofsd: { path: string; dialect: 'qemu' | 'rust' } | undefined;
  isRoot: boolean;
  /** Optional features of the guest images. */
  features: readonly string[];
}

/** Not in `PATH`; each distribution has its own location. */
const SFTP_SERVERS = [
  '/usr/lib/openssh/sftp-server',
  '/usr/libexec/openssh/sftp-server',
  '/usr/libexec/sftp-server',
  '/usr/lib/ssh/sftp-server',
];
/** The one shipped with QEMU up to 7.2, and its successor. */
const QEMU_VIRTIOFSD = ['/usr/lib/qemu/virtiofsd'];
const VIRTIOFSD = ['/usr/libexec/virtiofsd', '/usr/lib/virtiofsd'];

export async function hostFacts(path: string | undefined, features: readonly string[]): Promise<HostFacts> {
  const [sftpServer, rustVirtiofsd, qemuVirtiofsd] = await Promise.all([
    findHelper(SFTP_SERVERS, 'sftp-server', path),
    findHelper(VIRTIOFSD, 'virtiofsd', path),
    findHelper(QEMU_VIRTIOFSD, undefined, path),
  ]);
  const virtiofsd = rustVirtiofsd
    ? ({ path: rustVirtiofsd, dialect: 'rust' } as const)
    : qemuVirtiofsd
      ? ({ path: qemuVirtiofsd, dialect: 'qemu' } as const)
      : undefined;
  return { sftpServer, virtiofsd, isRoot: process.getuid?.() === 0, features };
}

async function findHelper(places: readonly string[], name: string | undefined, path: string | undefined) {
  for (const place of places) {
    const found = await access(place, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return place;
  }
  return name === undefined ? undefined : findProgram(name, programPath(path));
}

/** Pure: features that at least one image has. */
export function featuresOf(images: readonly { features?: readonly string[] }[]): string[] {
  return [...new Set(images.flatMap(({ features = [] }) => features))];
}

/** The host directory that a machine shares, at the path that containers use. */
export interface SharedHome {
  /** The value of `HOME`, as users write it. */
  path: string;
  /** The same without symbolic links. */
  real: string;
  /** Directories in `real` hidden from the machine, none inside another. */
  hidden: readonly string[];
}

/** Facts that decide whether a directory is shared. */
export interface HomeFacts {
  /** The value of `HOME`. */
  home: string | undefined;
  /** Its real path; undefined when there is no such directory. */
  real: string | undefined;
  /** Real paths of our own directories: keys, secrets and disks of the machine. */
  own: readonly string[];
}

/** System paths of the guest; no directory is shared at, below or above one. */
const GUEST_SYSTEM_PATHS: readonly string[] = [
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
];

/** Pure: the directory to share, or why none is shared, as a clause. */
export function homeToShare({ home, real, own }: HomeFacts): SharedHome | { missing: string } {
  if (home === undefined || home === '') return { missing: 'HOME is not set for the service' };
  if (!posix.isAbsolute(home)) return { missing: `HOME is ${JSON.stringify(home)}, which is not an absolute path` };
  const path = normalized(home);
  if (real === undefined) return { missing: `HOME is ${path}, which is not a directory` };
  for (const candidate of new Set([path, real])) {
    // Mount tables and command lines are line-oriented.
    if (/\p{Cc}/u.test(candidate)) return { missing: 'the path in HOME contains control characters' };
    const systemPath = GUEST_SYSTEM_PATHS.find((place) => isWithin(candidate, place) || isWithin(place, candidate));
    if (systemPath !== undefined) return { missing: `HOME is ${candidate}, and the guest uses ${systemPath} itself` };
  }
  const enclosing = own.find((place) => isWithin(real, place));
  if (enclosing !== undefined) {
    const where = enclosing === real ? enclosing : `in ${enclosing}`;
    return { missing: `HOME is ${where}, where rdctl keeps the keys of the machine` };
  }
  const nested = own.filter((place) => isWithin(place, real));
  const hidden = nested.filter((place) => !nested.some((other) => other !== place && isWithin(place, other)));
  return { path, real, hidden: [...new Set(hidden)] };
}

/** @param own directories that may not exist. */
export async function homeFacts(home: string | undefined, own: readonly string[]): Promise<HomeFacts> {
  const real = home === undefined || home === '' ? undefined : await realDirectory(home);
  const places = await Promise.all(own.map(realDirectory));
  return { home, real, own: places.filter((place) => place !== undefined) };
}

async function realDirectory(path: string): Promise<string | undefined> {
  try {
    return (await stat(path)).isDirectory() ? await realpath(path) : undefined;
  } catch {
    return undefined;
  }
}

function normalized(path: string): string {
  const normal = posix.normalize(path);
  return normal.length > 1 && normal.endsWith('/') ? normal.slice(0, -1) : normal;
}

function isWithin(path: string, place: string): boolean {
  return path === place || path.startsWith(place === '/' ? '/' : `${place}/`);
}
