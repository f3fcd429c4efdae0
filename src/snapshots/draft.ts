import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileOperations } from '../storage/atomic-file.ts';
import { makeDirectory } from '../storage/directory.ts';
import { ioError } from '../storage/io-error.ts';
import { COMPLETE, METADATA, partialDirectory, SETTINGS } from './catalogue.ts';
import type { SnapshotRecord } from './contract.ts';
import { copyTree, flush } from './copy.ts';
import { contentsOf, formatManifest, MANIFEST, markOf, type SavedPart, savedNames } from './manifest.ts';
import { walk } from './tree.ts';

/** A snapshot in the making. Until it is complete it has a name that no reader takes for one. */
export interface Draft {
  /** Copies what has to hold still for it. */
  save(signal: AbortSignal): Promise<void>;
  /** Reads what was saved, seals it and gives it its name. */
  complete(signal: AbortSignal): Promise<void>;
  discard(): Promise<void>;
}

export interface DraftInput {
  /** Directory of all snapshots. */
  root: string;
  record: SnapshotRecord;
  driver: string;
  /** What the driver keeps. */
  kept: readonly string[];
  /** Text of the settings file. */
  settings(): string;
  copy?: typeof copyTree;
}

export function createDraft({ root, record, driver, kept, settings, copy = copyTree }: DraftInput): Draft {
  const id = randomUUID();
  const directory = partialDirectory(root, id);
  const parts: SavedPart[] = [];

  async function write(name: string, text: string): Promise<void> {
    await fileOperations.writeNew(join(directory, name), text, 0o600);
  }

  return {
    async save(signal) {
      try {
        await makeDirectory(root);
        await mkdir(directory, { mode: 0o700 });
        const { created, name, description } = record;
        await write(METADATA, `${JSON.stringify({ created, name, id, description }, null, 2)}\n`);
        await write(SETTINGS, settings());
      } catch (cause) {
        throw ioError('write', directory, cause);
      }
      for (const [index, path] of kept.entries()) {
        const name = basename(path);
        const saved = `${index}-${name}`;
        const isThere = !(await walk(path).next()).done;
        if (isThere) await copy(path, join(directory, saved), signal);
        parts.push(isThere ? { name, saved } : { name });
      }
    },
    async complete(signal) {
      const contents = await contentsOf(directory, savedNames(parts), { signal });
      const manifest = formatManifest({ driver, parts, contents });
      try {
        await write(MANIFEST, manifest);
        await flush([directory]);
        await write(COMPLETE, markOf(manifest));
        await rename(directory, join(root, id));
        await fileOperations.syncDirectory(root);
      } catch (cause) {
        throw ioError('write', directory, cause);
      }
    },
    async discard() {
      await rm(directory, { recursive: true, force: true }).catch((cause: unknown) => {
        throw ioError('remove', directory, cause);
      });
    },
  };
}
