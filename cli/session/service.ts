import { type Client, createClient } from '../../src/client/client.ts';
import type { Connection } from '../../src/client/connection.ts';
import { SERVICE_STOP_MS } from '../../src/client/home-service.ts';
import { answerLimit, withinTime } from '../../src/client/http.ts';
import { RdError } from '../../src/errors.ts';
import { type Clock, steadyClock } from '../../src/os/clock.ts';
import type { Target } from '../../src/plan/change.ts';
import { COMPATIBLE } from '../../src/product.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import { type LockHolder, lockHolder } from '../../src/state/home-lock.ts';
import type { Caller, GlobalFlags, Io } from '../command.ts';
import { passingLine } from '../views/progress.ts';
import { homeOf, namesService } from './home.ts';
import type { MissingService } from './missing-service.ts';

export type Asked<T> = { answer: T } | { missing: MissingService };

/**
 * Sends a request to the service of the connection file. If none answers, the home's lock decides whether one exists; a
 * service that started after the file was read has a new file, and is asked instead.
 * @throws the error, with what the lock adds, when a service is alive, was named, or is another application's.
 */
export async function askService<T>(caller: Caller, ask: (connection: Connection) => Promise<T>): Promise<Asked<T>> {
  for (;;) {
    let connection: Connection | undefined;
    try {
      connection = await caller.connect();
      return { answer: await ask(connection) };
    } catch (error) {
      const { missingService } = await import('./missing-service.ts');
      const missing = await missingService(error, caller, connection);
      if (missing !== 'moved') return { missing };
    }
  }
}

/** A service of ours, or another application (`client.foreign`), with its status. */
export interface Service {
  client: Client;
  status: StatusDocument;
}

/**
 * The running service, ours or another application's; `undefined` when none runs, or when another program is listening on
 * the port of a stopped one. No request outlives `leftMs`. Throws the failure when a service was named or is alive.
 */
export async function runningService(invocation: Caller, leftMs?: () => number): Promise<Service | undefined> {
  const found = await findService(invocation, leftMs);
  return 'client' in found ? found : undefined;
}

/**
 * Like `runningService`, for commands whose work the service must outlive: waits out a service of this home that is
 * exiting.
 */
export async function lastingService(caller: Caller, leftMs: () => number): Promise<Service | undefined> {
  for (;;) {
    const service = await runningService(caller, leftMs);
    if (!service) return undefined;
    if (await isStaying(service.client, caller, service.status.pid)) return service;
    await waitForOtherService(caller.io, { leftMs });
  }
}

/** Like `runningService`, for commands that need one. */
export async function requireService(invocation: Caller): Promise<Service> {
  const found = await findService(invocation);
  if ('client' in found) return found;
  const { startAdvice } = await import('./missing-service.ts');
  throw new RdError('ERR_NOT_RUNNING', 'No service is running.', { advice: startAdvice(found) });
}

async function findService(invocation: Caller, leftMs?: () => number): Promise<Service | MissingService> {
  const { signal } = invocation.io;
  const ask = async (connection: Connection): Promise<Service> => {
    const client = leftMs ? createClient(connection, withinTime(leftMs)) : createClient(connection);
    // Use half the time at most: a silent listener may have to be replaced by a service of ours.
    const first = leftMs ? { timeoutMs: Math.min(answerLimit({ method: 'GET' }), leftMs() / 2) } : {};
    return client.status({ signal, ...first }).then(
      (status) => ({ client, status }),
      (error: unknown) => otherApplication(client, error, signal),
    );
  };
  if (wasNamed(invocation)) return ask(await invocation.connect());
  const found = await askService(invocation, ask);
  return 'answer' in found ? found.answer : found.missing;
}

/** A server without our status that replies with the API's own errors is another application that implements it. */
async function otherApplication(plain: Client, error: unknown, signal: AbortSignal): Promise<Service> {
  if (!(error instanceof RdError) || error.code !== 'ERR_NOT_FOUND') throw error;
  const { createForeignClient } = await import('../../src/client/foreign-client.ts');
  const client = createForeignClient(plain);
  return { client, status: await client.status({ signal }) };
}

/** The target of a status, as shown in plans. */
export function targetOf({ product, home, driver, settingsVersion }: StatusDocument): Target {
  const target = { product, home, driver: driver.name, simulated: driver.simulated };
  return settingsVersion === undefined ? target : { ...target, settingsVersion };
}

function wasNamed({ globals, io }: Caller): boolean {
  const { host, port } = globals;
  return [globals['config-path'], io.env.RDCTL_CONFIG_PATH, host, port].some(
    (given) => given !== undefined && given !== '' && given !== 0,
  );
}

/** `--target` of commands that change more than single settings: names an auto-discovered application. */
export const TARGET_FLAG = {
  type: 'string',
  summary: `Act on the ${COMPATIBLE.productName} installation that was found`,
  values: [COMPATIBLE.target],
} as const;

/** True when the user named the other application; see docs/drop-in.md. */
function names(target: string | undefined, globals: GlobalFlags, io: Io): boolean {
  return Boolean(target || globals['config-path'] || io.env.RDCTL_CONFIG_PATH || io.env.RDCTL_COMPAT);
}

/**
 * Refuses to change an application that was not named. `command` is the command that would name it. Throws
 * `ERR_WRONG_TARGET`.
 */
export function requireNamed(
  command: string,
  { file, host, port }: Connection,
  target: string | undefined,
  { globals, io }: { globals: GlobalFlags; io: Io },
): void {
  if (names(target, globals, io)) return;
  const where = file === undefined ? `at ${host}:${port}` : `through ${file}`;
  throw new RdError('ERR_WRONG_TARGET', `the running application is ${COMPATIBLE.productName}, found ${where}`, {
    advice: `To use it, add --target: rdctl ${command} --target ${COMPATIBLE.target}`,
  });
}

export interface ExitingServiceOptions {
  /** Print nothing to stderr. */
  quiet?: boolean;
  /** The caller's remaining milliseconds. */
  leftMs?: () => number;
  clock?: Clock;
}

const LOOK_MS = 25;
/** Longer waits are reported. */
const QUIET_MS = 1000;

/** The service of this home, if it is exiting: it was asked to stop, or runs for a single command. */
export async function exitingService(io: Io): Promise<LockHolder | undefined> {
  const holder = await lockHolder(homeOf(io).serviceLock);
  return holder?.alive && (holder.idle || holder.ending) ? holder : undefined;
}

/**
 * Whether a service that answered is staying: it is not exiting and has not exited since. `pid`: of the service, where
 * known. Another application, or a service named explicitly, always counts as staying.
 */
export async function isStaying(
  { connection, backendState }: Client,
  { globals, io }: Caller,
  pid?: number,
): Promise<boolean> {
  if (connection.foreign || globals.port || namesService(globals, io)) return true;
  const holder = await lockHolder(homeOf(io).serviceLock);
  if (holder?.alive && (holder.idle || holder.ending)) return false;
  if (holder?.alive && (pid === undefined ? holder.port === connection.port : holder.pid === pid)) return true;
  return backendState({ signal: io.signal }).then(
    () => true,
    () => false,
  );
}

/**
 * Waits until no service of this home is exiting: without limit for one that runs for a command, otherwise for the time
 * that a stop may take.
 * @throws RdError `ERR_CANCELLED` by the signal, `ERR_DEADLINE` when the caller's time is up, or for a hung service.
 */
export async function waitForOtherService(
  io: Io,
  { quiet, leftMs, clock = steadyClock }: ExitingServiceOptions = {},
): Promise<void> {
  const line = passingLine({ err: io.err, progress: io.progress && !quiet });
  let waiting: { on: string; since: number } | undefined;
  try {
    for (;;) {
      const holder = await exitingService(io);
      if (io.signal.aborted) throw new RdError('ERR_CANCELLED', 'Nothing was started.');
      if (!holder) return;
      const on = reason(holder);
      if (waiting?.on !== on) {
        waiting = { on, since: clock.now() };
        line.clear();
        if (!quiet) io.err(`notice: ${on}; waiting for it to exit.\n`);
      }
      const waited = clock.now() - waiting.since;
      if (leftMs && leftMs() <= 0) {
        throw new RdError('ERR_DEADLINE', `the last service (pid ${holder.pid}) did not exit in time`, {
          advice: 'Wait for it, or use a longer --timeout.',
        });
      }
      if (holder.ending && waited >= SERVICE_STOP_MS) {
        throw hangs(
          `the last service (pid ${holder.pid}) was asked to stop but is still running`,
          hungServiceAdvice(holder.pid, io),
        );
      }
      if (waited >= QUIET_MS) line.draw(waitedText(`Waiting for service ${holder.pid} to exit`, waited, holder));
      await clock.sleep(LOOK_MS, io.signal);
    }
  } finally {
    line.clear();
  }
}

function reason({ pid, ending }: LockHolder): string {
  return ending
    ? `The last service (pid ${pid}) is stopping`
    : `Another command needs the backend off (service ${pid})`;
}

export interface ExitWait {
  lives(): Promise<boolean>;
  io: Io;
  /** Message prefix when it hangs, before the duration. */
  late: string;
  /** Shown on a terminal. */
  waiting: string;
  /** Message when a signal aborts the wait; without it, signals do not. */
  cancelled?: string;
  advice: string;
  quiet?: boolean;
  clock?: Clock;
}

/**
 * Waits for a service to exit, for the time that a stop may take.
 * @throws RdError `ERR_DEADLINE` for a hung service, `ERR_CANCELLED` by the signal.
 */
export async function waitForExit(wait: ExitWait): Promise<void> {
  const { lives, io, late, waiting, cancelled, quiet, clock = steadyClock } = wait;
  const line = passingLine({ err: io.err, progress: io.progress && !quiet });
  const begun = clock.now();
  try {
    while (await lives()) {
      if (io.signal.aborted && cancelled !== undefined) throw new RdError('ERR_CANCELLED', cancelled);
      const waited = clock.now() - begun;
      if (waited >= SERVICE_STOP_MS) throw hangs(late, wait.advice);
      if (waited >= QUIET_MS) line.draw(waitedText(waiting, waited, { ending: true }));
      await (cancelled === undefined ? clock.sleep(LOOK_MS) : clock.sleep(LOOK_MS, io.signal));
    }
  } finally {
    line.clear();
  }
}

function waitedText(waiting: string, ms: number, { ending }: Pick<LockHolder, 'ending'>): string {
  const limit = ending ? ` of at most ${SERVICE_STOP_MS / 1000} s` : '';
  return `${waiting}: ${Math.floor(ms / 1000)} s${limit} …`;
}

function hangs(late: string, advice: string): RdError {
  return new RdError('ERR_DEADLINE', `${late} after ${SERVICE_STOP_MS / 1000} s`, { advice });
}

/** Advice for a hung service of this home. */
export function hungServiceAdvice(pid: number, io: Io): string {
  const kill = io.platform === 'win32' ? `taskkill /F /PID ${pid}` : `kill -9 ${pid}`;
  return `Check the logs in ${homeOf(io).logs}. To force it to exit, run \`${kill}\`. Then \`rdctl start\` takes over what it left running, \`rdctl shutdown\` stops it, and \`rdctl factory-reset\` stops and removes it.`;
}

/**
 * Stops a service that a command started for itself, and waits for it to exit.
 * @throws RdError `ERR_DEADLINE` when it hangs.
 */
export async function stopOwnService(
  client: Pick<Client, 'shutdown'>,
  pid: number,
  { io, quiet }: { io: Io; quiet: boolean },
): Promise<void> {
  // Another command may have started its own service since.
  const lives = async () => {
    const holder = await lockHolder(homeOf(io).serviceLock);
    return holder?.alive === true && holder.pid === pid;
  };
  await client.shutdown().catch(async (error: unknown) => {
    if (await lives()) throw error;
  });
  await waitForExit({
    lives,
    io,
    quiet,
    late: `the service that was started for this (pid ${pid}) was asked to stop but is still running`,
    waiting: `Waiting for service ${pid} to exit`,
    advice: hungServiceAdvice(pid, io),
  });
}
