import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileOperations } from '../../os/atomic-file.ts';
import { makeDirectory } from '../../os/directory.ts';
import { ioError } from '../../os/io-error.ts';
import { isThere } from '../../os/regular-file.ts';
import { COMPLETE, METADATA, partialDirectory, SETTINGS } from './catalogue.ts';
import type { SnapshotRecord } from './contract.ts';
import { copyTree, flush } from './copy.ts';
import { contentsOf, formatManifest, MANIFEST, markOf, type SavedPart, savedNames } from './manifest.ts';

/** A snapshot being created. Its temporary name hides it from readers until it is complete. */
export interface Draft {
  /** Copies the small files. */
  save(signal: AbortSignal): Promise<void>;
  /** Copies the driver's data, from one point in time. */
  saveLive(copyLive: CopyLive, signal: AbortSignal): Promise<void>;
  /** Verifies what was saved, writes the mark and gives it its final name. */
  complete(signal: AbortSignal): Promise<void>;
  discard(): Promise<void>;
}

export interface DraftInput {
  /** Directory of all snapshots. */
  root: string;
  record: SnapshotRecord;
  driver: string;
  /** Paths that the driver keeps. */
  kept: readonly string[];
  /** Text of the settings file. */
  settings(): string;
  copy?: typeof copyTree;
  /** Throws when a copy is corrupt. */
  check?(copy: { of: string; at: string }, signal: AbortSignal): Promise<void>;
}

/** Copies all of it from one point in time; missing paths are skipped. */
type CopyLive = (copies: readonly { from: string; to: string }[], signal: AbortSignal) => Promise<void>;

export function createDraft({ root, record, driver, kept, settings, copy = copyTree, check }: DraftInput): Draft {
  const id = randomUUID();
  const directory = partialDirectory(root, id);
  const copies = kept.map((path, index) => {
    const name = basename(path);
    return { from: path, to: join(directory, `${index}-${name}`), name, saved: `${index}-${name}` };
  });
  const parts: SavedPart[] = [];
  let live = false;

  async function write(name: string, text: string): Promise<void> {
    await fileOperations.writeNew(join(directory, name), text, 0o600);
  }

  async function begin(): Promise<void> {
    try {
      await makeDirectory(root);
      await mkdir(directory, { mode: 0o700 });
      const { created, name, description } = record;
      await write(METADATA, `${JSON.stringify({ created, name, id, description }, null, 2)}\n`);
      await write(SETTINGS, settings());
    } catch (cause) {
      throw ioError('write', directory, cause);
    }
  }

  return {
    async save(signal) {
      await begin();
      for (const { from, to, name, saved } of copies) {
        const there = await isThere(from);
        if (there) await copy(from, to, signal);
        parts.push(there ? { name, saved } : { name });
      }
    },
    async saveLive(copyLive, signal) {
      await begin();
      live = true;
      await copyLive(
        copies.map(({ from, to }) => ({ from, to })),
        signal,
      );
      for (const { to, name, saved } of copies) parts.push((await isThere(to)) ? { name, saved } : { name });
    },
    async complete(signal) {
      for (const { from, to } of copies) if (await isThere(to)) await check?.({ of: from, at: to }, signal);
      const contents = await contentsOf(directory, savedNames(parts), { signal });
      const manifest = formatManifest({ driver, ...(live ? { live } : {}), parts, contents });
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
