import { Readable } from 'node:stream';
import * as zlib from 'node:zlib';
import { type Pack, pack } from 'tar-stream';
import { messageOf, RdError } from '../../errors.ts';
import { tarReader } from '../../os/tar.ts';
import type { OpenImage } from '../driver.ts';
import { addLayer, checkEntry, emptyTree, type LayerEntry, resolve, type TreeNode } from './tree.ts';

/** Limits for unpacking one image: an archive of zeros can be small and endless. */
const MAX_BYTES = 16 * 1024 ** 3;
const MAX_ENTRIES = 500_000;
/** Total length of names, which stay in memory while the image is open. */
const MAX_NAMES = 256 * 1024 ** 2;
/** Maximum attributes of an entry; the reader copies a layer's global attributes to every entry. */
const MAX_ATTRIBUTES = 200;
/** Maximum layers of an image, as in engines. */
const MAX_LAYERS = 127;
/** Maximum files and directories extracted per call. */
const MAX_AT_ONCE = 100_000;

/** Opens the stored archive of a layer, from the lowest (0) on. */
export type OpenLayer = (layer: number) => AsyncIterable<Uint8Array>;

interface Entry {
  header: LayerEntry;
  body: AsyncIterable<unknown>;
}

/** Reads the names in all layers; content is read again on request. */
export async function readLayers(count: number, openLayer: OpenLayer): Promise<OpenImage['archive']> {
  if (count > MAX_LAYERS) throw new RdError('ERR_DRIVER_FAILED', `the image has more than ${MAX_LAYERS} layers`);
  const root = emptyTree();
  let entries = 0;
  let names = 0;
  for (let layer = 0; layer < count; layer += 1) {
    const headers: LayerEntry[] = [];
    for await (const { header } of entriesOf(openLayer(layer))) {
      entries += 1;
      if (entries > MAX_ENTRIES) throw new RdError('ERR_DRIVER_FAILED', `the image has more than ${MAX_ENTRIES} files`);
      checkEntry(header);
      names += header.name.length + header.linkname.length;
      if (names > MAX_NAMES)
        throw new RdError('ERR_DRIVER_FAILED', `the names in the image have more than ${MAX_NAMES} characters`);
      headers.push(header);
    }
    await addLayer(root, layer, headers);
  }
  return async (path) => {
    const resolved = resolve(root, path);
    return resolved && archiveOf(resolved.name, resolved.node, openLayer);
  };
}

interface FileToExtract {
  name: string;
  mode: number;
  size: number;
}

async function* archiveOf(name: string, node: TreeNode, openLayer: OpenLayer): AsyncGenerator<Uint8Array, void> {
  const out = pack();
  write(out, name, node, openLayer).then(
    () => out.finalize(),
    (error: unknown) => out.destroy(error instanceof Error ? error : new Error(String(error))),
  );
  try {
    for await (const chunk of out) if (chunk instanceof Uint8Array) yield chunk;
  } finally {
    out.destroy();
  }
}

async function write(out: Pack, name: string, node: TreeNode, openLayer: OpenLayer): Promise<void> {
  const filesByLayer = listing(out, name, node);
  for (const [layer, entries] of [...filesByLayer].sort(([a], [b]) => a - b)) {
    let at = -1;
    let left = entries.size;
    for await (const { body } of entriesOf(openLayer(layer))) {
      at += 1;
      const names = entries.get(at);
      if (!names) continue;
      await writeFile(out, names, body);
      left -= 1;
      if (left === 0) break;
    }
  }
}

/** Packs directories and links at once; returns files by their layer and entry. */
function listing(out: Pack, topName: string, top: TreeNode): Map<number, Map<number, FileToExtract[]>> {
  const filesByLayer = new Map<number, Map<number, FileToExtract[]>>();
  let count = 0;
  function list(name: string, node: TreeNode): void {
    count += 1;
    if (count > MAX_AT_ONCE) {
      throw new RdError('ERR_DRIVER_FAILED', `${topName} of the image has more than ${MAX_AT_ONCE} files`);
    }
    switch (node.kind) {
      case 'directory':
        out.entry({ name: `${name}/`, type: 'directory', mode: node.mode });
        for (const [child, below] of node.children) list(`${name}/${child}`, below);
        return;
      case 'link':
        out.entry({ name, type: 'symlink', linkname: node.target });
        return;
      case 'file':
        note(name, node);
        return;
      case 'other':
        out.entry({ name, type: 'fifo' });
    }
  }
  function note(name: string, { mode, content }: Extract<TreeNode, { kind: 'file' }>): void {
    const { layer, entry, size } = content;
    const entries = filesByLayer.get(layer) ?? new Map<number, FileToExtract[]>();
    filesByLayer.set(layer, entries);
    const names = entries.get(entry) ?? [];
    entries.set(entry, names);
    names.push({ name, mode, size });
  }
  list(topName, top);
  return filesByLayer;
}

async function writeFile(out: Pack, names: readonly FileToExtract[], body: AsyncIterable<unknown>): Promise<void> {
  const [first, ...more] = names;
  if (!first) return;
  const { name, mode, size } = first;
  await new Promise<void>((done, fail) => {
    const entry = out.entry({ name, mode, size }, (error) => (error ? fail(error) : done()));
    Readable.from(body).on('error', fail).pipe(entry);
  });
  for (const other of more) out.entry({ name: other.name, type: 'link', linkname: name, mode: other.mode });
}

/** Yields the entries of one layer, with any compression. Throws `ERR_DRIVER_FAILED` for an unreadable one. */
async function* entriesOf(archive: AsyncIterable<Uint8Array>): AsyncGenerator<Entry, void> {
  const reader = tarReader();
  const source = Readable.from(limitSize(unpack(archive)));
  source.on('error', (error) => reader.destroy(error));
  source.pipe(reader);
  try {
    for await (const entry of reader) {
      const { name, type, mode = 0o644, size = 0, linkname, pax } = entry.header;
      if (Object.keys(pax ?? {}).length > MAX_ATTRIBUTES)
        throw new RdError('ERR_DRIVER_FAILED', 'a file in a layer of the image has too many attributes');
      yield { header: { name, type: type ?? 'file', mode, size, linkname: linkname ?? '' }, body: entry };
      entry.resume();
    }
  } catch (cause) {
    if (cause instanceof RdError) throw cause;
    const text = messageOf(cause);
    throw new RdError('ERR_DRIVER_FAILED', `a layer of the image cannot be read: ${text}`, { cause });
  } finally {
    source.destroy();
  }
}

async function* unpack(archive: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  const chunks = archive[Symbol.asyncIterator]();
  const first = await chunks.next();
  if (first.done) return;
  const all = Readable.from(joinChunks(first.value, chunks));
  const tool = decompressor(first.value);
  if (!tool) {
    yield* all;
    return;
  }
  all.on('error', (error) => tool.destroy(error));
  try {
    yield* all.pipe(tool);
  } finally {
    all.destroy();
  }
}

async function* joinChunks(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  try {
    yield first;
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

/** Returns a decompressor by the magic number, because media types are unreliable. Undefined for an uncompressed archive. */
function decompressor(start: Uint8Array) {
  const magic = Buffer.from(start.subarray(0, 4)).toString('hex');
  if (magic.startsWith('1f8b')) return zlib.createGunzip();
  if (magic !== '28b52ffd') return undefined;
  // Available in newer releases of Node.js only.
  if ('createZstdDecompress' in zlib && typeof zlib.createZstdDecompress === 'function') {
    const tool: unknown = zlib.createZstdDecompress();
    if (tool instanceof Readable) return tool as ReturnType<typeof zlib.createGunzip>;
  }
  throw new RdError('ERR_DRIVER_FAILED', 'a layer of the image is packed with zstd, which this Node.js cannot read', {
    advice: 'Run rdctl with Node.js 22.15 or later, or install the extension with moby.',
  });
}

async function* limitSize(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  let size = 0;
  for await (const chunk of bytes) {
    size += chunk.length;
    if (size > MAX_BYTES) throw new RdError('ERR_DRIVER_FAILED', `a layer is larger than ${MAX_BYTES} bytes unpacked`);
    yield chunk;
  }
}
