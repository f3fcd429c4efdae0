import { createHash } from 'node:crypto';
import { open, readFile, readlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { OPERATION_CANCELED, RdError } from '../../errors.ts';
import { isObject, type JsonObject, type JsonValue, parseJson } from '../../json.ts';
import { readText } from '../../os/regular-file.ts';
import { MANIFEST, MARKS, METADATA, SETTINGS } from './catalogue.ts';
import { MAC } from './key.ts';
import { type TreeEntry, walk } from './tree.ts';

const FORMAT = 1;
const MARK = 'This snapshot is complete. Manifest sha256:';
/** Maximum bytes of a manifest: a million files need some 200 MB. */
const MAX_BYTES = 512 * 1024 * 1024;
/** Maximum bytes of a file that is read at once. */
const SMALL = 1024 * 1024;

/** One path that a driver keeps, and its location in the snapshot. */
export interface SavedPart {
  /** Base name of the kept path, by which a restore matches it. */
  name: string;
  /** Directory entry in the snapshot; absent when there was nothing to save. */
  saved?: string;
}

/** One entry of a saved part. */
type Content =
  | { kind: 'file'; size: number; sha256: string }
  | { kind: 'link'; target: string }
  | { kind: 'directory' | 'device' | 'other' };

export interface Manifest {
  /** Driver of the saved state. */
  driver: string;
  /** Set if the state was copied while the machine was on. */
  live?: true;
  parts: SavedPart[];
  /** Contents by name in the snapshot; names are bytes, one character each. */
  contents: Record<string, Content>;
}

/** Hashes all saved data. @throws `ERR_CANCELLED` by the signal, else the file system error. */
export async function contentsOf(
  directory: string,
  names: readonly string[],
  signal: AbortSignal,
): Promise<Record<string, Content>> {
  const contents: Record<string, Content> = Object.create(null);
  const digests = new Map<string, string>();
  for (const name of names) {
    for await (const entry of walk(join(directory, name))) {
      contents[entry.name === '' ? name : `${name}/${entry.name}`] = await contentOf(entry, digests, signal);
    }
  }
  return contents;
}

/** Returns the names of the parts that a manifest covers. */
export function savedNames(parts: readonly SavedPart[]): string[] {
  return [SETTINGS, ...parts.flatMap(({ saved }) => (saved === undefined ? [] : [saved]))];
}

export function formatManifest({ driver, live, parts, contents }: Manifest): string {
  return `${JSON.stringify({ format: FORMAT, driver, ...(live ? { live } : {}), parts, contents })}\n`;
}

/**
 * Reads the manifest of a snapshot, verified against its mark of completeness. `mark` is the path of that mark.
 * @throws RdError `ERR_SNAPSHOT` with a clause.
 */
export async function readManifest(directory: string, mark: string): Promise<Manifest> {
  const text = await readText(join(directory, MANIFEST), MAX_BYTES).catch((cause: unknown) => {
    throw new RdError('ERR_SNAPSHOT', `it has no readable ${MANIFEST}, so it was not made by this product`, { cause });
  });
  const digest = /sha256:([0-9a-f]{64})/.exec(await markText(mark))?.[1];
  if (digest !== sha256(text)) throw damageError(`${MANIFEST} is not what it was`);
  const value = parseJson(text);
  if (value === undefined) throw damageError(`${MANIFEST} is not JSON`);
  if (!isObject(value) || value.format !== FORMAT) {
    throw new RdError('ERR_SNAPSHOT', 'it was made by a newer release, and this one cannot read it');
  }
  return manifestOf(value);
}

/**
 * Parses a manifest. The digest only proves that it matches its mark: whoever can write both can name any path. The parts that it names are copied
 * over the machine's state, so they must be in the snapshot.
 */
function manifestOf({ driver, live, parts, contents }: JsonObject): Manifest {
  if (typeof driver !== 'string') throw damageError(`${MANIFEST} does not name a driver`);
  if (!Array.isArray(parts)) throw damageError(`${MANIFEST} has no list of parts`);
  const read = parts.map(partOf);
  const tops = savedNames(read);
  if (new Set(tops).size < tops.length) throw damageError(`${MANIFEST} lists a part twice`);
  if (!isObject(contents)) throw damageError(`${MANIFEST} does not say what was saved`);
  for (const [name, content] of Object.entries(contents)) {
    const [top = '', ...below] = name.split('/');
    if (!tops.includes(top) || below.some((part) => !isEntry(part)) || !isContent(content))
      throw damageError(`${MANIFEST} lists ${JSON.stringify(readable(name))}, which cannot be part of it`);
    if (below.length === 0 && content.kind === 'link') throw damageError(`${JSON.stringify(readable(name))} is a link`);
  }
  return { driver, ...(live === true ? { live } : {}), parts: read, contents: contents as Manifest['contents'] };
}

function partOf(part: JsonValue): SavedPart {
  if (!isObject(part) || typeof part.name !== 'string') throw damageError(`${MANIFEST} has a part without a name`);
  const { name, saved } = part;
  if (saved === undefined) return { name };
  if (typeof saved !== 'string' || !isEntry(saved) || [MANIFEST, METADATA, MAC, ...MARKS].includes(saved)) {
    throw damageError(
      `${MANIFEST} says that ${JSON.stringify(name)} is in ${JSON.stringify(saved)}, which is not an entry of it`,
    );
  }
  return { name, saved };
}

/** Whether a name is a single directory entry, which leads nowhere else. */
function isEntry(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !/[/\0]/.test(name) && basename(name) === name;
}

function isContent(content: JsonValue): content is JsonObject {
  return isObject(content) && typeof content.kind === 'string';
}

async function markText(path: string): Promise<string> {
  return readText(path, SMALL).catch((cause: unknown) => {
    throw new RdError('ERR_SNAPSHOT', 'its completion marker cannot be read', { cause });
  });
}

/** Returns the text of the mark of completeness, which contains the manifest's digest. */
export function markOf(manifest: string): string {
  return `${MARK}${sha256(manifest)}`;
}

/**
 * Refuses a saved part of another kind, such as a pipe in place of a file, whose reader would wait.
 * @throws RdError `ERR_SNAPSHOT`.
 */
export function checkKind({ contents }: Pick<Manifest, 'contents'>, saved: string, kind: 'file' | 'directory'): void {
  if (contents[saved]?.kind !== kind) throw damageError(`${JSON.stringify(readable(saved))} is not a ${kind}`);
}

/**
 * Verifies the files against the manifest: names and sizes first, then every byte.
 * @throws RdError `ERR_SNAPSHOT` naming the first difference; `ERR_CANCELLED`.
 */
export async function verify(directory: string, manifest: Manifest, signal: AbortSignal): Promise<void> {
  const names = savedNames(manifest.parts);
  await verifyShape(
    names.map((name) => [join(directory, name), name]),
    manifest,
  );
  const contents = await contentsOf(directory, names, signal);
  for (const [name, content] of Object.entries(manifest.contents)) {
    const is = contents[name];
    if (!is || JSON.stringify(is) !== JSON.stringify(content)) throw damageError(`${readable(name)} has changed`);
  }
}

/** Verifies only names, types and sizes, of a snapshot or of a copy elsewhere: `[its path, its name in the snapshot]`. */
export async function verifyShape(tops: readonly (readonly [string, string])[], manifest: Manifest): Promise<void> {
  const missing = new Map(
    Object.entries(manifest.contents).filter(([name]) => tops.some(([, top]) => isBelow(name, top))),
  );
  for (const [top, part] of tops) {
    for await (const { name: below, stats } of walk(top)) {
      const name = below === '' ? part : `${part}/${below}`;
      const content = missing.get(name);
      if (!content) throw damageError(`${readable(name)} does not belong to it`);
      if (content.kind !== kindOf(stats)) throw damageError(`${readable(name)} is of another kind`);
      if (content.kind === 'file' && BigInt(content.size) !== stats.size) {
        throw damageError(`${readable(name)} has ${stats.size} bytes instead of ${content.size}`);
      }
      missing.delete(name);
    }
  }
  const [first] = missing.keys();
  if (first !== undefined) throw damageError(`${readable(first)} is missing`);
}

function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

async function contentOf(
  { path, stats }: TreeEntry,
  digests: Map<string, string>,
  signal: AbortSignal,
): Promise<Content> {
  if (signal.aborted) throw new RdError('ERR_CANCELLED', OPERATION_CANCELED);
  const kind = kindOf(stats);
  if (kind === 'link') return { kind, target: (await readlink(path, { encoding: 'buffer' })).toString('latin1') };
  if (kind !== 'file') return { kind };
  // Every hard-linked file is read only once.
  const key = `${stats.dev}:${stats.ino}`;
  const digest = (stats.nlink > 1n ? digests.get(key) : undefined) ?? (await digestOf(path, stats.size));
  if (stats.nlink > 1n) digests.set(key, digest);
  return { kind, size: Number(stats.size), sha256: digest };
}

async function digestOf(path: Buffer, size: bigint): Promise<string> {
  // Most files of an image are small, and a stream costs more than reading them.
  if (size <= SMALL) return sha256(await readFile(path));
  const hash = createHash('sha256');
  // A handle, because not every runtime opens a stream on a path of bytes.
  const handle = await open(path);
  // The stream closes the handle, even when it fails.
  await pipeline(handle.createReadStream({ highWaterMark: 1024 * 1024 }), hash);
  return hash.digest('hex');
}

function kindOf(stats: TreeEntry['stats']): Content['kind'] {
  if (stats.isFile()) return 'file';
  if (stats.isSymbolicLink()) return 'link';
  if (stats.isDirectory()) return 'directory';
  return stats.isCharacterDevice() || stats.isBlockDevice() ? 'device' : 'other';
}

function isBelow(name: string, top: string): boolean {
  return name === top || name.startsWith(`${top}/`);
}

function readable(name: string): string {
  return Buffer.from(name, 'latin1').toString('utf8');
}

function damageError(what: string): RdError {
  return new RdError('ERR_SNAPSHOT', `the snapshot is damaged: ${what}`);
}
