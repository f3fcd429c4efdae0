import { type BigIntStats, constants } from 'node:fs';
import { access, lstat, realpath } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { RdError } from '../errors.ts';
import { ioError, systemCode } from '../os/io-error.ts';
import { exposureOf, exposureText } from './ownership.ts';

// Files that a person keeps, perhaps as links to dotfiles: settings.json, and those of other programs. All our other files are opened without
// following links.

/** Maximum bytes of a file that is replaced. */
const MAX_BYTES = 4 * 1024 * 1024;
/** Advice for a file that is not replaced. */
export const REPLACE_ADVICE = 'Make it a plain file that you can write, or make the change yourself.';

/** The permitted targets of links. */
export interface LinkRules {
  /** Links may lead only below these directories; a directory that is itself a link counts by its target. */
  within: readonly string[];
  /** The caller named the file and is responsible for who else may write there. */
  shared?: boolean;
}

/**
 * Returns the file to replace in order to change this one: its target, whichever part of the path is a link, so that the link stays.
 * @throws RdError `ERR_IO` for a link that forms a loop, dangles, leads out of `within` or to a read-only file, and for a path that another user can
 * write.
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

/** True if the last part of the path is a symbolic link. */
export async function isLink(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined))?.isSymbolicLink() ?? false;
}

/**
 * Returns facts about a file that may be replaced, or undefined if it is missing. The path has no links.
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

/** Returns the error for a file that is not replaced. */
export function refusalError(file: string, why: string): RdError {
  return new RdError('ERR_IO', `${file} was not changed: ${why}`, { advice: REPLACE_ADVICE });
}

/** Refuses a file whose link or parent directory another user can change, because that would redirect our write. */
function refuseExposedFile(path: string): void {
  const exposure = exposureOf(path);
  if (exposure) throw refusalError(path, exposureText(exposure));
}

/** Returns the path without links. A missing file is resolved through its directory. */
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

/** True for a read-only file. Root can write everything, but such a file was meant to stay unchanged. */
async function isReadOnly(file: string): Promise<boolean> {
  const facts = await lstat(file).catch(() => undefined);
  if (!facts?.isFile()) return false;
  if ((facts.mode & 0o222) === 0) return true;
  return access(file, constants.W_OK).then(
    () => false,
    () => true,
  );
}
