import type { Dirent } from 'node:fs';
import { lstat, readdir, unlink } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { ioError, systemCode } from '../os/io-error.ts';
import { isThere } from '../os/regular-file.ts';
import { isExtensionName } from '../settings/extension-image.ts';
import { identityOf, type Places } from './places.ts';
import { settingsTarget } from './settings-file.ts';

/** A directory of an installation. */
export interface OwnPlace {
  path: string;
  /** True for our file names in a directory that others may share; absent if all of it is ours. */
  owns?: (name: string) => boolean;
}

/**
 * Returns all directories of an installation but its locks, largest data first. A directory is entirely ours only if it is named after us; below
 * `RDCTL_HOME`, and in a log directory set by a variable, a user may have files too.
 */
export function ownPlaces(places: Places, cache: boolean): OwnPlace[] {
  const { directory } = identityOf(places);
  const place = (path: string, owns: (name: string) => boolean): OwnPlace =>
    places.home === undefined && basename(path) === directory ? { path } : { path, owns };
  const all = [
    place(places.state, isOwnState),
    place(places.extensions, isExtension),
    place(places.logs, isLog),
    ...(cache ? [place(places.cache, (name) => name === 'downloads' || name === 'k3s')] : []),
    place(places.config, isOwnConfig),
    place(places.data, isOwnData(places)),
    ...(places.dropIn === undefined ? [] : [{ path: dirname(places.bin) }]),
  ];
  const whole = all.filter(({ owns }) => owns === undefined).map(({ path }) => path);
  const unique = all.filter(({ path }, index) => all.findIndex((other) => other.path === path) === index);
  return unique.filter(({ path }) => !whole.some((other) => path.startsWith(other + sep)));
}

/**
 * False when no service has ever run in these places, so that nothing there is known to be ours. Check before taking the lock, which
 * creates the evidence below `RDCTL_HOME`.
 */
export async function isInstalled({ home, dropInMarker, serviceLock, applyLock }: Places): Promise<boolean> {
  if (dropInMarker !== undefined) return isThere(dropInMarker);
  return home === undefined || (await isThere(serviceLock)) || (await isThere(applyLock));
}

/** Returns a predicate for file names that also matches partial writes and files that were set aside. */
function matcherOf(...patterns: RegExp[]): (name: string) => boolean {
  return withDrafts((own) => patterns.some((pattern) => pattern.test(own)));
}

function withDrafts(isOwn: (name: string) => boolean): (name: string) => boolean {
  return (name) => {
    const own = /^\.(.+)\.[0-9a-f]{12}\.tmp$/.exec(name)?.[1] ?? name.replace(/\.corrupt-[0-9TZ-]+$/, '');
    return isOwn(own);
  };
}

/** Probe file for testing whether the data directory supports cloning. */
export const SHARE_TRIAL = 'share-trial';

/** Returns a predicate for our names in the data directory. */
function isOwnData({
  connectionFile,
  backendLock,
  snapshots,
  snapshotKey,
  guestImages,
}: Places): (name: string) => boolean {
  const names = [connectionFile, backendLock, snapshots, snapshotKey, guestImages].map((path) => basename(path));
  return withDrafts((name) => name === SHARE_TRIAL || names.includes(name));
}

/** Our names in the state directory. */
const isOwnState = matcherOf(
  /^(?:state|settings\.(?:staged|written)|proven|transaction|first-run|restore|copy|covering|port-forwards|kept|before-apply-[0-9a-f]{16})\.json$/,
  /^history\.jsonl$/,
  /^(?:apply\.lock|copy\.json\.new|drivers|reserve|run|tokens)$/,
);
/** Our names in the configuration directory. */
const isOwnConfig = matcherOf(/^settings(?:\.previous|\.before-rdctl-[0-9TZ]+)?\.json$/, /^allowed-signers$/);
const isLog = matcherOf(
  /^service(?:\.\d+)?\.log$/,
  /^(?:background|service-output|dockerd|containerd|moby-containerd|moby-isolated|qemu|guest-ssh|guest-home)\.log(?:\.1)?$/,
);

/**
 * True for our names in the directory of extensions. Installed ones are named after their encoded image; see `src/features/extensions/directory.ts`.
 */
function isExtension(name: string): boolean {
  if (name.startsWith('.staged-')) return true;
  const id = name.replace(/^\.(?:old|gone)-/, '');
  const image = Buffer.from(id, 'base64url').toString('utf8');
  return isExtensionName(image) && Buffer.from(image).toString('base64url') === id;
}

/** Temporary names of `writeFileAtomic`. */
const DRAFT = /^\.(.+)\.[0-9a-f]{12}\.tmp$/;
/** Milliseconds after which a draft is stale: no single write of ours takes that long. */
const STALE = 3_600_000;

interface DraftPlace {
  directory: string;
  /** True for files that the drafts belong to. */
  of: (name: string) => boolean;
  /** Processes without the service lock write there, so only drafts older than any write are removed. */
  shared?: true;
}

/**
 * Removes leftovers of killed atomic writes in the directories of an installation. Call it while holding the service lock. Removes regular files with
 * our draft names only; follows no link but that of the settings file.
 * @returns the errors of drafts that could not be removed, which are harmless.
 */
export async function sweepDrafts(places: Places, now: number): Promise<Error[]> {
  const failures: Error[] = [];
  for (const { directory, of, shared } of await draftPlaces(places)) {
    for (const name of (await entries(directory)).filter((each) => each.isFile()).map((each) => each.name)) {
      const target = DRAFT.exec(name)?.[1] ?? daemonDraft(name);
      if (target === undefined || !of(target)) continue;
      const path = join(directory, name);
      try {
        if (shared && now - (await lstat(path)).mtimeMs < STALE) continue;
        await unlink(path);
      } catch (cause) {
        if (systemCode(cause) !== 'ENOENT') failures.push(ioError('remove', path, cause));
      }
    }
  }
  return failures;
}

/** Returns the file that a draft of a launcher record belongs to; its copies are written beside it under one name. */
function daemonDraft(name: string): string | undefined {
  return name === 'copy.json.new' ? 'copy.json' : undefined;
}

async function draftPlaces(places: Places): Promise<DraftPlace[]> {
  const any = () => true;
  const k3s = join(places.cache, 'k3s');
  const isMark = (name: string) => places.dropInMarker !== undefined && name === basename(places.dropInMarker);
  const isRollbackFile = (name: string) => name.startsWith('before-apply-') && isOwnState(name);
  return [
    { directory: places.state, of: (name) => isOwnState(name) && !isRollbackFile(name) },
    { directory: places.state, of: isRollbackFile, shared: true },
    { directory: places.tokens, of: (name) => name.endsWith('.json'), shared: true },
    { directory: places.config, of: isOwnConfig },
    ...(await linkedSettings(places)),
    { directory: places.data, of: isOwnData(places) },
    { directory: places.data, of: isMark, shared: true },
    { directory: places.bin, of: (name) => /^rdctl(?:\.cmd)?$/.test(name), shared: true },
    { directory: join(places.cache, 'downloads'), of: (name) => /^[0-9a-f]{64}\.json$/.test(name), shared: true },
    ...[k3s, ...(await directoriesIn(k3s))].map((directory) => ({ directory, of: any, shared: true as const })),
    ...(await driverDirectories(join(places.state, 'drivers'))).map((directory) => ({ directory, of: any })),
  ];
}

/** Returns the place of drafts of settings that a person keeps elsewhere: beside the target of the link. */
async function linkedSettings({ settingsFile }: Places): Promise<DraftPlace[]> {
  const file = await settingsTarget(settingsFile).then(
    (target) => target.file,
    () => settingsFile,
  );
  return file === settingsFile ? [] : [{ directory: dirname(file), of: (name) => name === basename(file) }];
}

/** Returns the directory of each driver, `run` in it and their direct children. Deeper levels belong to engines and containers. */
async function driverDirectories(drivers: string): Promise<string[]> {
  const directories: string[] = [];
  for (const driver of await directoriesIn(drivers)) {
    directories.push(driver, join(driver, 'run'), ...(await directoriesIn(join(driver, 'run'))));
  }
  return directories;
}

async function directoriesIn(directory: string): Promise<string[]> {
  return (await entries(directory)).filter((each) => each.isDirectory()).map(({ name }) => join(directory, name));
}

/** Returns the entries of a directory. Unreadable directories and targets of links have nothing to remove. */
async function entries(directory: string): Promise<Dirent[]> {
  const isOurs = await lstat(directory).then(
    (facts) => facts.isDirectory(),
    () => false,
  );
  return isOurs ? readdir(directory, { withFileTypes: true }).catch(() => []) : [];
}
