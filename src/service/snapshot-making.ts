import { dirname } from 'node:path';
import type { Driver } from '../drivers/driver.ts';
import { deleteSnapshot, findSnapshot, readCatalogue } from '../features/snapshots/catalogue.ts';
import type { SnapshotRecord } from '../features/snapshots/contract.ts';
import { checkSpace } from '../features/snapshots/copy.ts';
import { createDraft, type Draft, type DraftInput } from '../features/snapshots/draft.ts';
import { checkUnique } from '../features/snapshots/name.ts';
import { sizeText } from '../os/size.ts';
import type { Desired } from '../reconcile/contract.ts';
import type { BackendRest } from './backend-rest.ts';
import type { Maintenance } from './maintenance.ts';

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
