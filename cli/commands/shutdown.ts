import { readFile } from 'node:fs/promises';
import { createClient } from '../../src/client/client.ts';
import type { Connection } from '../../src/client/connection.ts';
import type { Server } from '../../src/client/contract.ts';
import { homeService } from '../../src/client/home-service.ts';
import { hungServiceAdvice, waitForExit } from '../../src/client/session/exit.ts';
import { requireNamed } from '../../src/client/session/find.ts';
import { homeOf, isElsewhere, namesService } from '../../src/client/session/home.ts';
import { RdError } from '../../src/errors.ts';
import { isObject } from '../../src/json.ts';
import type { ProcessIdentity } from '../../src/os/process-list.ts';
import { processTable } from '../../src/os/process-table.ts';
import type { LockHolder } from '../../src/state/home-lock.ts';
import { noArguments } from '../arguments/arguments.ts';
import { TARGET_FLAG } from '../arguments/shared-flags.ts';
import { type Caller, defineCommand, type Io } from '../command.ts';

/** The service's reply. */
const SHUTDOWN_REPLY = 'Shutting down.\n';
const STOPPING = {
  late: 'the service was asked to stop but is still running',
  waiting: 'Waiting until the backend has stopped',
  cancelled: 'Interrupted; the service is still stopping.',
};
const STARTING = {
  late: 'the service is starting and cannot be stopped yet',
  waiting: 'Waiting until the service has started',
  cancelled: 'Interrupted before anything was stopped.',
};

export const shutdown = defineCommand({
  name: 'shutdown',
  summary: 'Stop the backend and the service',
  usage: '',
  description: `Asks the service to stop and waits until it has exited; nothing is ever killed. With
--wait=false, returns immediately. A service without a connection file is stopped with SIGTERM. If the last service
exited without stopping its backend, the backend is stopped regardless of the settings, and the next service does not
start it again. If there is nothing to stop, the command does nothing and prints nothing.

  rdctl shutdown`,
  flags: {
    wait: { type: 'boolean', summary: 'Wait until the service has exited (default true)' },
    target: TARGET_FLAG,
  },
  classic: true,
  endsService: true,
  async run(invocation) {
    noArguments(invocation.args, 'shutdown');
    await stopService(invocation.flags, invocation);
    return 0;
  },
});

/** The alias that people type after `up`. */
export const down = defineCommand({
  ...shutdown,
  name: 'down',
  classic: false,
  description: `The same as \`rdctl shutdown\`. Images, containers, volumes and settings stay; \`rdctl up\` starts the desktop again.

  rdctl down`,
  async run(invocation) {
    noArguments(invocation.args, 'down');
    await stopService(invocation.flags, invocation);
    return 0;
  },
});

interface StopInput {
  /** Whether to wait for the exit; true by default. */
  wait?: boolean;
  /** The value of `--target`. */
  target?: string;
}

/** Stops the service, or a backend that a killed one left running, and prints its reply. */
export async function stopService({ wait = true, target }: StopInput, caller: Caller): Promise<void> {
  const { globals, io, connect } = caller;
  for (;;) {
    let connection: Connection | undefined;
    let asked: { client: Server; pid: number | undefined; answer: string };
    try {
      connection = await connect();
      const client = createClient(connection);
      const pid = await pidOf(connection);
      // Checked first: the listener may be another program.
      await client.backendState({ signal: io.signal });
      if (connection.foreign) requireNamed('shutdown', connection, target, caller);
      asked = { client, pid, answer: await client.shutdown({ signal: io.signal }) };
    } catch (error) {
      const { otherVersion } = await import('../../src/client/session/other-version.ts');
      const other = connection && !io.signal.aborted && (await otherVersion(connection, globals, io));
      if ((await shutdownUnreachable(other || error, connection, wait, caller)) === 'done') return;
      continue;
    }
    const { client, pid, answer } = asked;
    if (wait) {
      const own = !globals.port && !isElsewhere(connection, globals, io);
      await waitUntilGone(() => serviceLives(client, pid, io), pid, io, { own });
      if (own) await refuseLeft(io);
    }
    io.out(`${answer}\n`);
    return;
  }
}

/**
 * Handles a service that does not answer: the home's lock shows whether one is alive and whether the last one left something running. Returns `again`
 * for one that was starting and is up now.
 */
async function shutdownUnreachable(
  error: unknown,
  connection: Connection | undefined,
  wait: boolean,
  { globals, io, connect }: Caller,
): Promise<'done' | 'again'> {
  if (!(error instanceof RdError)) throw error;
  const { hasMoved, leftoverText, STALE_FILE_ERRORS, processText, warnStale } = await import(
    '../../src/client/session/missing.ts'
  );
  const refused = error.code === 'ERR_NOT_RUNNING';
  if (namesService(globals, io) || globals.port) {
    if (!refused) throw error;
    warnStale(error, connection, io);
    if (!namesService(globals, io)) await warnLeftover(globals.port, io);
    return 'done';
  }
  const isOther = error.code === 'ERR_OTHER_VERSION';
  const isStale = isOther || STALE_FILE_ERRORS.includes(error.code);
  if (!isStale || (connection?.foreign && !refused)) throw error;
  const home = await homeService(homeOf(io));
  if (home.kind === 'none' || home.kind === 'left') warnStale(error, connection, io);
  switch (home.kind) {
    case 'running':
      // The password was given explicitly, or the service hangs: a signal would be wrong or useless.
      if (connection?.passwordFrom !== undefined || error.code === 'ERR_DEADLINE') throw error;
      if ((!connection && refused) || (connection && (await hasMoved(connection, connect)))) return 'again';
      await endBySignal(home.holder, processText(home), isOther, wait, io);
      if (wait) await refuseLeft(io);
      return 'done';
    case 'passing':
      return waitForHolder(home.holder, wait, io);
    case 'left':
      io.err(`${leftoverText(home, '; taking it over to stop it.')}\n`);
      return stopLeft(wait, io);
    case 'none':
      if (error.code === 'ERR_UNAUTHORIZED' || (error.code === 'ERR_CONNECTION_SETTINGS' && connection)) throw error;
      // The last service was not stopped, so the next one would restart the backend.
      if (home.cut !== undefined) return stopLeft(wait, io);
      if (!refused) io.err(`No service is running for this home; nothing was stopped: ${error.message}.\n`);
      return 'done';
  }
}

async function stopLeft(wait: boolean, io: Io): Promise<'done'> {
  const { launchStop } = await import('../../src/client/session/launch.ts');
  const child = await launchStop(io);
  if (wait) await waitUntilGone(async () => !(await child.gone()), child.pid, io);
  io.out(SHUTDOWN_REPLY);
  return 'done';
}

/** Waits for a service that is stopping, as if this command had stopped it; returns `again` for one that is starting. */
async function waitForHolder(holder: LockHolder, wait: boolean, io: Io): Promise<'done' | 'again'> {
  if (holder.ending) {
    if (wait) {
      await waitUntilGone(() => processTable.isAlive(holder), holder.pid, io);
      await refuseLeft(io);
    }
    io.out(SHUTDOWN_REPLY);
    return 'done';
  }
  const isStarting = async () => {
    const home = await homeService(homeOf(io));
    return home.kind === 'passing' && home.holder.pid === holder.pid && !home.holder.ending;
  };
  await waitUntilGone(isStarting, holder.pid, io, { words: STARTING });
  return 'again';
}

/** Throws if the backend is left. @throws RdError `ERR_DRIVER_FAILED` when the service has exited and its lock says that its backend did not stop. */
async function refuseLeft(io: Io): Promise<void> {
  const where = homeOf(io);
  const home = await homeService(where);
  if (home.kind !== 'left') return;
  throw new RdError('ERR_DRIVER_FAILED', `the service exited, but its backend (driver ${home.driver}) did not stop`, {
    advice: `Check the logs in ${where.logs}. \`rdctl shutdown\` tries again; \`rdctl start\` takes the backend over.`,
  });
}

/** Warns that nothing listens on the given port, and about a backend that a killed service left. */
async function warnLeftover(port: number | undefined, io: Io): Promise<void> {
  const { leftoverText } = await import('../../src/client/session/missing.ts');
  const home = await homeService(homeOf(io));
  if (home.kind !== 'left') return;
  io.err(`Nothing is listening on port ${port}; nothing was stopped.\n`);
  io.err(`${leftoverText(home, ': `rdctl shutdown` without --port stops it.')}\n`);
}

async function endBySignal(
  holder: ProcessIdentity,
  who: string,
  isOther: boolean,
  wait: boolean,
  io: Io,
): Promise<void> {
  const { terminate } = await import('../../src/os/process-table.ts');
  if (!(await terminate(holder))) {
    throw new RdError(
      'ERR_CONNECTION',
      `the service (${who}) cannot be reached because its connection file is missing`,
      {
        advice: `Check that process ${holder.pid} is the service, then kill it.`,
      },
    );
  }
  const why = isOther
    ? `The service (${who}) is another version of rdctl`
    : `The connection file of the service (${who}) does not point to it`;
  io.err(`${why}; sent SIGTERM.\n`);
  if (wait) await waitUntilGone(() => processTable.isAlive(holder), holder.pid, io);
}

/** Returns the process that the connection file names; undefined when it names none. */
async function pidOf({ file }: Connection): Promise<number | undefined> {
  if (file === undefined) return undefined;
  const text = await readFile(file, 'utf8').catch(() => '{}');
  const value: unknown = JSON.parse(text);
  return isObject(value) && typeof value.pid === 'number' ? value.pid : undefined;
}

/** Waits until a service has exited. `own`: whether it is that of this home. */
async function waitUntilGone(
  lives: () => Promise<boolean>,
  pid: number | undefined,
  io: Io,
  { own = true, words = STOPPING } = {},
) {
  const advice =
    pid !== undefined && own
      ? hungServiceAdvice(pid, io)
      : `Check its log${pid === undefined ? '' : `, or kill process ${pid}`}.`;
  await waitForExit({ lives, io, advice, ...words });
}

/** Whether the port is open, or the process is alive. */
async function serviceLives(client: Server, pid: number | undefined, io: Io): Promise<boolean> {
  if (pid !== undefined) return processTable.isAlive({ pid });
  try {
    await client.request({ method: 'GET', path: '/', timeoutMs: 2000, signal: io.signal });
    return true;
  } catch (error) {
    if (error instanceof RdError) return error.code === 'ERR_DEADLINE';
    throw error;
  }
}
