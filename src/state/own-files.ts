import { basename, dirname, sep } from 'node:path';
import { isThere } from '../os/presence.ts';
import { isExtensionName } from '../settings/extension-image.ts';
import type { Places } from './places.ts';
import { identityOf } from './places.ts';

/** Directories of an installation. */
export interface OwnPlace {
  path: string;
  /** Our file names in a directory that others may share; absent where all of it is ours. */
  owns?: (name: string) => boolean;
}

/**
 * All of an installation but its locks, largest data first. A directory is entirely ours only if it is named after us; below `RDCTL_HOME`,
 * and in a log directory set by a variable, a user may have files too.
 */
export function ownPlaces(here: Places, cache: boolean): OwnPlace[] {
  const { directory } = identityOf(here);
  const place = (path: string, owns: (name: string) => boolean): OwnPlace =>
    here.home === undefined && basename(path) === directory ? { path } : { path, owns };
  const all = [
    place(here.state, isOwnState),
    place(here.extensions, isExtension),
    place(here.logs, isLog),
    ...(cache ? [place(here.cache, (name) => name === 'downloads' || name === 'k3s')] : []),
    place(here.config, isOwnConfig),
    place(here.data, isOwnData(here)),
    ...(here.dropIn === undefined ? [] : [{ path: dirname(here.bin) }]),
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

/** Also matches partial writes and files that were set aside. */
function named(...patterns: RegExp[]): (name: string) => boolean {
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

/** In the data directory. */
export function isOwnData({ connectionFile, backendLock, snapshots, guestImages }: Places): (name: string) => boolean {
  const names = [connectionFile, backendLock, snapshots, guestImages].map((path) => basename(path));
  return withDrafts((name) => name === SHARE_TRIAL || names.includes(name));
}

/** In the state directory. */
export const isOwnState = named(
  /^(?:state|first-run|restore|copy|port-forwards|before-apply-[0-9a-f]{16})\.json$/,
  /^(?:apply\.lock|copy\.json\.new|drivers|reserve|run)$/,
);
/** In the configuration directory. */
export const isOwnConfig = named(/^settings(?:\.previous|\.before-rdctl-[0-9TZ]+)?\.json$/);
const isLog = named(
  /^service(?:\.\d+)?\.log$/,
  /^(?:background|service-output|dockerd|containerd|moby-containerd|moby-isolated|qemu|guest-ssh|guest-home)\.log(?:\.1)?$/,
);

/** Installed ones are named after their encoded image; see `src/features/extensions/directory.ts`. */
function isExtension(name: string): boolean {
  if (name.startsWith('.staged-')) return true;
  const id = name.replace(/^\.(?:old|gone)-/, '');
  const image = Buffer.from(id, 'base64url').toString('utf8');
  return isExtensionName(image) && Buffer.from(image).toString('base64url') === id;
}
