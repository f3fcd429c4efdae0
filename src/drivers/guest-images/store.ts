import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { RdError } from '../../errors.ts';
import { defined, isObject, parseJson } from '../../json.ts';
import { fileOperations, readIfThere, writeFileAtomic } from '../../os/atomic-file.ts';
import { makeDirectory } from '../../os/directory.ts';
import { diskProblem } from '../../os/disk-header.ts';
import { ioError, systemCode } from '../../os/io-error.ts';
import { type ProcessTable, processTable } from '../../os/process-table.ts';
import {
  digestOf,
  type GuestImage,
  IMAGE_FILES,
  type ImageFile,
  type ImageManifest,
  manifestText,
  parseManifest,
  type StoredFile,
} from './image.ts';

/** Name of the manifest in the directory of an image. */
export const MANIFEST = 'manifest.json';
const DRAFT = '.draft-';
const GONE = '.gone-';
const OWNER = 'owner.json';
const SELECTION = 'selected.json';

/** The metadata that turns a draft into an image. */
type DraftFacts = Omit<ImageManifest, 'format' | 'files'>;

/** A staging directory for an image. Finish it with exactly one of the methods. */
export interface Draft {
  readonly directory: string;
  /** Hashes the files and commits the image. Keeps an existing one unchanged. */
  keep(facts: DraftFacts, names: Readonly<Record<ImageFile, string>>, signal: AbortSignal): Promise<GuestImage>;
  /** Commits the image of a manifest that already has the digests. Returns undefined, and stores nothing, if one does not match. */
  keepKnown(manifest: ImageManifest, signal: AbortSignal): Promise<GuestImage | undefined>;
  discard(): Promise<void>;
}

/** The guest images of a home: one directory each, named by digest, complete or absent. */
export interface ImageStore {
  /** Lists the images, newest first. Directories without a readable manifest are not images. */
  list(): Promise<GuestImage[]>;
  /**
   * Finds an image by digest, by digest prefix (with or without `sha256:`, at least four digits) or by name, of which the newest wins.
   * @throws RdError `ERR_NOT_FOUND` with the available images; `ERR_USAGE` for an ambiguous prefix.
   */
  find(reference: string): Promise<GuestImage>;
  /** Returns the digest of the image that the machine boots at its next start, or undefined if none was selected. The image may no longer exist. */
  selected(): Promise<string | undefined>;
  /** Selects an image for the next start of the machine. @throws RdError `ERR_IO`. */
  select(image: GuestImage): Promise<void>;
  draft(): Promise<Draft>;
  /**
   * Removes an image. The caller ensures that no machine uses it.
   * @throws RdError `ERR_IO`.
   */
  remove(image: GuestImage): Promise<void>;
  /** Verifies the digest of every file. @throws RdError `ERR_DRIVER_TERMINAL` naming the damaged or missing file. */
  verify(image: GuestImage, signal: AbortSignal): Promise<void>;
  /**
   * Verifies from the header of the disk that a program which opens it opens no other file. Cheap.
   * @throws RdError `ERR_DRIVER_TERMINAL` with the reason; `ERR_IO`.
   */
  verifyDisk(image: GuestImage): Promise<void>;
}

/**
 * Opens the store.
 * @param root created with the first image.
 */
export function imageStore(root: string, processes: ProcessTable = processTable): ImageStore {
  async function entries(): Promise<string[]> {
    return readdir(root).catch((error: unknown) => {
      if (systemCode(error) === 'ENOENT') return [];
      throw ioError('read', root, error);
    });
  }

  async function read(entry: string): Promise<GuestImage | undefined> {
    if (!/^sha256-[0-9a-f]{64}$/.test(entry)) return undefined;
    const directory = join(root, entry);
    const text = await readFile(join(directory, MANIFEST), 'utf8').catch(() => undefined);
    const manifest = text === undefined ? undefined : parseManifest(text);
    if (text === undefined || manifest === undefined || 'problem' in manifest) return undefined;
    const digest = digestOf(text);
    return digest.replace(':', '-') === entry ? { ...manifest, digest, directory } : undefined;
  }

  async function list(): Promise<GuestImage[]> {
    const loaded = await Promise.all((await entries()).map(read));
    const images = loaded.filter((image) => image !== undefined);
    return images.sort((a, b) => Date.parse(b.created) - Date.parse(a.created) || (a.digest < b.digest ? -1 : 1));
  }

  /** Removes leftovers of killed commands. */
  async function sweep(): Promise<void> {
    for (const entry of await entries()) {
      const directory = join(root, entry);
      const left = entry.startsWith(GONE) || (entry.startsWith(DRAFT) && !(await isOwned(directory, processes)));
      if (left) await rm(directory, { recursive: true, force: true });
    }
  }

  async function place(draft: string, manifest: ImageManifest): Promise<GuestImage> {
    const text = manifestText(manifest);
    const digest = digestOf(text);
    const name = digest.replace(':', '-');
    const directory = join(root, name);
    try {
      // Digests are verified only after a start has failed.
      for (const file of IMAGE_FILES) await fileOperations.syncFile(join(draft, manifest.files[file].name));
      await writeFileAtomic(join(draft, MANIFEST), text);
      await rm(join(draft, OWNER), { force: true });
      await rename(draft, directory);
      await fileOperations.syncDirectory(root);
    } catch (cause) {
      if (!(await read(name))) throw ioError('write', directory, cause);
      await rm(draft, { recursive: true, force: true });
    }
    return { ...manifest, digest, directory };
  }

  return {
    list,
    async find(reference) {
      const images = await list();
      const digits = reference.replace(/^sha256:/, '');
      const begins = /^[0-9a-f]{4,64}$/.test(digits)
        ? images.filter(({ digest }) => digest.startsWith(`sha256:${digits}`))
        : [];
      const [first, second] = begins;
      if (first && second) {
        throw new RdError('ERR_USAGE', `several images start with ${reference}`, {
          details: begins.map(({ digest, name }) => `${digest} ${name}`),
          advice: 'Give more digits of the digest.',
        });
      }
      const image = first ?? images.find(({ name }) => name === reference);
      if (image) return image;
      throw new RdError('ERR_NOT_FOUND', `there is no guest image ${JSON.stringify(reference)}`, {
        details: images.map(({ digest, name }) => `${digest.slice(0, 19)} ${name}`),
        advice: /^[0-9a-f]{1,3}$/.test(digits)
          ? 'Give at least 4 digits of a digest; see `rdctl image list`.'
          : 'See `rdctl image list`; build one with `rdctl image build`, or download one with `rdctl image fetch`.',
      });
    },
    async selected() {
      const record = parseJson((await readIfThere(join(root, SELECTION))) ?? '');
      return isObject(record) && typeof record.image === 'string' ? record.image : undefined;
    },
    async select({ digest }) {
      await writeFileAtomic(join(root, SELECTION), `${JSON.stringify({ image: digest })}\n`);
    },
    async draft() {
      await makeDirectory(root);
      await sweep();
      const directory = await mkdtemp(join(root, DRAFT)).catch((cause: unknown) => {
        throw ioError('create a directory in', root, cause);
      });
      await writeFileAtomic(join(directory, OWNER), JSON.stringify(await processes.self()));
      const sums = async (names: Readonly<Record<ImageFile, string>>, signal: AbortSignal) => ({
        kernel: await hashFile(directory, names.kernel, signal),
        initrd: await hashFile(directory, names.initrd, signal),
        disk: await hashFile(directory, names.disk, signal),
      });
      return {
        directory,
        keep: async (facts, names, signal) =>
          place(directory, { format: 1, ...facts, files: await sums(names, signal) }),
        async keepKnown(manifest, signal) {
          const { kernel, initrd, disk } = manifest.files;
          const files = await sums({ kernel: kernel.name, initrd: initrd.name, disk: disk.name }, signal);
          const actual = { ...manifest, files };
          return manifestText(actual) === manifestText(manifest) ? place(directory, actual) : undefined;
        },
        discard: () => rm(directory, { recursive: true, force: true }),
      };
    },
    async remove({ digest, directory }) {
      const gone = join(root, `${GONE}${digest.slice(7)}`);
      try {
        await rm(gone, { recursive: true, force: true });
        await rename(directory, gone);
        await fileOperations.syncDirectory(root);
        await rm(gone, { recursive: true, force: true });
      } catch (cause) {
        throw ioError('remove', directory, cause);
      }
    },
    async verify({ directory, files, name }, signal) {
      for (const file of IMAGE_FILES) {
        const expected = files[file];
        const actual = await hashFile(directory, expected.name, signal).catch((cause: unknown) => {
          signal.throwIfAborted();
          throw damageError(name, join(directory, expected.name), cause);
        });
        if (actual.sha256 !== expected.sha256) throw damageError(name, join(directory, expected.name));
      }
    },
    async verifyDisk({ directory, files, name }) {
      const path = join(directory, files.disk.name);
      const problem = await diskProblem(path);
      if (!problem) return;
      throw new RdError(
        'ERR_DRIVER_TERMINAL',
        `the guest image ${name} is not used: ${path} is unsafe: ${problem.why}`,
        {
          advice: REPLACE,
        },
      );
    },
  };
}

async function hashFile(directory: string, name: string, signal: AbortSignal): Promise<StoredFile> {
  const path = join(directory, name);
  const hash = createHash('sha256');
  try {
    const { size } = await stat(path);
    await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash, { signal });
    return { name, bytes: size, sha256: hash.digest('hex') };
  } catch (cause) {
    if (signal.aborted) throw new RdError('ERR_CANCELLED', 'reading the image was canceled', { cause });
    throw ioError('read', path, cause);
  }
}

const REPLACE =
  'Remove it with `rdctl image remove` and build or fetch it again; the data of machines is on separate disks.';

function damageError(name: string, path: string, cause?: unknown): RdError {
  return new RdError('ERR_DRIVER_TERMINAL', `the guest image ${name} is damaged: ${path} has changed`, {
    ...defined({ cause }),
    advice: REPLACE,
  });
}

async function isOwned(directory: string, processes: ProcessTable): Promise<boolean> {
  const text = await readFile(join(directory, OWNER), 'utf8').catch(() => undefined);
  const owner = parseJson(text ?? '');
  if (!isObject(owner) || typeof owner.pid !== 'number') return false;
  const { pid, started } = owner;
  return processes.isAlive({ pid, ...(typeof started === 'string' ? { started } : {}) });
}

/**
 * Returns the digest of the image that the machine of a home boots, from the record of the qemu driver, or undefined when there is none or it cannot
 * be parsed.
 * @param state the home's state directory.
 */
export async function imageInUse(state: string): Promise<string | undefined> {
  const text = await readIfThere(join(state, 'drivers', 'qemu', 'machine.json'));
  const record = parseJson(text ?? '');
  return isObject(record) && typeof record.image === 'string' ? record.image : undefined;
}
