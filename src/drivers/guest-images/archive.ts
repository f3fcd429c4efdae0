import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { open, rename, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { pack } from 'tar-stream';
import { RdError } from '../../errors.ts';
import { defined } from '../../json.ts';
import { diskProblem } from '../../os/disk-header.ts';
import { ioError } from '../../os/io-error.ts';
import { sizeText } from '../../os/size.ts';
import { tarReader } from '../../os/tar.ts';
import { type GuestImage, IMAGE_FILES, type ImageManifest, manifestText, parseManifest } from './image.ts';
import { type Draft, type ImageStore, MANIFEST } from './store.ts';

/** Maximum size of a manifest; the package list takes about 50 KiB of it. */
const MANIFEST_LIMIT = 1024 * 1024;

/**
 * Writes an image as one file: a tar archive with the manifest first. Deterministic.
 * @param path replaced only after a complete write.
 * @returns its sha256 in hexadecimal digits.
 */
export async function saveArchive(image: GuestImage, path: string, signal: AbortSignal): Promise<string> {
  const { directory, files, digest: _, ...rest } = image;
  // A random name that nobody can have taken before, for example by a link in a directory for everyone.
  const part = `${path}.${randomBytes(6).toString('hex')}.part`;
  const archive = pack();
  const hash = createHash('sha256');
  const sum = new Transform({
    transform(chunk, _, next) {
      hash.update(chunk);
      next(null, chunk);
    },
  });
  const written = pipeline(archive, sum, createWriteStream(part, { mode: 0o644, flags: 'wx' }), { signal });
  try {
    const header = { mode: 0o644, uid: 0, gid: 0, mtime: new Date(0) };
    archive.entry({ ...header, name: MANIFEST }, manifestText({ ...rest, files }));
    for (const file of IMAGE_FILES) {
      const { name, bytes } = files[file];
      const entry = archive.entry({ ...header, name, size: bytes });
      await pipeline(createReadStream(join(directory, name)), entry, { signal });
    }
    archive.finalize();
    await written;
    await rename(part, path);
    return hash.digest('hex');
  } catch (cause) {
    archive.destroy();
    await written.catch(() => undefined);
    await rm(part, { force: true });
    if (signal.aborted) throw new RdError('ERR_CANCELLED', 'saving the image was canceled', { cause });
    throw ioError('write', path, cause);
  }
}

/**
 * Imports an image from an archive, compressed with gzip or not.
 * @param archive its display name, for messages.
 * @throws RdError `ERR_DRIVER_TERMINAL` for an archive that does not hold exactly one image, with the reason; `ERR_IO`.
 */
export async function addArchive(
  path: string,
  store: ImageStore,
  signal: AbortSignal,
  archive = path,
): Promise<GuestImage> {
  const draft = await store.draft();
  try {
    const manifest = await unpack(path, archive, draft, signal);
    const problem = await diskProblem(join(draft.directory, manifest.files.disk.name));
    if (problem) throw invalidArchive(archive, `its disk is unsafe: ${problem.why}`);
    const image = await draft.keepKnown(manifest, signal);
    if (image) return image;
    throw invalidArchive(archive, 'a file in it does not match the checksum in its manifest');
  } catch (error) {
    await draft.discard();
    throw error;
  }
}

async function unpack(
  path: string,
  archive: string,
  { directory }: Draft,
  signal: AbortSignal,
): Promise<ImageManifest> {
  const reader = tarReader();
  const source = createReadStream(path);
  const plain = (await isGzip(path)) ? [createGunzip()] : [];
  const reading = pipeline([source, ...plain, reader], { signal });
  // Its error is reported below; without this it would also be unhandled.
  reading.catch(() => undefined);
  let manifest: ImageManifest | undefined;
  const left = new Map<string, number>();
  try {
    for await (const entry of reader) {
      const { name, type, size = 0 } = entry.header;
      if (type !== 'file') throw invalidArchive(archive, `${JSON.stringify(name)} in it is not a regular file`);
      if (!manifest) {
        if (name !== MANIFEST || size > MANIFEST_LIMIT)
          throw invalidArchive(archive, `it does not begin with ${MANIFEST}`);
        manifest = await manifestOf(entry, archive);
        for (const file of IMAGE_FILES) left.set(manifest.files[file].name, manifest.files[file].bytes);
        if (left.size !== IMAGE_FILES.length) throw invalidArchive(archive, 'its manifest uses one name for two files');
        await checkRoom(
          [...left.values()].reduce((sum, bytes) => sum + bytes, 0),
          directory,
          archive,
        );
        continue;
      }
      const expected = left.get(name);
      if (expected === undefined)
        throw invalidArchive(archive, `${JSON.stringify(name)} in it does not belong to the image, or appears twice`);
      if (expected !== size)
        throw invalidArchive(archive, `${name} in it has ${size} bytes instead of the ${expected} in its manifest`);
      left.delete(name);
      await pipeline(entry, createWriteStream(join(directory, name), { flags: 'wx', mode: 0o600 }), { signal });
    }
    await reading;
  } catch (cause) {
    if (cause instanceof RdError) throw cause;
    if (signal.aborted) throw new RdError('ERR_CANCELLED', 'reading the image was canceled', { cause });
    if (cause instanceof Error && 'syscall' in cause) throw ioError('unpack', path, cause);
    throw invalidArchive(archive, 'it is damaged or not a tar archive', cause);
  } finally {
    source.destroy();
  }
  if (!manifest) throw invalidArchive(archive, 'it is empty');
  if (left.size > 0) throw invalidArchive(archive, `${[...left.keys()].join(', ')} is missing`);
  return manifest;
}

async function manifestOf(entry: AsyncIterable<unknown>, archive: string): Promise<ImageManifest> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of entry) if (chunk instanceof Uint8Array) chunks.push(chunk);
  const manifest = parseManifest(Buffer.concat(chunks).toString('utf8'));
  if ('problem' in manifest) throw invalidArchive(archive, `its ${MANIFEST} is invalid: ${manifest.problem}`);
  return manifest;
}

/** Checks free space, because a small compressed archive of zeros could fill the disk. */
async function checkRoom(bytes: number, directory: string, archive: string): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  const free = bavail * bsize;
  if (bytes <= free) return;
  throw new RdError('ERR_IO', `${archive} needs ${sizeText(bytes)}, and ${directory} has ${sizeText(free)} free`, {
    advice: 'Free up disk space and try again.',
  });
}

async function isGzip(path: string): Promise<boolean> {
  const file = await open(path).catch((cause: unknown) => {
    throw ioError('read', path, cause);
  });
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(2), 0, 2, 0);
    return bytesRead === 2 && buffer[0] === 0x1f && buffer[1] === 0x8b;
  } finally {
    await file.close();
  }
}

function invalidArchive(archive: string, reason: string, cause?: unknown): RdError {
  return new RdError('ERR_DRIVER_TERMINAL', `${archive} is not a guest image: ${reason}`, {
    ...defined({ cause }),
    advice: 'Create guest images with `rdctl image build`, and write them to a file with `rdctl image save`.',
  });
}
