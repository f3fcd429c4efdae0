import { type Client, createClient } from '../src/client/client.ts';
import type { Connection } from '../src/client/connection.ts';
import type { HomeService } from '../src/client/home-service.ts';
import { answerLimit, withinTime } from '../src/client/http.ts';
import { RdError } from '../src/errors.ts';
import type { Target } from '../src/plan/change.ts';
import type { StatusDocument } from '../src/reconcile/status-document.ts';
import { askService, type Caller } from './asking.ts';

/** A service of ours that answered, or another application (`client.foreign`), and what it said about itself. */
export interface Service {
  client: Client;
  status: StatusDocument;
}

/**
 * The running service, ours or another application's, or `undefined` when none runs: also when the connection file of one that has ended leads to
 * another program. `leftMs` is what a command with a limit has left; no request takes longer.
 * Throws what went wrong when a service was named or lives.
 */
export async function runningService(invocation: Caller, leftMs?: () => number): Promise<Service | undefined> {
  const found = await findService(invocation, leftMs);
  return 'client' in found ? found : undefined;
}

/** As `runningService`, for commands whose work a service has to outlive: one of this home that is about to end is waited out. */
export async function lastingService(caller: Caller, leftMs: () => number): Promise<Service | undefined> {
  for (;;) {
    const service = await runningService(caller, leftMs);
    if (!service) return undefined;
    const { othersEnd, stays } = await import('./leaving.ts');
    if (await stays(service.client, caller, service.status.pid)) return service;
    await othersEnd(caller.io, { leftMs });
  }
}

/** As `runningService`, for commands that can do nothing without one. */
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
    // Half the time at most: something silent there may have to be replaced by a service of ours.
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

/** What has no status of ours, and says so in the words of the interface, is an application that shares it. */
async function otherApplication(plain: Client, error: unknown, signal: AbortSignal): Promise<Service> {
  if (!(error instanceof RdError) || error.code !== 'ERR_NOT_FOUND') throw error;
  const { createForeignClient } = await import('../src/client/foreign-client.ts');
  const client = createForeignClient(plain);
  return { client, status: await client.status({ signal }) };
}

/** Who a status speaks for, in the words of a plan. */
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
