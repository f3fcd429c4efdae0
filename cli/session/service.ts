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

/** What finding a service needs of an invocation. */
export type Caller = Pick<Invocation, 'connect' | 'globals' | 'io'>;

/** What the home says when no service of it lives that stays; a stale connection file then means nothing. */
export type Absence = Exclude<HomeService, { kind: 'running' }>;

export type Asked<T> = { answer: T } | { absent: Absence };

/**
 * Asks the service that the connection file leads to. Where nobody answers, the lock of this home decides whether one is there at all.
 * One that has begun since the file was read has another file, and is asked instead.
 * @throws the error, said better where the lock knows more, when a service lives, was named, or is another application's.
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
    const { othersEnd, stays } = await import('./service-end.ts');
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
  const { createForeignClient } = await import('../../src/client/foreign-client.ts');
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

/** What happened at the start of the service and a person should know, on stderr. */
export function showNotices({ notices }: Pick<StatusDocument, 'notices'>, io: Pick<Io, 'err'>): void {
  for (const notice of notices) io.err(`notice: ${plainText(notice)}\n`);
}

/** Of commands that change more than single settings: names the application that was only found by looking around. */
export const TARGET_FLAG = {
  type: 'string',
  summary: `Act on the ${COMPATIBLE.productName} that was found`,
  values: [COMPATIBLE.target],
} as const;

/** True where somebody has said that an application that is not ours is meant (design: "Identity and targets"). */
function names(target: string | undefined, globals: GlobalFlags, io: Io): boolean {
  return Boolean(target || globals['config-path'] || io.env.RDCTL_CONFIG_PATH || io.env.RDCTL_COMPAT);
}

/** Refuses to change what nobody has named. `command` is the way to name it. Throws `ERR_WRONG_TARGET`. */
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

/** `driver host`; a simulation always says that it is one. */
export function driverText({ name, simulated }: StatusDocument['driver']): string {
  return `driver ${name}${simulated ? ' (a model: nothing real is touched)' : ''}`;
}
