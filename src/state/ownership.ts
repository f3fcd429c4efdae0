// Synchronous and light: commands that take milliseconds check this before they trust a file.
import { lstatSync, readFileSync, readlinkSync } from 'node:fs';
import { posix } from 'node:path';
import { RdError } from '../errors.ts';
import { awaitDirectory } from '../os/awaited-directory.ts';
import { isContainer } from '../os/container.ts';
import { systemCode } from '../os/io-error.ts';
import { shellWord } from '../os/program.ts';
import { PRODUCT } from '../product.ts';
import type { Places } from './places.ts';

/** A component of a path, with its system attributes. */
export interface NameFacts {
  kind: 'directory' | 'link' | 'file';
  uid: number;
  gid: number;
  /** With or without the file type bits. */
  mode: number;
  /** This is the path itself, not one of its parents. */
  last?: true;
}

/** Trusted owners and groups. */
export interface Trust {
  /** True for an owner that is us, or has full control over us anyway. */
  owner(uid: number): boolean;
  /** True for a group whose only members are trusted owners. */
  group(gid: number): boolean;
  /** For paths run again after a boot: a boot empties directories such as `/tmp`, and then anyone can recreate their contents. */
  afterBoot?: true;
}

/** The reason that others can change the target of a path. */
export interface Exposure extends NameFacts {
  path: string;
  by: 'owner' | 'writers';
}

const { dirname, join } = posix;
const ROOT = '/';
const STICKY = 0o1000;
const MAX_LINKS = 40;

/**
 * Returns the exposure of one component, which needs a trusted owner, and no other writers. Parent directories with the sticky bit may be
 * world-writable (`/tmp`): only the owner of an entry can replace it. The mode of a link is meaningless.
 */
export function exposureBy({ kind, uid, gid, mode, last }: NameFacts, trust: Trust): Exposure['by'] | undefined {
  if (!trust.owner(uid)) return 'owner';
  const isForOwners = kind === 'directory' && !last && !trust.afterBoot && (mode & STICKY) !== 0;
  if (kind === 'link' || isForOwners) return undefined;
  return (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && !trust.group(gid)) ? 'writers' : undefined;
}

/**
 * Returns the first component of an absolute path that lets others change its target: every directory from the root on, every link and the
 * directories that it leads through, and the path itself. Undefined if it is safe. Missing components count as safe, because we will create them.
 * Always undefined on Windows, where modes are meaningless.
 * @param seen components already verified; added to.
 * @param onMissing called with the first missing component.
 */
export function exposureOf(
  path: string,
  trust: Trust = trustOfUser(),
  seen = new Set<string>(),
  onMissing?: (path: string) => void,
): Exposure | undefined {
  return findExposure(path, (facts) => exposureBy(facts, trust), seen, onMissing);
}

/**
 * Returns the first link on the way to a path that another user has made. Directories that others can write are ignored: the caller named the path.
 */
export function foreignLinkOn(path: string): Exposure | undefined {
  const { owner } = trustOfUser();
  return findExposure(path, ({ kind, uid }) => (kind === 'link' && !owner(uid) ? 'owner' : undefined));
}

function findExposure(
  path: string,
  judge: (facts: NameFacts) => Exposure['by'] | undefined,
  seen = new Set<string>(),
  onMissing?: (path: string) => void,
): Exposure | undefined {
  if (process.platform === 'win32') return undefined;
  const rest = ['', ...path.split(ROOT).filter(Boolean)];
  let links = 0;
  for (let at: string = ROOT; rest.length > 0; ) {
    const name = rest.shift();
    const next = name === '..' ? dirname(at) : at === ROOT ? `/${name}` : `${at}/${name}`;
    const known = rest.length > 0 && seen.has(next);
    if (!known) {
      const facts = factsOf(next);
      if (!facts) {
        onMissing?.(next);
        return undefined;
      }
      const named: NameFacts = rest.length === 0 ? { ...facts, last: true } : facts;
      const by = judge(named);
      if (by) return { ...named, path: next, by };
      if (facts.kind === 'link') {
        links += 1;
        // Opening it fails with the reason.
        if (links > MAX_LINKS) return undefined;
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

/** Returns the facts of an entry; empty for a missing or unreadable one, whose opening fails with the reason. */
function factsOf(path: string): NameFacts | undefined {
  try {
    // Most homes lack some entry, and making an error takes longer than the lookup.
    const facts = lstatSync(path, { throwIfNoEntry: false });
    if (!facts) return undefined;
    const { uid, gid, mode } = facts;
    return { kind: facts.isSymbolicLink() ? 'link' : facts.isDirectory() ? 'directory' : 'file', uid, gid, mode };
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined) throw error;
    return undefined;
  }
}

/** The system's account files as text. */
export interface Accounts {
  passwd: string;
  group: string;
}

/** Returns the local accounts, without those of a directory service. */
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
 * True for a group whose only members are accepted by `owner`: root's group, and the user-private groups of systems with a umask of 002. A
 * group missing in the files counts as user-private when its number equals the user's.
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
 * Returns the trust of a user: the user, root, and the owner of the root directory, who can replace everything (not root inside a user namespace).
 * For root in a container, also an owner without an account there: nothing in the container runs as that user, and the host mounted it.
 */
export function trustOfUser(): Trust {
  const uid = process.geteuid?.() ?? 0;
  const root = factsOf(ROOT)?.uid ?? 0;
  const owner = (other: number) => other === uid || other === 0 || other === root || (uid === 0 && isMountedIn(other));
  return trustIn(uid, owner);
}

/** Returns the trust of the system: only the administrator of the computer. */
export function trustOfSystem(): Trust {
  const root = factsOf(ROOT)?.uid ?? 0;
  return trustIn(0, (other) => other === 0 || other === root);
}

function trustIn(uid: number, owner: Trust['owner']): Trust {
  // macOS has no file with group members; members of its group 80 can become root.
  const group = (gid: number) =>
    process.platform === 'darwin' ? gid === 0 || gid === 80 : isPrivateGroup(gid, uid, owner);
  return { owner, group };
}

function isMountedIn(uid: number): boolean {
  return isContainer() && !accountsIn(localAccounts().passwd).some((user) => user.uid === uid);
}

/** Formats `/home/a can be written by other users (owner root, mode 0777)`. */
export function exposureText({ path, by, uid, mode, kind }: Exposure): string {
  const owner = nameOf(uid);
  const bits = (mode & 0o7777).toString(8).padStart(4, '0');
  if (by === 'writers') return `${path} can be written by other users (owner ${owner}, mode ${bits})`;
  const us = nameOf(process.geteuid?.() ?? 0);
  return `${kind === 'link' ? 'the link ' : ''}${path} belongs to another user (owner ${owner}, mode ${bits}, and you are ${us})`;
}

/** Returns the command that makes the path private; undefined if only its owner can, and for a directory that is meant for everyone. */
export function exposureFix({ path, by, kind, mode }: Exposure): string | undefined {
  const isMeant = kind === 'directory' && (mode & STICKY) !== 0;
  return by === 'writers' && !isMeant ? `chmod go-w ${shellWord(path)}` : undefined;
}

function nameOf(uid: number): string {
  const name = accountsIn(localAccounts().passwd).find((user) => user.uid === uid)?.name;
  return name === undefined ? `uid ${uid}` : name;
}

interface Refusal {
  /** The consequence, as a clause: `so nothing in it can be trusted`. */
  because: string;
  /** An alternative to the command: `Set RDCTL_HOME to …`. */
  otherwise: string;
  trust?: Trust;
  /** Called with the first missing component of a path. */
  onMissing?: (path: string) => void;
}

/**
 * Refuses paths that others can change, and names the command that fixes it.
 * @throws RdError `ERR_NOT_PRIVATE` naming the path, its owner and mode.
 */
export function refuseExposed(
  paths: readonly string[],
  { because, otherwise, trust = trustOfUser(), onMissing }: Refusal,
): void {
  if (process.platform === 'win32') return;
  const seen = new Set<string>();
  for (const path of paths) {
    const exposure = exposureOf(path, trust, seen, onMissing);
    if (!exposure) continue;
    const fix = exposureFix(exposure);
    throw new RdError('ERR_NOT_PRIVATE', `${exposureText(exposure)}, ${because}`, {
      advice: fix === undefined ? `${otherwise}.` : `Run \`${fix}\`. Otherwise: ${lowerFirst(otherwise)}.`,
    });
  }
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

/**
 * Refuses an installation if others can change its directories, or the files that decide what is run. Call it before anything there is trusted,
 * created or removed.
 * @throws RdError `ERR_NOT_PRIVATE`.
 */
export function requirePrivate(places: Places): void {
  const bases = [places.data, places.config, places.logs, places.state, places.cache];
  const parts = [
    places.snapshots,
    places.extensions,
    places.guestImages,
    places.bin,
    places.serviceLock,
    places.applyLock,
    places.tokens,
  ];
  const files = [places.settingsFile, places.previousSettingsFile, places.stateFile, places.connectionFile];
  refuseExposed([...bases, ...parts, join(places.state, 'drivers'), ...files], {
    because: `so files that ${PRODUCT.name} keeps there cannot be trusted`,
    otherwise:
      'Set RDCTL_HOME to a directory that only you can write, with parents owned by you or root (with sudo, `sudo -H` uses the home of root)',
    onMissing: awaitDirectory,
  });
}
