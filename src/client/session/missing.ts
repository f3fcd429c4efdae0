import { type ErrorCode, RdError } from '../../errors.ts';
import { steadyClock } from '../../os/clock.ts';
import { systemCode } from '../../os/io-error.ts';
import { stripHidden } from '../../settings/printable.ts';
import { type Connection, staleText } from '../connection.ts';
import type { ConnectionFlags } from '../discovery.ts';
import { type HomeService, homeService } from '../home-service.ts';
import { type Caller, homeOf, namesService, type SessionIo } from './home.ts';

/** The state of a home without a live service; its connection file, if any, is stale. */
export type MissingService = Exclude<HomeService, { kind: 'running' }>;

/** Failures that a stale connection file can cause. */
export const STALE_FILE_ERRORS: readonly ErrorCode[] = [
  'ERR_NOT_RUNNING',
  'ERR_CONNECTION',
  'ERR_CONNECTION_SETTINGS',
  'ERR_DEADLINE',
  'ERR_UNAUTHORIZED',
];

const LOOK_MS = 25;
const DYING_MS = 1000;

const RESTART_ADVICE =
  'Stop it with `rdctl shutdown`, which needs no connection file, then start it again with `rdctl start`.';

/**
 * Retries after a failed discovery, or explains the failure: a service may run without its connection file. The message keeps the wording of Rancher
 * Desktop's `rdctl` in front.
 * @throws the discovery error, with the facts that the home's lock adds.
 */
export async function rediscover(
  find: () => Promise<Connection>,
  error: unknown,
  globals: ConnectionFlags,
  io: SessionIo,
): Promise<Connection> {
  if (!(error instanceof RdError) || namesService(globals, io) || !isAboutTheFile(error)) throw error;
  const where = homeOf(io);
  let home = await homeService(where);
  while (home.kind === 'running') {
    // A service that started after the first attempt has its file by now: the lock says "running" after the file is
    // written, and stops saying so before the file is removed.
    const { pid } = home.holder;
    const found = await find().catch((again: unknown) => {
      if (!(again instanceof RdError) || !isAboutTheFile(again)) throw again;
    });
    if (found) return found;
    home = await homeService(where);
    if (home.kind === 'running' && home.holder.pid === pid) break;
  }
  throw missing(error, home);
}

function missing(error: RdError, home: HomeService): RdError {
  switch (home.kind) {
    case 'running':
      return new RdError(
        'ERR_CONNECTION_SETTINGS',
        `${error.message}, although a service is running for this home (${processText(home)})`,
        { cause: error, advice: `Without the file, the service cannot be reached. ${RESTART_ADVICE}` },
      );
    case 'passing':
      return new RdError('ERR_NOT_RUNNING', error.message, {
        cause: error,
        advice: passingText(home),
      });
    case 'left':
      return new RdError('ERR_NOT_RUNNING', error.message, { cause: error, advice: leftoverText(home) });
    case 'none':
      if (error.code === 'ERR_NOT_RUNNING') return error;
      return new RdError('ERR_NOT_RUNNING', error.message, {
        cause: error,
        advice: 'No service is running; `rdctl start` starts one and rewrites the file.',
      });
  }
}

/**
 * Decides by the home's lock whether an unreachable service exists at all.
 * @returns the state of a home without a live service; `moved` when a different service is alive than the contacted one.
 * @throws the error, with the facts that the lock adds, when a service is alive, was named, or is another application's.
 */
export async function missingService(
  error: unknown,
  { connect, globals, io }: Caller,
  connection: Connection | undefined,
): Promise<MissingService | 'moved'> {
  if (!(error instanceof RdError) || namesService(globals, io)) throw error;
  if (!STALE_FILE_ERRORS.includes(error.code)) throw error;
  if (connection?.foreign && error.code !== 'ERR_NOT_RUNNING') throw error;
  if (!connection && error.code !== 'ERR_NOT_RUNNING') throw error;
  const home = await homeService(homeOf(io));
  if (home.kind !== 'running') {
    if (home.kind !== 'passing') warnStale(error, connection, io);
    return home;
  }
  // Discovery ran while the service was starting, or the contacted service exited and this is its successor.
  if (!connection) return 'moved';
  if (await hasMoved(connection, connect)) return 'moved';
  if (error.code === 'ERR_UNAUTHORIZED') throw error;
  const { pid, port } = home.holder;
  const later = error.code === 'ERR_DEADLINE' ? home : await afterDeath(pid, io);
  if (later.kind !== 'running') return later;
  if (later.holder.pid !== pid) return 'moved';
  const { logs } = homeOf(io);
  if (error.code === 'ERR_DEADLINE') {
    throw new RdError(error.code, `${error.message}; the service of this home is pid ${pid}`, {
      cause: error,
      advice: `It may be busy or stopped (check ${logs}). If it does not recover, kill process ${pid} and run \`rdctl start\`.`,
    });
  }
  throw new RdError(
    'ERR_CONNECTION',
    `${error.message}; the service of this home is pid ${pid}${port === undefined ? '' : ` on port ${port}`}`,
    { cause: error, advice: `The connection file does not point to it. ${RESTART_ADVICE}` },
  );
}

/**
 * Waits, for a second at most, for the end of a process that was killed a moment ago: it listens no more, or its connections break, but the system
 * still shows it.
 */
async function afterDeath(pid: number, io: SessionIo): Promise<HomeService> {
  const limit = steadyClock.now() + DYING_MS;
  for (;;) {
    const home = await homeService(homeOf(io));
    if (home.kind !== 'running' || home.holder.pid !== pid || steadyClock.now() >= limit) return home;
    await steadyClock.sleep(LOOK_MS, io.signal);
    if (io.signal.aborted) return home;
  }
}

/** Warns about a stale connection file when the command continues without the service. */
export function warnStale(error: RdError, connection: Connection | undefined, io: Pick<SessionIo, 'err'>): void {
  const stale = connection && error.code === 'ERR_NOT_RUNNING' ? staleText(connection) : undefined;
  // Rancher Desktop leaves its file behind on every quit.
  if (stale === undefined || (connection?.foreign && error.cause !== undefined)) return;
  // "Nothing listens" needs no further explanation.
  const what = error.cause === undefined ? `; ${error.message}` : '';
  io.err(`notice: ${stale}${what}. \`rdctl start\` starts a service and rewrites the file.\n`);
}

/** Whether the connection file points to another service now. */
export async function hasMoved({ port, password }: Connection, connect: Caller['connect']): Promise<boolean> {
  const now = await connect().catch(() => undefined);
  return now !== undefined && (now.port !== port || now.password !== password);
}

/** Formats a process: `pid 12, port 6107`. */
export function processText({ holder: { pid, port } }: Extract<HomeService, { kind: 'running' | 'passing' }>): string {
  return port === undefined ? `pid ${pid}` : `pid ${pid}, port ${port}`;
}

/** Describes a service that exists but does not answer yet, or no longer. */
function passingText(home: Extract<HomeService, { kind: 'passing' }>): string {
  if (!home.holder.ending) return `One (${processText(home)}) is starting; try again in a moment.`;
  return `The last service (pid ${home.holder.pid}) is ending; \`rdctl start\` waits for it and starts the next one.`;
}

/** Describes what a service left running; `advice` completes the sentence. */
export function leftoverText(
  { driver, pid, interrupted }: Extract<HomeService, { kind: 'left' }>,
  advice = ': `rdctl start` takes it over, `rdctl shutdown` stops it.',
): string {
  const who = pid === undefined ? 'The last service' : `The last service (pid ${pid})`;
  const cut =
    interrupted === undefined
      ? ''
      : `, unless it was stopped for an interrupted operation (${stripHidden(interrupted)})`;
  return `${who} exited without stopping its backend (driver ${driver}), which may still be running${cut}${advice}`;
}

/** The message of a command that needs a service. */
export function startAdvice(home: HomeService): string {
  if (home.kind === 'left') return leftoverText(home);
  if (home.kind === 'passing') return passingText(home);
  return 'Start one with `rdctl start` or `rdctl apply -f FILE`.';
}

/** Whether a failure means a missing or invalid file; an unreadable file is a different problem. */
function isAboutTheFile({ code, cause }: RdError): boolean {
  return code === 'ERR_NOT_RUNNING' || (code === 'ERR_CONNECTION_SETTINGS' && systemCode(cause) === undefined);
}
