import { existsSync } from 'node:fs';
import { rmdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createClient } from '../../../src/client/client.ts';
import type { Connection } from '../../../src/client/connection.ts';
import type { EventClient, LifecycleClient, PlanClient, Server } from '../../../src/client/contract.ts';
import { blockingCondition } from '../../../src/client/converge.ts';
import { homeService } from '../../../src/client/home-service.ts';
import { isStaying, stopOwnService } from '../../../src/client/session/exit.ts';
import { askService } from '../../../src/client/session/find.ts';
import { homeOf, isElsewhere } from '../../../src/client/session/home.ts';
import { launchService } from '../../../src/client/session/launch.ts';
import { type SnapshotCalls, snapshotCalls } from '../../../src/client/snapshots.ts';
import { OPERATION_CANCELED, RdError } from '../../../src/errors.ts';
import { deleteSnapshot, findSnapshot, readCatalogue, requireOwn } from '../../../src/features/snapshots/catalogue.ts';
import type { SnapshotRecord } from '../../../src/features/snapshots/contract.ts';
import { quoted } from '../../../src/features/snapshots/name.ts';
import { defined } from '../../../src/json.ts';
import { steadyClock } from '../../../src/os/clock.ts';
import type { PlanRequest } from '../../../src/plan/change.ts';
import { refuseRunning, requireAdopted } from '../../../src/state/drop-in.ts';
import { lockHome } from '../../../src/state/home-lock.ts';
import type { Caller, FlagTable, Io } from '../../command.ts';
import { printInterruptions, serviceLine } from '../../views/service-activity.ts';
import { plainText } from '../../views/text.ts';
import { workText } from '../../views/work-text.ts';

/** The flag `--json` of every snapshot command, before or after the subcommand. */
export const JSON_FLAG = {
  json: { type: 'boolean', summary: 'Print JSON: records, and errors as {"error": TEXT}' },
} as const satisfies FlagTable;

/** A server that makes, restores and deletes snapshots. */
export interface SnapshotServer {
  client: Server & Pick<LifecycleClient, 'backendState' | 'shutdown'>;
  /** Reports of our service about its activity; absent for another application, whose messages are different. */
  reports?: PlanClient & LifecycleClient & EventClient;
}

/** Returns the running service, ours or another application's; undefined when none runs. */
export async function snapshotServer(caller: Caller): Promise<SnapshotServer | undefined> {
  const asked = await askService(caller, async (connection) => {
    const server = serverAt(connection);
    // Checked first: the listener may be another program.
    await server.client.backendState({ signal: caller.io.signal });
    return server;
  });
  return 'answer' in asked ? asked.answer : undefined;
}

function serverAt(connection: Connection): SnapshotServer {
  const client = createClient(connection);
  return connection.foreign ? { client } : { client, reports: client };
}

interface OperationInput {
  caller: Caller;
  /** Whether to print no text on stderr. */
  json: boolean;
  /** Message on Ctrl-C: `Cancelling snapshot creation...`. */
  cancelling: string;
  /** Error when the service was killed midway: the state that it leaves, and how it is recovered. */
  cutOff: { message: string; advice: string };
  work(calls: SnapshotCalls): Promise<unknown>;
}

/**
 * Runs the operation in the running service, or in one started for it, with the backend off. A signal cancels the
 * operation and waits for the rollback. Waits for a service that another command started for itself.
 * @throws RdError `ERR_SNAPSHOT` with the service's message, `ERR_CANCELLED` after a signal.
 */
export async function operate(server: SnapshotServer | undefined, input: OperationInput): Promise<void> {
  const { globals, io } = input.caller;
  let found = server;
  for (;;) {
    if (found && (await isStaying(found.client, input.caller))) return cancelOnSignal(found, input);
    const { connection, pid } = await launchService({ io, globals, power: 'keep', idle: true, quiet: input.json });
    found = serverAt(connection);
    if (pid !== undefined) return operateAlone(found, pid, input);
  }
}

/** Runs the operation in a service started for it. */
async function operateAlone(own: SnapshotServer, pid: number, input: OperationInput): Promise<void> {
  try {
    await cancelOnSignal(own, input);
  } finally {
    await stopOwnService(own.client, pid, { io: input.caller.io, quiet: input.json });
  }
}

async function cancelOnSignal(
  { client, reports }: SnapshotServer,
  { caller, json, cancelling, cutOff, work }: OperationInput,
): Promise<void> {
  const { io } = caller;
  const calls = snapshotCalls(client);
  let cancel: Promise<unknown> | undefined;
  const onSignal = () => {
    if (!json) io.err(`${cancelling}\n`);
    // The pending request reports the outcome.
    cancel = calls.cancel().catch(() => undefined);
  };
  if (io.signal.aborted) throw new RdError('ERR_CANCELLED', 'Nothing was started.');
  io.signal.addEventListener('abort', onSignal, { once: true });
  const stopShowing = json || !reports ? async () => {} : serviceLine(reports, io, { text: workText, prints: true });
  try {
    await work(calls);
  } catch (error) {
    await cancel;
    if (!(error instanceof RdError)) throw error;
    if (await hasEnded(client, error, caller)) {
      throw new RdError(error.code, `${cutOff.message}: the service exited before it finished`, {
        cause: error,
        advice: cutOff.advice,
      });
    }
    // The operation may have failed by itself just then, and another application reports its own outcome.
    if (!cancel || (reports && !error.message.includes(OPERATION_CANCELED))) throw error;
    const advice = reports ? { advice: 'Nothing was changed.' } : {};
    throw new RdError('ERR_CANCELLED', error.message, { cause: error, ...advice });
  } finally {
    io.signal.removeEventListener('abort', onSignal);
    await stopShowing();
  }
}

const LOOK_MS = 40;
/** Milliseconds that a killed service may take to disappear. */
const EXIT_LIMIT_MS = 3000;

/** Whether a request failed because the service of this home has exited. */
async function hasEnded({ connection }: Server, error: RdError, { globals, io }: Caller): Promise<boolean> {
  if (isElsewhere(connection, globals, io)) return false;
  if (error.code !== 'ERR_CONNECTION' && error.code !== 'ERR_NOT_RUNNING') return false;
  // A killed process closes its connections before it disappears.
  const deadline = steadyClock.now() + EXIT_LIMIT_MS;
  while (await serviceLives(io)) {
    if (steadyClock.now() >= deadline) return false;
    await steadyClock.sleep(LOOK_MS);
  }
  return true;
}

async function serviceLives(io: Io): Promise<boolean> {
  const { kind } = await homeService(homeOf(io));
  return kind === 'running' || kind === 'passing';
}

/** Explains what happens to the backend after the operation. */
const AFTERWARDS = {
  create: 'The backend starts again once the copy is complete.',
  restore: 'This happens once the snapshot is verified; the backend then starts with its data.',
};

interface Operation {
  do: keyof typeof AFTERWARDS;
  name: string;
  /** Whether to stop the backend even if a running machine could be copied. */
  stop: boolean;
}

/** Prints to stderr what the operation will interrupt; nothing when an invalid name prevents it. */
export async function printInterruption(
  { client, reports }: SnapshotServer,
  operation: Operation,
  io: Io,
): Promise<void> {
  if (!reports) return;
  const known = await Promise.all([snapshotCalls(client).list(io.signal), reports.status({ signal: io.signal })]).catch(
    () => undefined,
  );
  if (!known) return;
  const [records, status] = known;
  if (records.some(({ name }) => name === operation.name) !== (operation.do === 'restore')) return;
  if (!operation.stop && status.access && status.converged) return;
  const stopping: PlanRequest = { settings: {}, state: 'stopped', prune: [] };
  // The plan of a stop knows what a restore interrupts, but not what it starts.
  const words = ({ what }: { what: string }) => (operation.do === 'restore' ? (what.split('; ')[0] ?? what) : what);
  if (await printInterruptions(reports, stopping, io, words)) io.err(`notice: ${AFTERWARDS[operation.do]}\n`);
}

/** Prints to stderr when the backend did not come back, which does not undo the operation. */
export async function printNotReady({ reports }: SnapshotServer, io: Io): Promise<void> {
  const status = await reports?.status({ signal: io.signal }).catch(() => undefined);
  if (!status || status.converged) return;
  const why = blockingCondition(status)?.message ?? 'see `rdctl status`.';
  io.err(
    `notice: The snapshot is complete, but the backend is not running (${status.backendState}): ${plainText(why)}\n`,
  );
}

/** Runs work and returns the exit code. With `--json` a failure is printed as an object on stdout; otherwise it is rethrown. */
export async function reporting(json: boolean, io: Io, work: () => Promise<void>): Promise<number> {
  try {
    await work();
    return 0;
  } catch (error) {
    if (!json || !(error instanceof RdError) || error.code === 'ERR_USAGE') throw error;
    io.out(`${jsonLine({ error: error.message })}\n`);
    return error.code === 'ERR_CANCELLED' ? 130 : error.code === 'ERR_WRONG_TARGET' ? 3 : 1;
  }
}

/** Formats one line of JSON, escaped as by Rancher Desktop's `rdctl`. */
export function jsonLine(value: object): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Returns the snapshots on disk, for when no service runs. Skipped ones are reported on stderr. */
export async function storedSnapshots(io: Io): Promise<SnapshotRecord[]> {
  const { snapshots, warnings } = await readCatalogue(homeOf(io).snapshots);
  for (const warning of warnings) io.err(`notice: ${plainText(warning)}\n`);
  return snapshots;
}

/**
 * Checks a snapshot on disk, to avoid starting a service for an unknown name, or for a snapshot from elsewhere without the user's consent.
 * @throws RdError `ERR_SNAPSHOT` with the service's message.
 */
export async function checkStored(name: string, foreign: boolean, io: Io): Promise<void> {
  try {
    requireOwn(await findSnapshot(homeOf(io).snapshots, name), foreign);
  } catch (cause) {
    throwFailure('restore', name, cause);
  }
}

/**
 * Checks a snapshot in the list of a service, before the user is asked anything. The service checks it again.
 * @throws RdError `ERR_SNAPSHOT` with the service's message.
 */
export async function checkListed(server: Server, name: string, foreign: boolean, io: Io): Promise<void> {
  const records = await snapshotCalls(server)
    .list(io.signal)
    .catch(() => []);
  const named = records.filter((record) => record.name === name);
  const [one] = named.filter((record) => !record.foreign).concat(named);
  try {
    if (one) requireOwn(one, foreign);
  } catch (cause) {
    throwFailure('restore', name, cause);
  }
}

/**
 * Deletes a snapshot while no service runs, and keeps one from starting meanwhile. Leaves no new directories behind.
 * @throws RdError `ERR_SNAPSHOT` with the service's message, `ERR_WRONG_TARGET` for directories that were not adopted.
 */
export async function deleteStored(name: string, io: Io): Promise<void> {
  const here = homeOf(io);
  await requireAdopted(here);
  try {
    await findSnapshot(here.snapshots, name);
    const absent = absentDirectories(here.serviceLock);
    const lock = await lockHome(here.serviceLock, here.data);
    try {
      await refuseRunning(here);
      await deleteSnapshot(here.snapshots, await findSnapshot(here.snapshots, name));
    } finally {
      await lock.release();
      for (const path of absent) await rmdir(path).catch(() => undefined);
    }
  } catch (error) {
    throwFailure('delete', name, error);
  }
}

/** Returns the missing directories of a path, innermost first. */
function absentDirectories(path: string): string[] {
  return existsSync(path) ? [] : [path, ...absentDirectories(dirname(path))];
}

function throwFailure(action: string, name: string, cause: unknown): never {
  if (!(cause instanceof RdError)) throw cause;
  const { message, details, advice } = cause;
  throw new RdError('ERR_SNAPSHOT', `failed to ${action} snapshot ${quoted(name)}: ${message}`, {
    cause,
    details,
    ...defined({ advice }),
  });
}
