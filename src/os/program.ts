import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

/** Debian package of each program that is called by name. */
const PACKAGES: Readonly<Record<string, string>> = {
  dockerd: 'docker.io',
  'docker-proxy': 'docker.io',
  containerd: 'containerd',
  ctr: 'containerd',
  runc: 'runc',
  ip: 'iproute2',
  iptables: 'iptables',
  'iptables-save': 'iptables',
  'iptables-restore': 'iptables',
  umount: 'mount',
  nsenter: 'util-linux',
  unshare: 'util-linux',
  setpriv: 'util-linux',
  bwrap: 'bubblewrap',
};

/** Tells how to install a program, as the advice of an error. */
export function installAdvice(program: string): string {
  const name = PACKAGES[program];
  return name
    ? `Install it: apt-get install --no-install-recommends ${name}`
    : `Install ${program}, or add its directory to PATH.`;
}

/** Adds the administrator's directories, which a plain `su` leaves out, to the search path. */
export function programPath(path: string | undefined): string {
  const adminDirectories = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
  const given = (path ?? '').split(delimiter).filter((entry) => entry !== '');
  return [...given, ...adminDirectories.filter((entry) => !given.includes(entry))].join(delimiter);
}

/** Returns the absolute path of an executable on a search path, or undefined if there is none. */
export async function findProgram(name: string, path: string): Promise<string | undefined> {
  for (const directory of path.split(delimiter)) {
    const candidate = join(directory, name);
    const isExecutable = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isExecutable) return candidate;
  }
  return undefined;
}

/**
 * Quotes one word of a command line for a POSIX shell, as for a suggested command or for ssh. Between single quotes nothing is special to a shell. A
 * NUL cannot be in a word of any program.
 */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Returns a command line for a POSIX shell with exactly these words. */
export function shellLine(argv: readonly string[]): string {
  return argv.map(shellWord).join(' ');
}
