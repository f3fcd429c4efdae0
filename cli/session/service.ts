import { type Client, createClient } from '../../src/client/client.ts';
import type { Connection } from '../../src/client/connection.ts';
import type { HomeService } from '../../src/client/home-service.ts';
import { answerLimit, withinTime } from '../../src/client/http.ts';
import { RdError } from '../../src/errors.ts';
import type { Target } from '../../src/plan/change.ts';
import { COMPATIBLE } from '../../src/product.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import type { GlobalFlags, Invocation, Io } from '../command.ts';
import { plainText } from '../views/value.ts';

/** The parts of an invocation needed to find a service. */
export type Caller = Pick<Invocation, 'connect' | 'globals' | 'io'>;

/** The state of a home without a live service; its connection file, if any, is stale. */
export type Absence = Exclude<HomeService, { kind: 'running' }>;

export type Asked<T> = { answer: T } | { absent: Absence };

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
      const { absentService } = await import('./absence.ts');
      const absent = await absentService(error, caller, connection);
      if (absent !== 'moved') return { absent };
    }
  }
}

/** A service of ours, or another application (`client.foreign`), with its status. */
export interface Service {
  client: Client;
  status: StatusDocument;
}

/**
 * The running service, ours or another application's; `undefined` when none runs, or when another program listens on
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
    const { waitForOtherService, isStaying } = await import('./service-end.ts');
    if (await isStaying(service.client, caller, service.status.pid)) return service;
    await waitForOtherService(caller.io, { leftMs });
  }
}

/** Like `runningService`, for commands that need one. */
export async function requireService(invocation: Caller): Promise<Service> {
  const found = await findService(invocation);
  if ('client' in found) return found;
  const { absenceText } = await import('./absence.ts');
  throw new RdError('ERR_NOT_RUNNING', 'No service is running.', { advice: absenceText(found) });
}

async function findService(invocation: Caller, leftMs?: () => number): Promise<Service | HomeService> {
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
  return 'answer' in found ? found.answer : found.absent;
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

/** Prints the startup notices of the service on stderr. */
export function showNotices({ notices }: Pick<StatusDocument, 'notices'>, io: Pick<Io, 'err'>): void {
  for (const notice of notices) io.err(`notice: ${plainText(notice)}\n`);
}

/** `--target` of commands that change more than single settings: names an auto-discovered application. */
export const TARGET_FLAG = {
  type: 'string',
  summary: `Act on the ${COMPATIBLE.productName} that was found`,
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
  throw new RdError('ERR_WRONG_TARGET', `what runs is ${COMPATIBLE.productName}, found ${where}`, {
    advice: `If it is meant, say so: rdctl ${command} --target ${COMPATIBLE.target}`,
  });
}

/** `driver host`; a simulation is always marked. */
export function driverText({ name, simulated }: StatusDocument['driver']): string {
  return `driver ${name}${simulated ? ' (a model: nothing real is touched)' : ''}`;
}
