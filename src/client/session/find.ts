import { RdError } from '../../errors.ts';
import type { Target } from '../../plan/change.ts';
import { COMPATIBLE } from '../../product.ts';
import type { StatusDocument } from '../../reconcile/status-document.ts';
import { createClient } from '../client.ts';
import type { Connection } from '../connection.ts';
import type { Client, ServiceClient } from '../contract.ts';
import type { ConnectionFlags } from '../discovery.ts';
import { answerLimit, withinTime } from '../http.ts';
import { exitingService, isStaying, waitForOtherService } from './exit.ts';
import type { Caller, SessionIo } from './home.ts';
import type { MissingService } from './missing.ts';

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
      const { missingService } = await import('./missing.ts');
      const missing = await missingService(error, caller, connection);
      if (missing !== 'moved') return { missing };
    }
  }
}

/** Our service, or another application, with its status. */
export interface Service {
  client: Client;
  status: StatusDocument;
}

/**
 * Returns the running service, ours or another application's; undefined when none runs, or when another program is listening on the port of a stopped
 * one. No request outlives `leftMs`. Throws the failure when a service was named or is alive.
 */
export async function runningService(invocation: Caller, leftMs?: () => number): Promise<Service | undefined> {
  const found = await findService(invocation, leftMs);
  return 'client' in found ? found : undefined;
}

/** Returns the running service for work that it must outlive: waits until a service of this home that is exiting has exited. */
export async function lastingService(caller: Caller, leftMs: () => number): Promise<Service | undefined> {
  for (;;) {
    const service = await runningService(caller, leftMs);
    if (service && (await isStaying(service.client, caller, service.status.pid))) return service;
    if (!service && !(await exitingService(caller.io))) return undefined;
    await waitForOtherService(caller.io, { leftMs });
  }
}

/** Returns the running service. Throws if there is none. */
export async function requireService(invocation: Caller): Promise<Service> {
  const found = await findService(invocation);
  if ('client' in found) return found;
  const [{ isEnding }, { startAdvice }] = await Promise.all([import('../home-service.ts'), import('./missing.ts')]);
  const message = isEnding(found) ? 'The service is ending.' : 'No service is running.';
  throw new RdError('ERR_NOT_RUNNING', message, { advice: startAdvice(found) });
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

/** Recognizes another application: a server without our status that replies with the API's own errors. */
async function otherApplication(plain: ServiceClient, error: unknown, signal: AbortSignal): Promise<Service> {
  if (!(error instanceof RdError) || error.code !== 'ERR_NOT_FOUND') throw error;
  const { createForeignClient } = await import('../rancher-desktop/index.ts');
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

/** True when the user named the other application (docs/drop-in.md). */
function names(target: string | undefined, globals: ConnectionFlags, io: SessionIo): boolean {
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
  { globals, io }: Caller,
): void {
  if (names(target, globals, io)) return;
  const where = file === undefined ? `at ${host}:${port}` : `through ${file}`;
  throw new RdError('ERR_WRONG_TARGET', `the running application is ${COMPATIBLE.productName}, found ${where}`, {
    advice: `To use it, add --target: rdctl ${command} --target ${COMPATIBLE.target}`,
  });
}
