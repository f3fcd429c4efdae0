import { existsSync, realpathSync, type Stats } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { RdError } from '../../src/errors.ts';
import { escapeHidden } from '../../src/settings/printable.ts';
import type { Io } from '../command.ts';
import { quote, usage } from './values.ts';

export interface OutFile {
  /** Permission bits. An existing file keeps its own bits if they are stricter. */
  mode: number;
  /** Whether to ignore the umask. */
  exact?: true;
  /** Whether to replace an existing file instead of failing. */
  replace: boolean;
}

/**
 * Returns the absolute path given to `--out-file` or a similar flag; undefined without it.
 * @throws RdError `ERR_USAGE` for an empty name, for `-`, and for a directory name: `team.yaml/` is not the file `team.yaml`, although path
 *   resolution would drop the slash.
 */
export function outFilePath<T extends string | undefined>(
  name: T,
  { cwd, platform }: Pick<Io, 'cwd' | 'platform'>,
  flag = 'out-file',
): T | string {
  if (name === undefined) return name;
  if (name === '') throw usage(`--${flag} requires a non-empty name`);
  if (name === '-') throw usage(`--${flag} "-" is not a file name`, 'For a file named "-", use ./-');
  if ((platform === 'win32' ? /(?:^|[\\/])\.{0,2}$/ : /(?:^|\/)\.{0,2}$/).test(name)) {
    throw usage(`--${flag} ${quote(name)} names a directory; specify a file`);
  }
  return resolve(cwd, name);
}

/**
 * Writes an output file atomically. A target that is not a regular file, such as a device, is written in place; a
 * symbolic link is followed, but not one of another user.
 * @returns true when another file was replaced.
 * @throws RdError `ERR_NOT_PRIVATE` for a link of another user; `ERR_IO`, including for a missing parent directory, which is a typo in the name.
 */
export async function writeOutFile(path: string, data: string | Uint8Array, options: OutFile): Promise<boolean> {
  const [replaced = false] = await writeOutFiles([{ path, data }], options);
  return replaced;
}

/**
 * Writes several files together. All are staged beside their destinations before the first rename, so a full disk
 * leaves them untouched; a crash between two renames leaves the first new and the rest old.
 * @returns for each file, true when it replaced another one.
 */
export async function writeOutFiles(
  files: readonly { path: string; data: string | Uint8Array }[],
  { mode, exact, replace }: OutFile,
): Promise<boolean[]> {
  const [{ chmod, lstat, realpath, writeFile }, { fileOperations, writeFilesAtomic }] = await Promise.all([
    import('node:fs/promises'),
    import('../../src/os/atomic-file.ts'),
  ]);
  const operations = {
    ...fileOperations,
    mkdir: async () => undefined,
    async writeNew(temporary: string, content: string | Uint8Array, bits: number) {
      await fileOperations.writeNew(temporary, content, bits);
      if (exact) await chmod(temporary, bits);
    },
  };
  const replaced: boolean[] = [];
  const plain: { path: string; data: string | Uint8Array; mode: number }[] = [];
  const inPlace: { path: string; data: string | Uint8Array }[] = [];
  for (const file of files) {
    const { path, data } = file;
    const found = await lstat(path).catch(() => undefined);
    await refuseForeignLink(path);
    if (found && !replace) {
      throw new RdError('ERR_IO', `${path} already exists`, { advice: 'Choose another name, or add --force.' });
    }
    const reached = found && (await statTarget(path));
    replaced.push(reached?.isFile() ?? false);
    if (reached && !reached.isFile()) inPlace.push(file);
    else {
      // Only a link that was found is followed; one that appeared meanwhile is replaced.
      const target = found?.isSymbolicLink() ? await realpath(path) : path;
      plain.push({ path: target, data, mode: mode & (reached?.mode ?? 0o777) });
    }
  }
  for (const { path, data } of inPlace) {
    await writeFile(path, data).catch(async (cause: unknown) => {
      throw await outFileError(path, cause);
    });
  }
  await writeFilesAtomic(plain, { operations }).catch(async (cause: unknown) => {
    // With several files, the error names the one that failed.
    throw await outFileError(files.length === 1 ? files[0]?.path : undefined, cause);
  });
  return replaced;
}

/**
 * Refuses a link of another user. In a directory for everyone, such as `/tmp`, it may lead to any file of the user who writes. Throws
 * `ERR_NOT_PRIVATE`.
 */
export async function refuseForeignLink(path: string): Promise<void> {
  const { exposureText, foreignLinkOn } = await import('../../src/state/ownership.ts');
  const link = foreignLinkOn(path);
  if (!link) return;
  throw new RdError('ERR_NOT_PRIVATE', `could not write ${path}: ${exposureText(link)}, and may lead to any file`, {
    advice: 'Choose another path, best in a directory that only you can write.',
  });
}

/** Stat of the path, following links. */
async function statTarget(path: string): Promise<Stats> {
  const { stat } = await import('node:fs/promises');
  return stat(path).catch((cause: unknown) => {
    throw new RdError('ERR_IO', `could not write ${path}: it is a dangling symbolic link`, {
      cause,
      advice: 'Remove the link, or choose another path.',
    });
  });
}

/** Returns the error of an output file. The storage layer's advice concerns our own directories and does not apply here. */
async function outFileError(path: string | undefined, failure: unknown): Promise<RdError> {
  const { ioError, systemCode } = await import('../../src/os/io-error.ts');
  const { message, cause, advice } = ioError('write', path ?? '', failure);
  const code = systemCode(cause);
  if (code === 'ENOENT' && path !== undefined) {
    return new RdError('ERR_IO', `could not write ${path}: directory ${dirname(path)} does not exist`, {
      cause,
      advice: 'Create it first, or choose another path.',
    });
  }
  const ours = advice?.includes('RDCTL_HOME') ?? false;
  return new RdError('ERR_IO', message, {
    cause,
    ...(ours ? { advice: 'Choose a writable path.' } : advice === undefined ? {} : { advice }),
  });
}

/** Maximum bytes read from standard input, above the request size limit. */
const LIMIT = 16 * 1024 * 1024;

/** Reads the `--input` file; `-` is standard input. Throws `ERR_IO` with the wording of Rancher Desktop's `rdctl`. */
export async function readInput(file: string, io: Pick<Io, 'cwd' | 'readStdin'>): Promise<Buffer> {
  if (file === '-') {
    const bytes = await io.readStdin(LIMIT);
    if (bytes.length <= LIMIT) return bytes;
    throw new RdError('ERR_IO', 'standard input exceeds 16 MiB');
  }
  try {
    return await readFile(resolve(io.cwd, file));
  } catch (cause) {
    throw openError(file, cause);
  }
}

/** Returns the error for an unreadable `--input` file, worded as in Rancher Desktop's `rdctl`. */
export function openError(file: string, cause: unknown): RdError {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  return new RdError('ERR_IO', `open ${escapeHidden(file)}: ${REASONS[String(code)] ?? String(code)}`, { cause });
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or directory',
  EACCES: 'permission denied',
  EISDIR: 'is a directory',
  ENOTDIR: 'not a directory',
};

/**
 * Returns the path of the profile schema for editors, written to the first line of a new profile. Relative when the file is in or beside the package
 * directory, so that a checkout can be moved. Undefined if the program has no schema beside it.
 */
export function schemaAddress(io: Io, path: string | undefined): string | undefined {
  const root = packageRoot(io);
  if (root === undefined) return undefined;
  const schema = join(root, 'schemas', 'profile.json');
  const way = path === undefined ? schema : relative(dirname(path), schema);
  return isAbsolute(way) || way.startsWith('../..') ? schema : way;
}

/** Returns the directory of this package, derived from the running program; undefined when it runs outside of one. */
export function packageRoot({ self }: Pick<Io, 'self'>): string | undefined {
  const script = self.at(-1);
  if (script === undefined || !existsSync(script)) return undefined;
  for (let at = dirname(realpathSync(script)); ; at = dirname(at)) {
    if (existsSync(join(at, 'package.json')) && existsSync(join(at, 'schemas', 'profile.json'))) return at;
    if (at === dirname(at)) return undefined;
  }
}
