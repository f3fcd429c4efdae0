import { randomBytes } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { copyFile, lstat, open, realpath, rename, rm, rmdir, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { RdError } from '../../errors.ts';
import { removeLeftovers } from '../../os/atomic-file.ts';
import { makeDirectory } from '../../os/directory.ts';
import { ioError, systemCode } from '../../os/io-error.ts';
import { readRegular } from '../../os/regular-file.ts';
import { run } from '../../os/run.ts';
import type { UserFileChange } from '../../plan/user-files.ts';
import { fileBehind, REPLACE_ADVICE, refusalError, replaceableFacts } from '../../state/linked-file.ts';
import { exposureOf } from '../../state/ownership.ts';

/** Maximum bytes of a file that is searched for our content. */
const MAX_SEARCHED = 256 * 1024 * 1024;

/** The file operations of an edit; tests replace them to inject failures. */
export interface EditOperations {
  /** Creates a file with all attributes of another one: mode, owner, access list, extended attributes. */
  copy(from: string, to: string): Promise<void>;
  /** Replaces the content of a file and flushes it; creates a missing one with `mode`. */
  write(path: string, data: string, mode: number): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;
}

export const editOperations: EditOperations = {
  async copy(from, to) {
    try {
      // Node has no API for extended attributes and access lists; these two programs preserve them.
      await run(process.platform === 'darwin' ? ['cp', '-p', from, to] : ['cp', '--preserve=all', '--', from, to]);
    } catch (error) {
      // Node's own copy then fails with a system error code, which is more precise.
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

/** The planned result of an edit, by file. */
export type DryRun = Map<string, UserFileChange>;

/** Test replacements, and the switch that turns an edit into a dry run. */
export interface EditContext {
  operations?: EditOperations;
  /** Set for a dry run: nothing is changed, and the planned result is recorded here. */
  dryRun?: DryRun;
}

export interface EditOptions extends EditContext {
  /** Directories below which links may lead; a directory that is itself a link counts by its target. */
  within: readonly string[];
  /** Whether the caller named the file and is responsible for who else may write there. */
  shared?: boolean;
  /** Mode of a created file; by default 0666 less the umask. */
  mode?: number;
  /** Purpose of the edit, as a clause: `selects docker context rdctl`. */
  what?: string;
}

/**
 * Edits a text file of a user; at every instant it has the old or the new content. Texts are latin1: each character is one byte. `change` gets
 * `undefined` for a missing file and returns `undefined` to delete it, with the directories that are empty then; an unchanged text causes no write.
 *
 * A symbolic link, of the file or of a parent directory, is followed: the target is replaced, and the link stays. Refuses unsafe edits: links that
 * form a loop, dangle, or lead out of `within`; files with a second hard link; files or parents that another user owns or can write; anything that is
 * not a file.
 * @returns true when something was written or removed.
 * @throws RdError `ERR_IO` with the reason; the file is then unchanged.
 */
export async function editUserFile(
  path: string,
  change: (text: string | undefined) => string | undefined,
  { within, shared = false, mode = 0o666, what = 'changes it', operations = editOperations, dryRun }: EditOptions,
): Promise<boolean> {
  const file = await fileBehind(path, { within, shared });
  // Leftovers of a killed writer; nothing else uses such names.
  if (!dryRun) await removeLeftovers(file);
  const existing = await replaceableFacts(file);
  const before = existing && (await read(file));
  const after = change(before);
  if (after === before) {
    // The last of several edits of a file counts: in a dry run each starts from the current content.
    dryRun?.delete(path);
    return false;
  }
  if (dryRun) {
    const action = after === undefined ? 'delete' : existing ? 'update' : 'create';
    dryRun.set(path, { file: path, action, what });
  } else if (after === undefined) {
    await attempt('remove', file, async () => {
      if (existing) await expectUnchanged(file, existing);
      await operations.unlink(file);
    });
    await removeEmptyDirectories(path, within);
  } else if (existing) await replace(file, existing, after, operations);
  else await create(file, after, mode, operations);
  return true;
}

/** Removes the leftovers of a killed writer beside a file, wherever its links lead, even when the file is missing. */
export async function removeDrafts(path: string, { dryRun }: EditContext): Promise<void> {
  if (dryRun || exposureOf(path)) return;
  const file = await realpath(path).catch(() => path);
  // A failure is ignored, because the file itself is intact.
  await removeLeftovers(file).catch(() => []);
}

/**
 * True when a file certainly lacks our content, wherever its links lead: then it needs no edit, and nothing that would forbid one matters. `mark` is
 * latin1. Removes the leftovers of a killed writer.
 */
export async function isFreeOf(path: string, mark: string, context: EditContext): Promise<boolean> {
  await removeDrafts(path, context);
  try {
    const facts = await stat(path);
    // Anything else is not ours: we only ever create files.
    if (!facts.isFile()) return true;
    return !(await readRegular(path, { follow: true, limit: MAX_SEARCHED })).includes(mark, 0, 'latin1');
  } catch (error) {
    return ['ENOENT', 'ENOTDIR', 'ELOOP'].includes(systemCode(error) ?? '');
  }
}

function read(file: string): Promise<string> {
  return attempt('read', file, async () => (await readRegular(file)).toString('latin1'));
}

async function replace(file: string, existing: BigIntStats, text: string, operations: EditOperations): Promise<void> {
  const temporary = temporaryBeside(file);
  await attempt('write', file, async () => {
    try {
      await operations.copy(file, temporary);
      await operations.write(temporary, text, 0o600);
      const made = await lstat(temporary, { bigint: true });
      if (made.uid !== existing.uid || made.gid !== existing.gid || made.mode !== existing.mode) {
        throw refusalError(file, 'its owner and permissions cannot be kept');
      }
      await expectUnchanged(file, existing);
      await operations.rename(temporary, file);
    } catch (error) {
      await unlink(temporary).catch(() => undefined);
      throw error;
    }
  });
}

/** Throws if another program has written meanwhile; the remaining window is one system call. */
async function expectUnchanged(file: string, existing: BigIntStats): Promise<void> {
  const now = await lstat(file, { bigint: true });
  if (now.ino !== existing.ino || now.mtimeNs !== existing.mtimeNs || now.size !== existing.size) {
    throw refusalError(file, 'another program is changing it');
  }
}

async function create(file: string, text: string, mode: number, operations: EditOperations): Promise<void> {
  const temporary = temporaryBeside(file);
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

/** Removes the directory of a file and its parents below `roots`, as long as they are empty. */
export async function removeEmptyDirectories(file: string, roots: readonly string[]): Promise<void> {
  for (let at = dirname(file); roots.some((root) => at.startsWith(root + sep)); at = dirname(at)) {
    const isRemoved = await rmdir(at).then(
      () => true,
      () => false,
    );
    if (!isRemoved) return;
  }
}

function temporaryBeside(file: string): string {
  return join(dirname(file), `.${basename(file)}.${randomBytes(6).toString('hex')}.tmp`);
}

async function attempt<T>(action: string, file: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof RdError) throw cause;
    const { message, advice = REPLACE_ADVICE } = ioError(action, file, cause);
    const full = ['ENOSPC', 'EDQUOT'].includes(systemCode(cause) ?? '');
    throw new RdError('ERR_IO', message, { cause, advice: full ? advice : REPLACE_ADVICE });
  }
}
