import { randomBytes } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { copyFile, lstat, open, realpath, rename, rm, rmdir, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { RdError } from '../errors.ts';
import type { UserFileChange } from '../plan/user-files.ts';
import { run } from '../process/run.ts';
import { removeLeftovers } from '../storage/atomic-file.ts';
import { makeDirectory } from '../storage/directory.ts';
import { ioError, systemCode } from '../storage/io-error.ts';
import { exposureOf, exposureText } from '../storage/ownership.ts';
import { readRegular } from '../storage/regular-file.ts';

/** Files of a user that are larger than this are nothing that we would edit. */
const MOST_BYTES = 4 * 1024 * 1024;
/** Bytes: what is larger is not searched for something of ours. */
const MOST_SEARCHED = 256 * 1024 * 1024;
const ADVICE = 'Make it a plain file that you can write, or do by hand what is wanted there.';

/** The file operations of an edit; tests replace them to let one fail. */
export interface EditOperations {
  /** Makes a new file beside another one that has all of its attributes: mode, owner, access list, extended attributes. */
  copy(from: string, to: string): Promise<void>;
  /** Replaces the content of a file and flushes it; creates it with `mode` where it is missing. */
  write(path: string, data: string, mode: number): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;
}

export const editOperations: EditOperations = {
  async copy(from, to) {
    try {
      // Node has no interface to extended attributes and access lists; these two programs keep them.
      await run(process.platform === 'darwin' ? ['cp', '-p', from, to] : ['cp', '--preserve=all', '--', from, to]);
    } catch (error) {
      // Node's own copy fails with the code of the system, which says more than a program does.
      await rm(to, { force: true });
      await copyFile(from, to);
      throw error;
    }
  },
  async write(path, data, mode) {
    const handle = await open(path, 'w', mode);
    try {
      await handle.writeFile(data, 'latin1');
      await handle.sync();
    } finally {
      await handle.close();
    }
  },
  rename,
  unlink,
};

/** By file, what an edit would do to it. */
export type Rehearsal = Map<string, UserFileChange>;

/** What the tests replace, and what makes an edit a look ahead. */
export interface EditSurroundings {
  operations?: EditOperations;
  /** Nothing is changed then, whatever the edit is of: what it would do is put in here. */
  rehearsal?: Rehearsal;
}

export interface EditOptions extends EditSurroundings {
  /** Links may lead to files below these directories only; a directory that is itself a link counts where it leads. */
  within: readonly string[];
  /** The file was named by the caller, and who else may write there is the caller's matter. */
  shared?: boolean;
  /** Permission bits of a file that is created; the usual ones of the user (0666 less the mask) unless told. */
  mode?: number;
  /** What the edit is for, as a clause: `selects docker context rdctl`. */
  what?: string;
}

/**
 * Changes the text of a file that belongs to a user, so that at every instant it has the old or the new content. Texts are
 * latin1: each character is one byte. `change` gets `undefined` where there is no file and gives `undefined` where there
 * should be none; a text that it gives back as it got it causes no write.
 *
 * A symbolic link, in the place of the file or of a directory above it, is followed to the file, which is replaced where it is; the link
 * stays. Refused is what cannot be done without harm: links that lead in a circle, nowhere, or out of `within`; files with a second hard
 * link; what another user owns or can write, on the way there too; anything that is not a file.
 * @returns true when something was written or removed.
 * @throws RdError `ERR_IO` with the reason; the file is then as it was.
 */
export async function editUserFile(
  path: string,
  change: (text: string | undefined) => string | undefined,
  { within, shared = false, mode = 0o666, what = 'changes it', operations = editOperations, rehearsal }: EditOptions,
): Promise<boolean> {
  if (!shared) refuseExposedFile(path);
  const file = await followed(path, within);
  // A writer that was killed left one; nobody else writes such names.
  if (!rehearsal) await removeLeftovers(file);
  const found = await look(file);
  const before = found && (await read(file));
  const after = change(before);
  if (after === before) {
    // Of several edits of a file the last one counts: in a rehearsal each begins with what is there now.
    rehearsal?.delete(path);
    return false;
  }
  if (rehearsal) {
    const action = after === undefined ? 'delete' : found ? 'update' : 'create';
    rehearsal.set(path, { file: path, action, what });
  } else if (after === undefined) await attempt('remove', file, () => operations.unlink(file));
  else if (found) await replace(file, found, after, operations);
  else await create(file, after, mode, operations);
  return true;
}

/** Removes what a killed writer of a file left beside it, wherever its links lead, and also where there is no such file. */
export async function removeDrafts(path: string, { rehearsal }: EditSurroundings): Promise<void> {
  if (rehearsal || exposureOf(path)) return;
  const file = await realpath(path).catch(() => path);
  // Not worth an error: the file itself is whole.
  await removeLeftovers(file).catch(() => []);
}

/**
 * True when what we would take out is certainly not in a file, wherever its links lead: then it needs no edit, and nothing that
 * would forbid one matters. `mark` is latin1. What a killed writer left beside it goes, as with an edit.
 */
export async function isFreeOf(path: string, mark: string, around: EditSurroundings): Promise<boolean> {
  await removeDrafts(path, around);
  try {
    const facts = await stat(path);
    // We never make anything but files.
    if (!facts.isFile()) return true;
    return !(await readRegular(path, { follow: true, limit: MOST_SEARCHED })).includes(mark, 0, 'latin1');
  } catch (error) {
    return ['ENOENT', 'ENOTDIR', 'ELOOP'].includes(systemCode(error) ?? '');
  }
}

/** A link, or a directory on the way, that another user could change would make us write where that user wants it. */
function refuseExposedFile(path: string): void {
  const exposure = exposureOf(path);
  if (exposure) throw refused(path, exposureText(exposure));
}

/** Where the file really is, whichever part of its path is a link. */
async function followed(path: string, within: readonly string[]): Promise<string> {
  const target = await reached(path);
  if (target === path) return path;
  // A directory on the way may lie anywhere that is the user's own.
  if (!(await lstat(path).catch(() => undefined))?.isSymbolicLink()) return target;
  const roots = await Promise.all(within.map((root) => realpath(root).catch(() => root)));
  if (!roots.some((root) => target.startsWith(root.endsWith(sep) ? root : root + sep))) {
    throw refused(path, `it is a link to ${target}, which is outside of the home directory`);
  }
  return target;
}

/** The path without links. A file that is not there yet will be where its directory is. */
async function reached(path: string): Promise<string> {
  const there = await lstat(path).catch((cause: unknown) => {
    if (systemCode(cause) === 'ENOENT') return undefined;
    throw ioError('read', path, cause);
  });
  if (!there) return dirname(path) === path ? path : join(await reached(dirname(path)), basename(path));
  return realpath(path).catch((cause: unknown) => {
    if (systemCode(cause) === 'ELOOP') throw refused(path, 'it is a link that leads in a circle');
    if (systemCode(cause) === 'ENOENT') throw refused(path, 'it is a link that leads nowhere');
    throw ioError('follow', path, cause);
  });
}

/** The facts about a file that may be replaced; `undefined` where there is none. */
async function look(file: string): Promise<BigIntStats | undefined> {
  const facts = await lstat(file, { bigint: true }).catch((cause: unknown) => {
    if (systemCode(cause) === 'ENOENT') return undefined;
    throw ioError('read', file, cause);
  });
  if (!facts) return undefined;
  if (!facts.isFile()) throw refused(file, 'it is not a file');
  if (facts.nlink > 1n) throw refused(file, 'it has a second name (a hard link), which would keep the old content');
  if (facts.size > MOST_BYTES) throw refused(file, `it is larger than ${MOST_BYTES} bytes`);
  const own = process.getuid?.();
  if (own !== undefined && own !== 0 && facts.uid !== BigInt(own)) throw refused(file, 'it belongs to another user');
  return facts;
}

function read(file: string): Promise<string> {
  return attempt('read', file, async () => (await readRegular(file)).toString('latin1'));
}

async function replace(file: string, found: BigIntStats, text: string, operations: EditOperations): Promise<void> {
  const temporary = besides(file);
  await attempt('write', file, async () => {
    try {
      await operations.copy(file, temporary);
      await operations.write(temporary, text, 0o600);
      const made = await lstat(temporary, { bigint: true });
      if (made.uid !== found.uid || made.gid !== found.gid || made.mode !== found.mode) {
        throw refused(file, 'its owner and permissions cannot be kept');
      }
      // Somebody else may have written meanwhile; the instant that is left is as long as one system call.
      const now = await lstat(file, { bigint: true });
      if (now.ino !== found.ino || now.mtimeNs !== found.mtimeNs || now.size !== found.size) {
        throw refused(file, 'another program is changing it');
      }
      await operations.rename(temporary, file);
    } catch (error) {
      await unlink(temporary).catch(() => undefined);
      throw error;
    }
  });
}

async function create(file: string, text: string, mode: number, operations: EditOperations): Promise<void> {
  const temporary = besides(file);
  await attempt('create', file, async () => {
    await makeDirectory(dirname(file));
    try {
      await operations.write(temporary, text, mode);
      await operations.rename(temporary, file);
    } catch (error) {
      await unlink(temporary).catch(() => undefined);
      throw error;
    }
  });
}

/** How many directories would have to be made for a file. */
export async function missingDirectories(file: string): Promise<number> {
  let count = 0;
  for (let at = dirname(file); at !== dirname(at); at = dirname(at), count += 1) {
    const there = await stat(at).then(
      () => true,
      (error: unknown) => systemCode(error) !== 'ENOENT',
    );
    if (there) break;
  }
  return count;
}

/** Removes the directory of a file and those above it, `count` altogether, as long as they are empty. */
export async function removeEmptyDirectories(
  file: string,
  count: number,
  { rehearsal }: EditSurroundings,
): Promise<void> {
  if (rehearsal) return;
  let at = dirname(file);
  for (let left = count; left > 0; left -= 1, at = dirname(at)) {
    try {
      await rmdir(at);
    } catch {
      // Somebody uses it by now.
      return;
    }
  }
}

function besides(file: string): string {
  return join(dirname(file), `.${basename(file)}.${randomBytes(6).toString('hex')}.tmp`);
}

async function attempt<T>(deed: string, file: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof RdError) throw cause;
    const { message, advice = ADVICE } = ioError(deed, file, cause);
    const full = ['ENOSPC', 'EDQUOT'].includes(systemCode(cause) ?? '');
    throw new RdError('ERR_IO', message, { cause, advice: full ? advice : ADVICE });
  }
}

function refused(file: string, why: string): RdError {
  return new RdError('ERR_IO', `${file} was not changed: ${why}`, {
    advice: ADVICE,
  });
}
