import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Driver } from '../../drivers/driver.ts';
import { defined } from '../../json.ts';
import { fileOperations } from '../../os/atomic-file.ts';
import { makeDirectory } from '../../os/directory.ts';
import { ioError } from '../../os/io-error.ts';
import { isThere } from '../../os/regular-file.ts';
import { sizeText } from '../../os/size.ts';
import type { BackendRest } from '../../reconcile/backend-wait.ts';
import type { Desired } from '../../reconcile/contract.ts';
import type { Maintenance, MaintenanceWork } from '../../reconcile/maintenance.ts';
import {
  COMPLETE,
  deleteSnapshot,
  findSnapshot,
  MANIFEST,
  METADATA,
  partialDirectory,
  readCatalogue,
  SETTINGS,
} from './catalogue.ts';
import type { SnapshotRecord } from './contract.ts';
import { MAC, sealed } from './key.ts';
import { contentsOf, formatManifest, markOf, type SavedPart, savedNames } from './manifest.ts';
import { checkUnique } from './name.ts';
import { checkSpace, copyTree, flush } from './tree.ts';

interface DraftInput {
  /** Directory of all snapshots. */
  root: string;
  record: SnapshotRecord;
  /** Generation of the change that a safety snapshot precedes. */
  covers?: number;
  driver: string;
  /** Paths that the driver keeps. */
  kept: readonly string[];
  /** Returns the text of the settings file. */
  settings(): string;
  copy?: typeof copyTree;
  /** Checks a copy. Throws when it is corrupt. */
  check?(copy: { of: string; at: string }, signal: AbortSignal): Promise<void>;
}

/** Copies all paths from one point in time; missing paths are skipped. */
type CopyLive = (copies: readonly { from: string; to: string }[], signal: AbortSignal) => Promise<void>;

/** Creates a draft of a snapshot. Its temporary name hides it from readers until it is complete. */
export function createDraft({ root, record, covers, driver, kept, settings, copy = copyTree, check }: DraftInput) {
  const id = randomUUID();
  const directory = partialDirectory(root, id);
  const copies = kept.map((from, index) => {
    const name = basename(from);
    const saved = `${index}-${name}`;
    return { from, to: join(directory, saved), name, saved };
  });
  const { created, name, description } = record;
  const metadata = `${JSON.stringify({ created, name, id, description, ...defined({ covers }) }, null, 2)}\n`;
  let live = false;
  let complete = false;

  async function write(name: string, text: string): Promise<void> {
    await fileOperations.writeNew(join(directory, name), text, 0o600);
  }

  return {
    id,
    /** Copies the settings and the driver's data; from a running backend with `copyLive`. */
    async save(signal: AbortSignal, copyLive?: CopyLive): Promise<void> {
      live = copyLive !== undefined;
      try {
        await makeDirectory(root);
        await mkdir(directory, { mode: 0o700 });
        await write(METADATA, metadata);
        await write(SETTINGS, settings());
      } catch (cause) {
        throw ioError('write', directory, cause);
      }
      if (copyLive) {
        await copyLive(
          copies.map(({ from, to }) => ({ from, to })),
          signal,
        );
        return;
      }
      for (const { from, to } of copies) if (await isThere(from)) await copy(from, to, signal);
    },
    /** Verifies the saved data, writes the mark and gives the draft its final name. */
    async complete(signal: AbortSignal): Promise<void> {
      const parts: SavedPart[] = [];
      for (const { from, to, name, saved } of copies) {
        const isSaved = await isThere(to);
        if (isSaved) await check?.({ of: from, at: to }, signal);
        parts.push(isSaved ? { name, saved } : { name });
      }
      const contents = await contentsOf(directory, savedNames(parts), signal);
      const manifest = formatManifest({ driver, ...(live ? { live } : {}), parts, contents });
      const mark = markOf(manifest);
      try {
        await write(MANIFEST, manifest);
        await write(MAC, await sealed(root, { metadata, mark }));
        await flush([directory]);
        await write(COMPLETE, mark);
        await rename(directory, join(root, id));
        complete = true;
        await fileOperations.syncDirectory(root);
      } catch (cause) {
        throw ioError('write', directory, cause);
      }
    },
    /** Removes the draft, even when it is complete. */
    async discard(): Promise<void> {
      if (complete) return deleteSnapshot(root, { id, directory: join(root, id) });
      await rm(directory, { recursive: true, force: true }).catch((cause: unknown) => {
        throw ioError('remove', directory, cause);
      });
    },
  };
}

export interface SnapshotMaking {
  /** Directory of all snapshots. */
  root: string;
  driver: Pick<Driver, 'name' | 'keeps' | 'keptKind' | 'copyLive' | 'checkKept'>;
  maintenance: Pick<Maintenance, 'run' | 'runLive'>;
  rest: BackendRest;
  desired(): Desired;
  /** Runs work that stops the backend. A failure is reported when the backend is back. */
  interrupting<T>(work: () => Promise<T>): Promise<T>;
  copy?: DraftInput['copy'];
}

export interface NewSnapshot {
  record: SnapshotRecord;
  /** Description for people: `Creating snapshot "x"`. */
  action: string;
  /** Whether to stop the backend even if it could be copied while it runs. */
  stop: boolean;
}

/**
 * Makes a snapshot. A converged running backend keeps running if its driver can copy it live; otherwise it is stopped meanwhile. On failure nothing
 * is left of the snapshot.
 */
export async function makeSnapshot(
  making: SnapshotMaking,
  { record, action, stop }: NewSnapshot,
  signal: AbortSignal,
): Promise<void> {
  const { root, driver, maintenance, rest, interrupting } = making;
  const { copyLive } = driver;
  await rest.begin(action, signal);
  const draft = draftOf(making, record);
  const saveStopped = () => maintenance.run(action, signal, (work) => draft.saveStopped(work));
  const saveLive = (copyAll: CopyAll) => maintenance.runLive(action, signal, (work) => draft.saveLive(work, copyAll));
  const make = async (save: () => Promise<void>): Promise<void> => {
    try {
      await save();
      await draft.complete(signal);
    } catch (error) {
      await draft.discard();
      throw error;
    }
    await rest.end(signal).catch(async (error: unknown) => {
      // A user who cancels the wait does not want the snapshot.
      await deleteSnapshot(root, await findSnapshot(root, record.name));
      throw error;
    });
  };
  if (copyLive && !stop && (await rest.isSteady(signal))) await make(() => saveLive(copyLive));
  else await interrupting(() => make(saveStopped));
}

type CopyAll = NonNullable<Driver['copyLive']>;
type CopyWork = Pick<MaintenanceWork, 'signal' | 'progress'>;

/** Creates a draft of everything that the driver keeps. `covers` is the generation of the change that a safety snapshot precedes. */
export function draftOf(
  { root, driver, desired, copy }: Pick<SnapshotMaking, 'root' | 'driver' | 'desired' | 'copy'>,
  record: SnapshotRecord,
  covers?: number,
) {
  const { keeps, checkKept } = driver;
  const draft = createDraft({
    ...{ root, record, driver: driver.name, kept: keeps },
    ...defined({ covers }),
    settings: () => `${JSON.stringify(desired().settings, null, 2)}\n`,
    ...(copy ? { copy } : {}),
    ...(checkKept ? { check: (saved, until) => checkKept(saved, until) } : {}),
  });
  return {
    ...draft,
    /** Copies from the stopped backend. */
    async saveStopped(work: CopyWork): Promise<void> {
      await refuseTaken(root, record);
      work.progress(`copying ${sizeText(await checkSpace(keeps, dirname(root)))}`);
      await draft.save(work.signal);
    },
    /** Copies from the running backend. */
    async saveLive(work: CopyWork, copyAll: CopyAll): Promise<void> {
      await refuseTaken(root, record);
      const size = sizeText(await checkSpace(keeps, dirname(root), false));
      work.progress(`copying ${size}`);
      const progress = (share: number) => work.progress(`copying ${size}, ${Math.floor(share * 100)} %`);
      await draft.save(work.signal, (copies, until) => copyAll(copies, until, progress));
    },
  };
}

/** Throws if the name has been taken since the request. */
async function refuseTaken(root: string, { name }: SnapshotRecord): Promise<void> {
  const { snapshots } = await readCatalogue(root);
  checkUnique(
    name,
    snapshots.map((snapshot) => snapshot.name),
  );
}
