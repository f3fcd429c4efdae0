import { mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { RdError } from '../../errors.ts';
import type { JsonObject } from '../../json.ts';
import { fileOperations } from '../../os/atomic-file.ts';
import { makeDirectory } from '../../os/directory.ts';
import { ioError, systemCode } from '../../os/io-error.ts';
import { readRecord } from '../../os/record.ts';
import { isExtensionName } from '../../settings/extension-image.ts';
import { isImageTag } from '../../settings/image-reference.ts';

/** An extension as the API returns it (docs/extensions.md). */
export interface ExtensionRecord {
  version: string;
  metadata: JsonObject;
  labels: JsonObject;
}

/** The extensions on disk: one directory each, complete or absent. */
export interface ExtensionDirectory {
  /** Returns the installed versions by image name. */
  versions(): Promise<ReadonlyMap<string, string>>;
  /**
   * Returns the installed versions by image name, without those that `read` would refuse: a damaged extension counts as absent, so that it is
   * reinstalled.
   */
  readable(): Promise<ReadonlyMap<string, string>>;
  /** Reads an extension. Throws `ERR_IO` when one of its files is missing or damaged. */
  read(name: string): Promise<ExtensionRecord>;
  /** Creates an empty staging directory for an extension. */
  stage(): Promise<string>;
  /** Atomically replaces the extension of that name with a staged one. */
  commit(name: string, staged: string): Promise<void>;
  discard(staged: string): Promise<void>;
  /** Removes an extension atomically. Returns a function that deletes its files. */
  remove(name: string): Promise<() => Promise<void>>;
  /**
   * Completes operations that a killed service left unfinished; must be called first. Passes the names of removed extensions to `forget`, and deletes
   * their files afterwards.
   */
  recover(forget: (names: readonly string[]) => Promise<void>): Promise<void>;
}

const STAGED = '.staged-';
const OLD = '.old-';
const GONE = '.gone-';

/** `root` is created when the first extension is installed. */
export function extensionDirectory(root: string): ExtensionDirectory {
  const placeOf = (name: string) => join(root, idOf(name));
  const markedOf = (mark: string, name: string) => join(root, `${mark}${idOf(name)}`);

  async function entries(): Promise<string[]> {
    const names = await readdir(root).catch((error: unknown) => {
      if (systemCode(error) === 'ENOENT') return [];
      throw ioError('read', root, error);
    });
    return names.sort();
  }

  async function versions(): Promise<Map<string, string>> {
    const tags = new Map<string, string>();
    for (const entry of await entries()) {
      const name = nameOf(entry);
      if (name === undefined) continue;
      const version = await readFile(join(root, entry, 'version.txt'), 'utf8').catch(() => undefined);
      if (version !== undefined && isImageTag(version)) tags.set(name, version);
    }
    return tags;
  }

  async function read(name: string): Promise<ExtensionRecord> {
    const directory = placeOf(name);
    const [version, metadata, labels] = await Promise.all([
      text(join(directory, 'version.txt')),
      document(join(directory, 'metadata.json')),
      document(join(directory, 'labels.json')),
    ]);
    return { version, metadata: { ...metadata, vm: metadata.vm ?? {} }, labels };
  }

  return {
    versions,
    read,
    async readable() {
      const present = await versions();
      for (const name of [...present.keys()]) {
        await read(name).catch(() => present.delete(name));
      }
      return present;
    },
    async stage() {
      await makeDirectory(root);
      return mkdtemp(join(root, STAGED)).catch((cause: unknown) => {
        throw ioError('create a directory in', root, cause);
      });
    },
    async commit(name, staged) {
      const place = placeOf(name);
      const old = markedOf(OLD, name);
      try {
        await rm(old, { recursive: true, force: true });
        await moveIfThere(place, old);
        await rename(staged, place);
        await fileOperations.syncDirectory(root);
      } catch (cause) {
        await moveIfThere(old, place).catch(() => undefined);
        throw ioError('replace', place, cause);
      }
      await rm(old, { recursive: true, force: true });
    },
    async discard(staged) {
      await rm(staged, { recursive: true, force: true });
    },
    async remove(name) {
      const gone = markedOf(GONE, name);
      try {
        await rm(gone, { recursive: true, force: true });
        await moveIfThere(placeOf(name), gone);
        await mkdir(gone, { recursive: true });
        await fileOperations.syncDirectory(root);
      } catch (cause) {
        throw ioError('remove', placeOf(name), cause);
      }
      return () => rm(gone, { recursive: true, force: true });
    },
    async recover(forget) {
      const all = await entries();
      for (const entry of all.filter((each) => each.startsWith(OLD))) {
        const place = entry.slice(OLD.length);
        if (!all.includes(place)) await rename(join(root, entry), join(root, place));
      }
      const gone = all.flatMap((entry) => {
        const name = entry.startsWith(GONE) ? nameOf(entry.slice(GONE.length)) : undefined;
        return name === undefined || all.includes(idOf(name)) ? [] : [name];
      });
      if (gone.length > 0) await forget(gone);
      for (const entry of all.filter((each) => [STAGED, OLD, GONE].some((mark) => each.startsWith(mark))))
        await rm(join(root, entry), { recursive: true, force: true });
    },
  };
}

/** Directory name of an extension: its image name in base64url. */
export function idOf(name: string): string {
  return Buffer.from(name).toString('base64url');
}

function nameOf(entry: string): string | undefined {
  const name = Buffer.from(entry, 'base64url').toString('utf8');
  return isExtensionName(name) && idOf(name) === entry ? name : undefined;
}

async function moveIfThere(from: string, to: string): Promise<void> {
  await rename(from, to).catch((error: unknown) => {
    if (systemCode(error) !== 'ENOENT') throw error;
  });
}

async function text(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((cause: unknown) => {
    throw ioError('read', path, cause);
  });
}

async function document(path: string): Promise<JsonObject> {
  const record = await readRecord(path);
  if (record !== undefined && record !== 'damaged') return record;
  throw new RdError('ERR_IO', `${path} is damaged`, { advice: 'Install the extension again.' });
}
