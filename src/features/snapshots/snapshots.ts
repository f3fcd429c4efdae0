import { basename, dirname, join } from 'node:path';
import { LOCKED, OPERATION_CANCELED, RdError } from '../../errors.ts';
import { defined } from '../../json.ts';
import type { Clock } from '../../os/clock.ts';
import type { LogFile } from '../../os/log-file.ts';
import { sizeText } from '../../os/size.ts';
import { createBackendRest } from '../../reconcile/backend-wait.ts';
import type { Controllers, Desired } from '../../reconcile/contract.ts';
import type { Maintenance } from '../../reconcile/maintenance.ts';
import type { Settings } from '../../settings/settings.gen.ts';
import { deleteSnapshot, findSnapshot, readCatalogue, requireOwn, SETTINGS } from './catalogue.ts';
import type { SafetySnapshots, Snapshots } from './contract.ts';
import { makeSnapshot, type SnapshotMaking } from './creation.ts';
import type { KeptState } from './kept-state.ts';
import { checkKind, type Manifest, readManifest, verify, verifyShape } from './manifest.ts';
import { checkName, checkUnique, quoted } from './name.ts';
import type { Proof } from './proof.ts';
import { createSafetySnapshots, type SafetySnapshotsInput } from './safety-snapshots.ts';
import { stagedPath } from './swap.ts';
import { checkSpace } from './tree.ts';

export interface SnapshotsInput {
  /** Directory of all snapshots. */
  root: string;
  driver: SnapshotMaking['driver'];
  maintenance: Pick<Maintenance, 'run' | 'runLive' | 'heldBy' | 'idle'>;
  controllers: Pick<Controllers, 'status' | 'onChange' | 'look'>;
  desired(): Desired;
  keptState: Pick<KeptState, 'replace'>;
  proof: Proof;
  /** Reads the settings in a file as they would apply here. Throws if they are invalid. */
  readSettings(file: string): Promise<Settings>;
  log: LogFile['write'];
  copy?: SnapshotMaking['copy'];
  /** Path of the record of a safety snapshot. */
  safetySnapshotRecord: string;
  safetySnapshotInput: Pick<SafetySnapshotsInput, 'entries' | 'since' | 'notice'>;
  clock?: Clock;
}

export interface SnapshotService extends Snapshots {
  safetySnapshots: SafetySnapshots;
  /** Cancels the current operation, waits for its end, and refuses others. */
  close(): Promise<void>;
}

interface Operation {
  abort: AbortController;
  ended: Promise<unknown>;
  /** Id of the snapshot being read. */
  reads?: string;
}

export function createSnapshots(input: SnapshotsInput): SnapshotService {
  const { root, driver, maintenance, keptState, proof, log } = input;
  const closing = new AbortController();
  const rest = createBackendRest({ ...input, closing: closing.signal });
  let operation: Operation | undefined;

  async function exclusively<T>(reads: string | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (operation || closing.signal.aborted) throw new RdError('ERR_BACKEND_LOCKED', LOCKED);
    const abort = new AbortController();
    const ended = work(abort.signal);
    operation = { abort, ended: ended.catch(() => undefined), ...defined({ reads }) };
    try {
      return await ended;
    } finally {
      operation = undefined;
    }
  }

  /** Runs work that stops the backend. A failure is reported only when the backend is back, because the message says so. */
  async function interrupting<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      await rest.end(closing.signal);
      throw error;
    }
  }

  async function catalogue() {
    const { snapshots, warnings } = await readCatalogue(root);
    for (const warning of warnings) log('warn', warning);
    return snapshots;
  }

  async function cancel(): Promise<boolean> {
    const current = operation;
    current?.abort.abort();
    await current?.ended;
    return current !== undefined;
  }

  const safetySnapshots = createSafetySnapshots({
    making: { ...input, rest, interrupting },
    exclusively: (work) => exclusively(undefined, work),
    isOn: () => input.controllers.status().machine.state === 'on',
    restoring: () => operation?.reads,
    record: input.safetySnapshotRecord,
    ...input.safetySnapshotInput,
    log,
  });

  return {
    safetySnapshots,
    cancel,
    async close() {
      closing.abort();
      await cancel();
      await safetySnapshots.close();
    },
    async list() {
      return (await catalogue()).map(({ created, name, description, foreign }) => ({
        ...{ created, name, description },
        ...(foreign ? { foreign } : {}),
      }));
    },
    async create(name, description, { stop = false } = {}) {
      checkName(name);
      const taken = await catalogue();
      checkUnique(
        name,
        taken.map((snapshot) => snapshot.name),
      );
      const action = `Creating snapshot ${quoted(name)}`;
      const record = { created: new Date().toISOString(), name, description };
      await relabel('failed to create snapshot', '', () =>
        exclusively(undefined, async (signal) => {
          await makeSnapshot({ ...input, rest, interrupting }, { record, action, stop }, signal);
          log('info', 'snapshot created', { name });
        }),
      );
    },
    async remove(name) {
      await relabel(`failed to delete snapshot ${quoted(name)}`, '', async () => {
        const snapshot = await findSnapshot(root, name);
        if (operation?.reads === snapshot.id) throw new RdError('ERR_SNAPSHOT', 'it is being restored');
        await deleteSnapshot(root, snapshot);
        log('info', 'snapshot deleted', { name });
      });
    },
    async restore(name, { foreign: consent = false } = {}) {
      const action = `Restoring snapshot ${quoted(name)}`;
      await relabel(`failed to restore snapshot ${quoted(name)}`, ', and everything is as it was before', async () => {
        const snapshot = await findSnapshot(root, name);
        requireOwn(snapshot, consent);
        const { id, directory, mark, foreign = false } = snapshot;
        await exclusively(id, async (signal) => {
          await rest.begin(action, signal);
          const manifest = await readManifest(directory, mark);
          const sources = sourcesOf(manifest, directory);
          // Find every problem while the backend still runs.
          await verify(directory, manifest, signal);
          const settings = await input.readSettings(join(directory, SETTINGS));
          await interrupting(async () => {
            await maintenance.run(action, signal, async (work) => {
              for (const live of driver.keeps) {
                const source = sources.get(live);
                if (source === undefined) continue;
                work.progress(`copying ${sizeText(await checkSpace([source], dirname(live)))}`);
              }
              await keptState.replace(
                {
                  snapshot: name,
                  settings,
                  source: (live) => sources.get(live),
                  async check(parts) {
                    const staged = parts.flatMap((part) => {
                      const source = sources.get(part.live);
                      return source === undefined
                        ? []
                        : [{ of: part.live, at: stagedPath(part), name: basename(source) }];
                    });
                    await verifyShape(
                      staged.map(({ at, name }) => [at, name] as const),
                      manifest,
                    );
                    for (const copy of staged) await driver.checkKept?.(copy, work.signal);
                  },
                },
                work,
              );
            });
            await proof.waitUntilProven(action, signal);
          });
          log('info', 'snapshot restored', { name, foreign });
        });
      });
    },
  };

  /** Returns the source of each kept path. Throws for a snapshot of another driver, and for parts of another kind. */
  function sourcesOf(manifest: Manifest, directory: string): Map<string, string> {
    if (manifest.driver !== driver.name) {
      throw new RdError(
        'ERR_SNAPSHOT',
        `it was made with the driver ${manifest.driver}, and this service uses ${driver.name}`,
      );
    }
    checkKind(manifest, SETTINGS, 'file');
    const sources = new Map<string, string>();
    for (const { name, saved } of manifest.parts) {
      const live = driver.keeps.find((path) => basename(path) === name);
      if (live === undefined)
        throw new RdError('ERR_SNAPSHOT', `it holds "${name}", which this release does not recognize`);
      if (saved === undefined) continue;
      checkKind(manifest, saved, driver.keptKind);
      sources.set(live, join(directory, saved));
    }
    return sources;
  }
}

/** Prefixes an error with the operation, in the form that scripts match. Bugs pass unchanged. */
async function relabel(operation: string, afterCancel: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (cause) {
    if (!(cause instanceof RdError) && !isAbort(cause)) throw cause;
    const cancelled = isAbort(cause) || cause.code === 'ERR_CANCELLED';
    const text = cancelled ? `${OPERATION_CANCELED}${afterCancel}` : cause.message;
    throw new RdError('ERR_SNAPSHOT', `${operation}: ${text}`, {
      cause,
      ...(cancelled || isAbort(cause) ? {} : { details: cause.details, ...defined({ advice: cause.advice }) }),
    });
  }
}

function isAbort(error: unknown): error is DOMException {
  return error instanceof DOMException && error.name === 'AbortError';
}
