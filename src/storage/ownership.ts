// Synchronous, and light: commands that take milliseconds ask this before they trust a file of ours.
import { existsSync, lstatSync, readFileSync, readlinkSync } from 'node:fs';
import { posix } from 'node:path';
import { RdError } from '../errors.ts';
import { PRODUCT } from '../product.ts';
import { systemCode } from './io-error.ts';
import type { Places } from './places.ts';
import { shellQuoted } from './shell-quoted.ts';

/** A name on the way to a path, as the system describes it. */
export interface NameFacts {
  kind: 'directory' | 'link' | 'file';
  uid: number;
  gid: number;
  /** With the type bits or without. */
  mode: number;
  /** It is what the path leads to; absent for what is above that. */
  last?: true;
}

/** Whom a path may belong to. */
export interface Trust {
  /** An owner that is us, or could do anything to us anyway. */
  owner(uid: number): boolean;
  /** A group in which nobody is but those. */
  group(gid: number): boolean;
}

/** Why others can change what a path leads to. */
export interface Exposure extends NameFacts {
  path: string;
  by: 'owner' | 'writers';
}

const { dirname, join } = posix;
const ROOT = '/';
const STICKY = 0o1000;
const MOST_LINKS = 40;

/**
 * The rule, for one name: an owner that is trusted, and nobody else who may write. Above the path itself a directory with the sticky
 * bit may be open to all (`/tmp`): what is in it can be replaced by its owner alone. The bits of a link mean nothing.
 */
export function exposedBy({ kind, uid, gid, mode, last }: NameFacts, trust: Trust): Exposure['by'] | undefined {
  if (!trust.owner(uid)) return 'owner';
  if (kind === 'link' || (kind === 'directory' && !last && (mode & STICKY) !== 0)) return undefined;
  return (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && !trust.group(gid)) ? 'writers' : undefined;
}

/**
 * The first name on the way to an absolute path that lets others change what is there: every directory from the root on, every link
 * and the directories that those lead through, and the path itself. `undefined` when none does. What is not there yet counts as safe, as it
 * will be made by us. On Windows, where the bits say nothing, it is always `undefined`.
 * @param seen names that were found in order before; added to.
 */
export function exposureOf(path: string, trust: Trust = trustOfUser(), seen = new Set<string>()): Exposure | undefined {
  if (process.platform === 'win32') return undefined;
  const rest = ['', ...path.split(ROOT).filter(Boolean)];
  let links = 0;
  for (let at: string = ROOT; rest.length > 0; ) {
    const name = rest.shift();
    const next = name === '..' ? dirname(at) : join(at, name ?? '');
    const known = rest.length > 0 && seen.has(next);
    if (!known) {
      const facts = factsOf(next);
      if (!facts) return undefined;
      const named: NameFacts = rest.length === 0 ? { ...facts, last: true } : facts;
      const by = exposedBy(named, trust);
      if (by) return { ...named, path: next, by };
      if (facts.kind === 'link') {
        links += 1;
        // Opening it fails with the reason.
        if (links > MOST_LINKS) return undefined;
        const target = readlinkSync(next);
        rest.unshift(...target.split(ROOT).filter((part) => part !== '' && part !== '.'));
        if (target.startsWith(ROOT)) at = ROOT;
        continue;
      }
      if (rest.length > 0) seen.add(next);
    }
    at = next;
  }
  return undefined;
}

/** Nothing where there is nothing, and where it cannot be looked at: to open it fails with the reason. */
function factsOf(path: string): NameFacts | undefined {
  try {
    const facts = lstatSync(path);
    const { uid, gid, mode } = facts;
    return { kind: facts.isSymbolicLink() ? 'link' : facts.isDirectory() ? 'directory' : 'file', uid, gid, mode };
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined) throw error;
    return undefined;
  }
}

/** What the accounts of a computer say, as the text of two files. */
export interface Accounts {
  passwd: string;
  group: string;
}

/** The system's accounts; of those that only a directory service knows nothing is here. */
function localAccounts(): Accounts {
  const text = (path: string) => {
    try {
      return readFileSync(path, 'utf8');
    } catch {
      return '';
    }
  };
  return { passwd: text('/etc/passwd'), group: text('/etc/group') };
}

interface Account {
  name: string;
  uid: number;
  gid: number;
}

function accountsIn(passwd: string): Account[] {
  return passwd.split('\n').flatMap((line) => {
    const [name = '', , uid = '', gid = ''] = line.split(':');
    return /^\d+$/.test(uid) && /^\d+$/.test(gid) ? [{ name, uid: Number(uid), gid: Number(gid) }] : [];
  });
}

/**
 * True for a group in which only users are that `owner` accepts: that of root, and the one that systems with a mask of 002 make for
 * each user. One that the files do not know is taken for the latter when it has the number of the user.
 */
export function isPrivateGroup(
  gid: number,
  uid: number,
  owner: Trust['owner'],
  { passwd, group }: Accounts = localAccounts(),
): boolean {
  if (gid === 0) return true;
  const users = accountsIn(passwd);
  const [, , , members] =
    group
      .split('\n')
      .map((line) => line.split(':'))
      .find((fields) => fields[2] === String(gid)) ?? [];
  if (members === undefined) return gid === uid;
  const isOurs = (name: string) => users.some((user) => user.name === name && owner(user.uid));
  return (
    members
      .split(',')
      .map((name) => name.trim())
      .filter(Boolean)
      .every(isOurs) && users.every((user) => user.gid !== gid || owner(user.uid))
  );
}

/**
 * The user, root, and who owns the root directory, who could replace everything (inside of a user namespace that is not root). For root
 * in a container also an owner that has no account there: nobody in it can act as that one, and it has been mounted by whoever runs the container.
 */
export function trustOfUser(): Trust {
  const uid = process.geteuid?.() ?? 0;
  const root = factsOf(ROOT)?.uid ?? 0;
  const owner = (other: number) => other === uid || other === 0 || other === root || (uid === 0 && isMountedIn(other));
  return trustIn(uid, owner);
}

/** Only who rules the computer. */
export function trustOfSystem(): Trust {
  const root = factsOf(ROOT)?.uid ?? 0;
  return trustIn(0, (other) => other === 0 || other === root);
}

function trustIn(uid: number, owner: Trust['owner']): Trust {
  // On macOS no file tells who is in a group; those of its group 80 can become root.
  const group = (gid: number) =>
    process.platform === 'darwin' ? gid === 0 || gid === 80 : isPrivateGroup(gid, uid, owner);
  return { owner, group };
}

function isMountedIn(uid: number): boolean {
  const inContainer =
    existsSync('/.dockerenv') || existsSync('/run/.containerenv') || process.env.KUBERNETES_SERVICE_HOST !== undefined;
  return inContainer && !accountsIn(localAccounts().passwd).some((user) => user.uid === uid);
}

/** `/home/a can be written by other users (owner root, mode 0777)` */
export function exposureText({ path, by, uid, mode, kind }: Exposure): string {
  const owner = nameOf(uid);
  const bits = (mode & 0o7777).toString(8).padStart(4, '0');
  if (by === 'writers') return `${path} can be written by other users (owner ${owner}, mode ${bits})`;
  const us = nameOf(process.geteuid?.() ?? 0);
  return `${kind === 'link' ? 'the link ' : ''}${path} belongs to another user (owner ${owner}, mode ${bits}, and you are ${us})`;
}

/** The command that makes it private; absent where that is for its owner to say. */
export function exposureFix({ path, by }: Exposure): string | undefined {
  return by === 'writers' ? `chmod go-w ${shellQuoted(path)}` : undefined;
}

function nameOf(uid: number): string {
  const name = accountsIn(localAccounts().passwd).find((user) => user.uid === uid)?.name;
  return name === undefined ? `uid ${uid}` : name;
}

/**
 * Refuses paths that others can change, with the command that ends that.
 * @param because what follows of it, as a clause: `so nothing in it can be trusted`.
 * @param otherwise what can be done in place of the command: `set RDCTL_HOME to …`.
 * @throws RdError `ERR_NOT_PRIVATE` naming the path, its owner and mode.
 */
export function refuseExposed(
  paths: readonly string[],
  { because, otherwise }: { because: string; otherwise: string },
): void {
  if (process.platform === 'win32') return;
  const trust = trustOfUser();
  const seen = new Set<string>();
  for (const path of paths) {
    const exposure = exposureOf(path, trust, seen);
    if (!exposure) continue;
    const fix = exposureFix(exposure);
    throw new RdError('ERR_NOT_PRIVATE', `${exposureText(exposure)}, ${because}`, {
      advice: fix === undefined ? `${otherwise}.` : `Run \`${fix}\`. Otherwise: ${lowered(otherwise)}.`,
    });
  }
}

function lowered(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

/**
 * Refuses an installation whose directories, or whose files that say what is run, others can change. To be asked before anything there is
 * trusted, made or removed.
 * @throws RdError `ERR_NOT_PRIVATE`.
 */
export function requirePrivate(here: Places): void {
  const { data, config, logs, state, cache, snapshots, extensions, guestImages, bin, serviceLock, applyLock } = here;
  const { settingsFile, previousSettingsFile, stateFile, connectionFile } = here;
  const directories = [
    data,
    config,
    logs,
    state,
    cache,
    snapshots,
    extensions,
    guestImages,
    bin,
    serviceLock,
    applyLock,
  ];
  const files = [settingsFile, previousSettingsFile, stateFile, connectionFile];
  refuseExposed([...directories, join(state, 'drivers'), ...files], {
    because: `so nothing that ${PRODUCT.name} keeps there can be trusted`,
    otherwise:
      'Set RDCTL_HOME to a directory that is yours alone, with parents that are yours or of root (with sudo, `sudo -H` takes the home of root)',
  });
}
