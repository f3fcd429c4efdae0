import { copyFile, mkdir, open, symlink } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { Readable } from 'node:stream';
import type { Header } from 'tar-stream';
import { messageOf, RdError } from '../../errors.ts';
import { systemCode } from '../../os/io-error.ts';
import { tarReader } from '../../os/tar.ts';

/** Remaining budget of all archives of one extension. */
export interface Budget {
  bytes: number;
  entries: number;
}

/** Returns the limits of an extension: far more than any needs, far less than a disk has. */
export function fullBudget(): Budget {
  return { bytes: 1024 * 1024 * 1024, entries: 50_000 };
}

/** Maximum attributes of an entry; the reader copies an archive's global attributes to every entry. */
const MAX_ATTRIBUTES = 200;

interface Waiting {
  path: string;
  target: string;
}

/**
 * Extracts an archive of one file or one directory to `destination`, which must not exist and gets the content of the topmost entry,
 * whatever its name. Never writes outside it: absolute names, `..`, links that leave the tree, devices, duplicate names and archives over
 * budget are refused as a whole.
 * @returns the type of the topmost entry.
 * @throws RdError `ERR_EXTENSION_INVALID` with the entry and the problem; system errors unchanged.
 */
export async function extract(
  archive: AsyncIterable<Uint8Array>,
  destination: string,
  budget: Budget,
): Promise<'file' | 'directory'> {
  const links: Waiting[] = [];
  /** Sizes of the extracted files, by path. */
  const files = new Map<string, number>();
  let kind: 'file' | 'directory' | undefined;
  for await (const { header, body } of entriesOf(archive)) {
    const path = pathBelow(header.name);
    if (path === '') {
      if (kind !== undefined) throw invalidEntry(header.name, 'it is in the archive twice');
      kind = header.type === 'directory' ? 'directory' : 'file';
    }
    if (path !== '' && kind === 'file') throw invalidEntry(header.name, 'it is below a file');
    kind ??= 'directory';
    spend(budget, header);
    const target = join(destination, path);
    try {
      await write(header, path, target, body);
    } catch (error) {
      throw refusalOf(header.name, error);
    }
  }
  if (kind === undefined) throw new RdError('ERR_EXTENSION_INVALID', 'the archive is empty');
  // Links come last, so that nothing is ever written through a link of the archive.
  for (const { path, target } of links) {
    await symlink(target, path).catch((error: unknown) => {
      throw refusalOf(path, error);
    });
  }
  return kind;

  async function write(header: Header, path: string, target: string, body: AsyncIterable<unknown>): Promise<void> {
    switch (header.type) {
      case 'directory':
        await mkdir(target, { recursive: true, mode: 0o755 });
        return;
      case 'file':
      case 'contiguous-file':
        await makeParent(path, target);
        await writeFile(target, (header.mode ?? 0) & 0o111 ? 0o755 : 0o644, body);
        files.set(path, header.size ?? 0);
        return;
      case 'symlink':
        if (path === '') throw invalidEntry(header.name, 'it is a link');
        links.push({ path: target, target: safeTarget(header, path) });
        await makeParent(path, target);
        return;
      case 'link': {
        const original = pathBelow(header.linkname ?? '');
        const size = files.get(original);
        if (size === undefined)
          throw invalidEntry(header.name, `it is a hard link to ${JSON.stringify(header.linkname)}`);
        // A hard link has no size in the archive, but its copy has one.
        spendBytes(budget, header.name, size);
        await makeParent(path, target);
        await copyFile(join(destination, original), target, 1);
        files.set(path, size);
        return;
      }
      default:
        throw invalidEntry(header.name, `its type is ${header.type ?? 'unknown'}`);
    }
  }

  async function makeParent(path: string, target: string): Promise<void> {
    if (path !== '') await mkdir(dirname(target), { recursive: true, mode: 0o755 });
  }
}

/** Returns the content of a single-file archive. Throws `ERR_EXTENSION_INVALID` for anything else and beyond `limit` bytes. */
export async function readFileOf(archive: AsyncIterable<Uint8Array>, limit: number): Promise<Buffer> {
  let content: Buffer | undefined;
  for await (const { header, body } of entriesOf(archive)) {
    if (content || header.type !== 'file') throw invalidEntry(header.name, 'it is not one plain file');
    if ((header.size ?? 0) > limit) throw invalidEntry(header.name, `it is larger than ${limit} bytes`);
    const chunks: Buffer[] = [];
    for await (const chunk of body) chunks.push(bytesOf(chunk));
    content = Buffer.concat(chunks);
  }
  if (!content) throw new RdError('ERR_EXTENSION_INVALID', 'the archive is empty');
  return content;
}

async function* entriesOf(
  archive: AsyncIterable<Uint8Array>,
): AsyncGenerator<{ header: Header; body: AsyncIterable<unknown> }, void> {
  const reader = tarReader();
  const source = Readable.from(archive);
  // Kept here, because the reader drops the reason for which it was destroyed.
  let failure: unknown;
  source.on('error', (error) => {
    failure = error;
    reader.destroy(error);
  });
  source.pipe(reader);
  async function* bodyOf(entry: AsyncIterable<unknown>): AsyncGenerator<unknown, void> {
    try {
      yield* entry;
    } catch (error) {
      throw readFailure(failure ?? error);
    }
  }
  try {
    for await (const entry of reader) {
      if (Object.keys(entry.header.pax ?? {}).length > MAX_ATTRIBUTES)
        throw invalidEntry(entry.header.name, 'it has too many attributes');
      yield { header: entry.header, body: bodyOf(entry) };
      entry.resume();
    }
  } catch (error) {
    throw readFailure(failure ?? error);
  } finally {
    source.destroy();
  }
}

/** Wraps an error of the archive reader, which has no system code; returns errors such as ENOSPC unchanged. */
function readFailure(error: unknown): unknown {
  if (error instanceof RdError || /^E[A-Z0-9]+$/.test(systemCode(error) ?? '')) return error;
  const text = messageOf(error);
  return new RdError('ERR_EXTENSION_INVALID', `the archive is damaged: ${text}`, { cause: error });
}

/** Returns the refusal of an entry that the file system rejected; the error itself if the archive is not at fault. */
function refusalOf(name: string, error: unknown): unknown {
  switch (systemCode(error)) {
    case 'EEXIST':
      return invalidEntry(name, 'it is in the archive twice');
    case 'ENOTDIR':
      return invalidEntry(name, 'it is below a file');
    case 'ENAMETOOLONG':
      return invalidEntry(name, 'its name is too long');
    default:
      return error;
  }
}

function spend(budget: Budget, { name, size = 0 }: Header): void {
  budget.entries -= 1;
  if (budget.entries < 0) throw invalidEntry(name, 'there are too many files');
  spendBytes(budget, name, size);
}

function spendBytes(budget: Budget, name: string, size: number): void {
  budget.bytes -= size;
  if (budget.bytes < 0) throw invalidEntry(name, 'the files are too large');
}

async function writeFile(path: string, mode: number, body: AsyncIterable<unknown>): Promise<void> {
  const handle = await open(path, 'wx', mode);
  try {
    for await (const chunk of body) {
      await handle.writeFile(bytesOf(chunk));
    }
  } finally {
    await handle.close();
  }
}

function bytesOf(chunk: unknown): Buffer {
  if (Buffer.isBuffer(chunk)) return chunk;
  throw new TypeError('an archive gives bytes');
}

/** Control characters, which a terminal would interpret. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\0-\x1f\x7f\\]/;

/** Returns the name without its first part. Every remaining part must be a plain name. */
function pathBelow(name: string): string {
  const parts = name.replace(/\/+$/, '').split('/');
  if (parts[0] === '.') parts.shift();
  const unsafe = parts.some((part) => part === '' || part === '.' || part === '..' || CONTROL.test(part));
  if (unsafe || (process.platform === 'win32' && name.includes(':')))
    throw invalidEntry(name, 'its name is not a path below a directory');
  return parts.slice(1).join('/');
}

/**
 * Checks the target of a link: down from its own directory, or first up and then down. Refuses `..` after a name, because the name may be another
 * link; so no chain of links leaves the tree.
 */
function safeTarget({ name, linkname: written }: Header, path: string): string {
  // The reader returns null for an empty target.
  const linkname = written ?? '';
  const parts = linkname.split('/');
  const names = parts.findIndex((part) => part !== '..' && part !== '.');
  const upAgain = names !== -1 && parts.slice(names).includes('..');
  const end = posix.normalize(posix.join(posix.dirname(path), linkname));
  const leaves = end === '..' || end.startsWith('../');
  if (linkname === '' || linkname.startsWith('/') || /[\0\\]/.test(linkname) || upAgain || leaves) {
    throw invalidEntry(name, `it is a link to ${JSON.stringify(linkname)}, which leaves the tree`);
  }
  return linkname;
}

function invalidEntry(name: string, why: string): RdError {
  return new RdError('ERR_EXTENSION_INVALID', `${JSON.stringify(name)} cannot be extracted from the image: ${why}`);
}
