import { isDeepStrictEqual } from 'node:util';
import type { SharedDirectories, SharedDirectory } from '../../../driver.ts';
import { isWithin, type Share } from './directories.ts';
import { MOUNTERS } from './mount-types.ts';
import { type DirectoryRecord, isShared, type MountRecord, type MountsRecord } from './record.ts';

function isSameShare(one: Share, other: Share): boolean {
  const members = ({ id, path, real, mode, hidden }: Share) => ({
    id,
    path,
    real,
    hidden,
    isReadOnly: mode === 'read-only',
  });
  return isDeepStrictEqual(members(one), members(other));
}

/** Returns the shares that go away or change when these directories come next, and those in them, which have to be mounted again. */
export function leavingShares(shares: readonly MountRecord[], next: readonly DirectoryRecord[]): MountRecord[] {
  const stays = (share: MountRecord) => next.some((other) => isShared(other) && isSameShare(share, other));
  return withInner(
    shares.filter((share) => !stays(share)),
    shares,
  );
}

/** Returns the directories, marked as mounted if a share that stays is. */
export function withMounted(
  directories: readonly DirectoryRecord[],
  staying: readonly MountRecord[],
): DirectoryRecord[] {
  return directories.map((each) =>
    isShared(each) && staying.some((share) => share.mounted && isSameShare(share, each))
      ? { ...each, mounted: true }
      : each,
  );
}

/** Returns the chosen shares and those in them, in the order of `shares`. */
export function withInner(chosen: readonly Share[], shares: readonly MountRecord[]): MountRecord[] {
  return shares.filter(({ real }) => chosen.some((outer) => isWithin(real, outer.real)));
}

/** Returns the shares whose changes on this host are reported. Directories in them that are shares of their own are left out. */
export function notifying(shares: readonly MountRecord[]): Share[] {
  return shares.flatMap((share) => {
    if (share.mode !== 'writable-notify') return [];
    const inner = shares.filter(({ id, real }) => id !== share.id && isWithin(real, share.real));
    return { ...share, hidden: [...share.hidden, ...inner.map(({ real }) => real)] };
  });
}

/** Tells if a path of a share is in the guest's own file system or in another share. */
export function placeOf(path: string, share: Share, shares: readonly Share[]): 'guest' | 'share' {
  const isInOther = shares.some(
    (other) => other.id !== share.id && (isWithin(path, other.real) || isWithin(path, other.path)),
  );
  return isInOther ? 'share' : 'guest';
}

/** Returns the shares that QEMU itself opens for the guest. */
export function openedByQemu(record: MountsRecord | undefined): Share[] {
  const isDevice = record?.type !== undefined && MOUNTERS[record.type].daemon === undefined;
  return isDevice ? record.directories.filter(isShared) : [];
}

/** Returns the shared directories; the first is the home directory. */
export function sharedDirectories({ type, directories }: MountsRecord): SharedDirectories {
  const by = type ?? '';
  const mounts = directories.map((directory): SharedDirectory => {
    if (!isShared(directory)) return directory;
    return { path: directory.path, mode: directory.mode, by };
  });
  const [home] = directories;
  if (home !== undefined && isShared(home)) return { path: home.path, by, mounts };
  const missing = home !== undefined && 'missing' in home ? home.missing : 'the profile does not share it';
  return { missing, mounts };
}
