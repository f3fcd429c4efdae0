import { type BigIntStats, constants } from 'node:fs';
import { access, lstat, realpath } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { RdError } from '../errors.ts';
import { ioError, systemCode } from '../os/io-error.ts';
import { exposureOf, exposureText } from './ownership.ts';

// Files that a person keeps, perhaps as links to dotfiles: settings.json, and those of other programs. Everything else of ours is opened
// without following links.

/** Bytes: we replace no larger ones. */
const MAX_BYTES = 4 * 1024 * 1024;
/** What to do about a file that is not replaced. */
export const REPLACE_ADVICE = 'Make it a plain file that you can write, or make the change yourself.';

/** Where links may lead. */
export interface LinkRules {
  /** Links may lead only below these directories; a directory that is itself a link counts by its target. */
  within: readonly string[];
  /** The caller named the file and is responsible for who else may write there. */
  shared?: boolean;
}

/**
 * The file to replace in order to change this one: its target, whichever part of the path is a link, so that the link stays.
 * @throws RdError `ERR_IO` for a link that forms a loop, dangles, leads out of `within` or to a read-only file, and for a path that another
 * user can write.
 */
export async function fileBehind(path: string, { within, shared = false }: LinkRules): Promise<string> {
  if (!shared) refuseExposedFile(path);
  const target = await resolvedPath(path);
  if (target === path) return path;
  // A parent directory may lead anywhere that belongs to the user.
  if (!(await isLink(path))) return target;
  const roots = await Promise.all(within.map((root) => realpath(root).catch(() => root)));
  if (!roots.some((root) => target.startsWith(root.endsWith(sep) ? root : root + sep))) {
    throw refusalError(path, `it is a link to ${target}, which is outside of the home directory`);
  }
  if (await isReadOnly(target)) throw refusalError(path, `it is a link to ${target}, which is read-only`);
  return target;
}

/** Whether the last part of the path is a symbolic link. */
export async function isLink(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined))?.isSymbolicLink() ?? false;
}

/**
 * Facts about a file that may be replaced; `undefined` for a missing one. The path has no links.
 * @throws RdError `ERR_IO` for a file with a second hard link, one that another user owns, and anything that is not a file.
 */
export async function replaceableFacts(file: string): Promise<BigIntStats | undefined> {
  const facts = await lstat(file, { bigint: true }).catch((cause: unknown) => {
    if (systemCode(cause) === 'ENOENT') return undefined;
    throw ioError('read', file, cause);
  });
  if (!facts) return undefined;
  if (!facts.isFile()) throw refusalError(file, 'it is not a file');
  if (facts.nlink > 1n)
    throw refusalError(file, 'it has a second name (a hard link), which would keep the old content');
  if (facts.size > MAX_BYTES) throw refusalError(file, `it is larger than ${MAX_BYTES} bytes`);
  const own = process.getuid?.();
  if (own !== undefined && own !== 0 && facts.uid !== BigInt(own))
    throw refusalError(file, 'it belongs to another user');
  return facts;
}

/** The error for a file that stays as it is. */
export function refusalError(file: string, why: string): RdError {
  return new RdError('ERR_IO', `${file} was not changed: ${why}`, { advice: REPLACE_ADVICE });
}

/** A link or parent directory that another user can change would redirect our write. */
function refuseExposedFile(path: string): void {
  const exposure = exposureOf(path);
  if (exposure) throw refusalError(path, exposureText(exposure));
}

/** The path without links. A missing file is resolved through its directory. */
async function resolvedPath(path: string): Promise<string> {
  const there = await lstat(path).catch((cause: unknown) => {
    if (systemCode(cause) === 'ENOENT') return undefined;
    throw ioError('read', path, cause);
  });
  if (!there) return dirname(path) === path ? path : join(await resolvedPath(dirname(path)), basename(path));
  return realpath(path).catch((cause: unknown) => {
    if (systemCode(cause) === 'ELOOP') throw refusalError(path, 'it is a link that leads in a circle');
    if (systemCode(cause) === 'ENOENT') throw refusalError(path, 'it is a dangling symbolic link');
    throw ioError('follow', path, cause);
  });
}

/** Root can write everything, but a read-only file was meant to stay unchanged. */
async function isReadOnly(file: string): Promise<boolean> {
  const facts = await lstat(file).catch(() => undefined);
  if (!facts?.isFile()) return false;
  if ((facts.mode & 0o222) === 0) return true;
  return access(file, constants.W_OK).then(
    () => false,
    () => true,
  );
}
