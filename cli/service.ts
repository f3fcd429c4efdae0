import { type Client, createClient } from '../src/client/client.ts';
import { RdError } from '../src/errors.ts';
import type { Target } from '../src/plan/change.ts';
import type { StatusDocument } from '../src/reconcile/status-document.ts';
import type { Invocation } from './command.ts';

/** A service of ours that answered, and what it said about itself. */
export interface Service {
  client: Client;
  status: StatusDocument;
}

/** What finding a service needs of an invocation. */
type Caller = Pick<Invocation, 'connect' | 'globals' | 'io'>;

/**
 * The running service of ours, or `undefined` when none runs. Throws `ERR_WRONG_TARGET` for an application that is not ours,
 * and `ERR_NOT_RUNNING` when the command line says where a service should be and none is there.
 */
export async function runningService(invocation: Caller): Promise<Service | undefined> {
  try {
    const client = createClient(await invocation.connect());
    if (client.connection.foreign) throw foreign(client.connection.file);
    return { client, status: await client.status({ signal: invocation.io.signal }) };
  } catch (error) {
    if (!(error instanceof RdError)) throw error;
    if (error.code === 'ERR_NOT_RUNNING' && !wasNamed(invocation)) return undefined;
    if (error.code === 'ERR_NOT_FOUND') throw foreign(undefined, error);
    throw error;
  }
}

/** As `runningService`, for commands that can do nothing without one. */
export async function requireService(invocation: Caller): Promise<Service> {
  const service = await runningService(invocation);
  if (service) return service;
  throw new RdError('ERR_NOT_RUNNING', 'No service is running.', {
    advice: 'Start one with `rdctl start`, or let `rdctl apply -f FILE` do it.',
  });
}

/** Who a status speaks for, in the words of a plan. */
export function targetOf({ product, home, driver }: StatusDocument): Target {
  return { product, home, driver: driver.name, simulated: driver.simulated };
}

function wasNamed({ globals, io }: Caller): boolean {
  const { host, port } = globals;
  return [globals['config-path'], io.env.RDCTL_CONFIG_PATH, host, port].some(
    (given) => given !== undefined && given !== '' && given !== 0,
  );
}

function foreign(file: string | undefined, cause?: unknown): RdError {
  return new RdError(
    'ERR_WRONG_TARGET',
    `What answers${file === undefined ? '' : ` (found by ${file})`} is another application, and this command changes only services of rdctl.`,
    {
      cause,
      advice: 'Read it with `rdctl list-settings`, change it with `rdctl set`, or start ours with `rdctl start`.',
    },
  );
}
