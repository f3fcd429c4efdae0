import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Driver } from '../../drivers/driver.ts';
import { fileOperations } from '../../os/atomic-file.ts';
import { makeDirectory } from '../../os/directory.ts';
import { ioError } from '../../os/io-error.ts';
import { isThere } from '../../os/regular-file.ts';
import { sizeText } from '../../os/size.ts';
import type { Desired } from '../../reconcile/contract.ts';
import type { BackendRest } from './backend-wait.ts';
import {
  COMPLETE,
  deleteSnapshot,
  findSnapshot,
  METADATA,
  partialDirectory,
  readCatalogue,
  SETTINGS,
} from './catalogue.ts';
import type { SnapshotRecord } from './contract.ts';
import type { Maintenance } from './maintenance.ts';
import { contentsOf, formatManifest, MANIFEST, markOf, type SavedPart, savedNames } from './manifest.ts';
import { checkUnique } from './name.ts';
import { checkSpace, copyTree, flush } from './tree.ts';

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

export interface SnapshotMaking {
  /** Directory of all snapshots. */
  root: string;
  driver: Pick<Driver, 'name' | 'keeps' | 'copyLive' | 'checkKept'>;
  maintenance: Pick<Maintenance, 'run' | 'alongside'>;
  rest: BackendRest;
  desired(): Desired;
  /** For what stops the backend: lets who hears of a failure find everything as it was. */
  interrupting(work: () => Promise<void>): Promise<void>;
  copy?: DraftInput['copy'];
}

export interface NewSnapshot {
  record: SnapshotRecord;
  /** For people: `Creating snapshot "x"`. */
  action: string;
  /** The backend is to be stopped for it. */
  stop: boolean;
}

/**
 * Makes a snapshot. A backend that is on and all that it is to be goes on where its driver can copy it so; any other is stopped
 * meanwhile. When it throws, nothing is left of it.
 */
export async function makeSnapshot(input: SnapshotMaking, made: NewSnapshot, signal: AbortSignal): Promise<void> {
  const { root, driver, maintenance, rest, desired, interrupting, copy } = input;
  const { record, action } = made;
  const { keeps, copyLive, checkKept } = driver;
  await rest.begin(action, signal);
  const draft = createDraft({
    root,
    record,
    driver: driver.name,
    kept: keeps,
    settings: () => `${JSON.stringify(desired().settings, null, 2)}\n`,
    ...(copy ? { copy } : {}),
    ...(checkKept ? { check: (saved, until) => checkKept(saved, until) } : {}),
  });
  if (copyLive && !made.stop && (await rest.isSteady(signal))) {
    await completed(draft, signal, () =>
      maintenance.alongside(action, signal, async (work) => {
        await stillUnique(root, record);
        const size = sizeText(await checkSpace(keeps, dirname(root), false));
        work.progress(`copying ${size}`);
        const progress = (share: number) => work.progress(`copying ${size}, ${Math.floor(share * 100)} %`);
        await draft.saveLive((copies, until) => copyLive(copies, until, progress), work.signal);
      }),
    );
    return ended(input, made, signal);
  }
  await interrupting(async () => {
    await completed(draft, signal, () =>
      maintenance.run(action, signal, async (work) => {
        await stillUnique(root, record);
        work.progress(`copying ${sizeText(await checkSpace(keeps, dirname(root)))}`);
        await draft.save(work.signal);
      }),
    );
    await ended(input, made, signal);
  });
}

/** The name may have been taken since it was asked for. */
async function stillUnique(root: string, { name }: SnapshotRecord): Promise<void> {
  const { snapshots } = await readCatalogue(root);
  checkUnique(
    name,
    snapshots.map((snapshot) => snapshot.name),
  );
}

async function completed(draft: Draft, signal: AbortSignal, saved: () => Promise<void>): Promise<void> {
  try {
    await saved();
    await draft.complete(signal);
  } catch (error) {
    await draft.discard();
    throw error;
  }
}

/** Waits until the backend is what it is to be; who cancels that wants no snapshot. */
async function ended({ root, rest }: SnapshotMaking, { record }: NewSnapshot, signal: AbortSignal): Promise<void> {
  await rest.end(signal).catch(async (error: unknown) => {
    await deleteSnapshot(root, await findSnapshot(root, record.name));
    throw error;
  });
}
