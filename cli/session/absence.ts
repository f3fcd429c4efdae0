import type { Connection } from '../../src/client/connection.ts';
import { type HomeService, homeService } from '../../src/client/home-service.ts';
import { staleText } from '../../src/client/stale-file.ts';
import { type ErrorCode, RdError } from '../../src/errors.ts';
import { systemCode } from '../../src/storage/io-error.ts';
import { requirePrivate } from '../../src/storage/ownership.ts';
import { type Places, places } from '../../src/storage/places.ts';
import { userHome } from '../../src/storage/user-home.ts';
import { supportedPlatform } from '../arguments/platform.ts';
import type { GlobalFlags, Io } from '../command.ts';
import { plainText } from '../views/value.ts';
import type { Absence, Caller } from './service.ts';

/** Failures that a connection file without its service behind it can be the reason of. */
export const OF_A_STALE_FILE: readonly ErrorCode[] = [
  'ERR_NOT_RUNNING',
  'ERR_CONNECTION',
  'ERR_CONNECTION_SETTINGS',
  'ERR_DEADLINE',
  'ERR_UNAUTHORIZED',
];

const RENEW = 'Stop it with `rdctl shutdown`, which needs no connection file, then start it again with `rdctl start`.';

/** Where this home keeps its files, for a command that only tells where that is. */
export function placesOf(io: Io): Places {
  return places(io.env, supportedPlatform(io.platform), userHome(io.env, io.platform));
}

/** The same for all others. Throws `ERR_NOT_PRIVATE` where another user could have written what is there. */
export function homeOf(io: Io): Places {
  const here = placesOf(io);
  requirePrivate(here);
  return here;
}

/** True when the command line or the environment says which service is meant: another one is then no answer. */
export function namesService(globals: GlobalFlags, io: Io): boolean {
  return Boolean(globals['config-path'] || globals.host || globals.user || io.env.RDCTL_CONFIG_PATH);
}

/**
 * Looks again where no connection could be made out, or says what that means in more words than the search for a file knows: a service
 * may run without its file. The text of the compatible tool stays in front.
 * @throws what the search threw, said better where the lock of this home knows more.
 */
export async function findAgain(
  find: () => Promise<Connection>,
  error: unknown,
  globals: GlobalFlags,
  io: Io,
): Promise<Connection> {
  if (!(error instanceof RdError) || namesService(globals, io) || !isAboutTheFile(error)) throw error;
  const where = homeOf(io);
  let home = await homeService(where);
  while (home.kind === 'running') {
    // One that began after the first look has its file by now: a service says that it runs after its file is written, and takes
    // that back before the file goes.
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
        `${error.message}, although a service of this home runs (${processText(home)})`,
        { cause: error, advice: `Without the file nobody reaches the service. ${RENEW}` },
      );
    case 'passing':
      return new RdError('ERR_NOT_RUNNING', error.message, {
        cause: error,
        advice: `A service (${processText(home)}) is starting or stopping; try again in a moment.`,
      });
    case 'left':
      return new RdError('ERR_NOT_RUNNING', error.message, { cause: error, advice: leftText(home) });
    case 'none':
      if (error.code === 'ERR_NOT_RUNNING') return error;
      return new RdError('ERR_NOT_RUNNING', error.message, {
        cause: error,
        advice: 'No service runs; `rdctl start` starts one and writes the file anew.',
      });
  }
}

/**
 * Decides by the lock of this home whether a service that could not be reached is there at all.
 * @returns what the home says when no service of it lives that stays; `moved` when the one that lives is not the one that was asked.
 * @throws the error, said better where the lock knows more, when a service lives, was named, or is another application's.
 */
export async function absentService(
  error: unknown,
  { connect, globals, io }: Caller,
  connection: Connection | undefined,
): Promise<Absence | 'moved'> {
  if (!(error instanceof RdError) || namesService(globals, io)) throw error;
  if (!OF_A_STALE_FILE.includes(error.code)) throw error;
  if (connection?.foreign && error.code !== 'ERR_NOT_RUNNING') throw error;
  if (!connection && error.code !== 'ERR_NOT_RUNNING') throw error;
  const home = await homeService(homeOf(io));
  if (home.kind !== 'running') {
    if (home.kind !== 'passing') tellStale(error, connection, io);
    return home;
  }
  // Nothing was found while it was starting; or what was asked had ended, and this is the next.
  if (!connection) return 'moved';
  if (await hasMoved(connection, connect)) return 'moved';
  if (error.code === 'ERR_UNAUTHORIZED') throw error;
  const { pid, port } = home.holder;
  const { logs } = homeOf(io);
  if (error.code === 'ERR_DEADLINE') {
    throw new RdError(error.code, `${error.message}; the service of this home is pid ${pid}`, {
      cause: error,
      advice: `It may be busy or stopped (look into ${logs}); when it does not come back, end the process ${pid} and start it again with \`rdctl start\`.`,
    });
  }
  throw new RdError(
    'ERR_CONNECTION',
    `${error.message}; the service of this home is pid ${pid}${port === undefined ? '' : ` on port ${port}`}`,
    { cause: error, advice: `The connection file does not lead to it. ${RENEW}` },
  );
}

/** Tells of a connection file that leads to nobody, or to another program, where the command goes on without what it led to. */
export function tellStale(error: RdError, connection: Connection | undefined, io: Io): void {
  const stale = connection && error.code === 'ERR_NOT_RUNNING' ? staleText(connection) : undefined;
  // The other application leaves its file behind whenever it is quit.
  if (stale === undefined || (connection?.foreign && error.cause !== undefined)) return;
  // One that nobody answers for says enough by itself.
  const what = error.cause === undefined ? `; ${error.message}` : '';
  io.err(`notice: ${stale}${what}. \`rdctl start\` starts a service and writes the file anew.\n`);
}

/** Whether the connection file leads to another service by now. */
export async function hasMoved({ port, password }: Connection, connect: Caller['connect']): Promise<boolean> {
  const now = await connect().catch(() => undefined);
  return now !== undefined && (now.port !== port || now.password !== password);
}

/** `pid 12, port 6107` */
export function processText({ holder: { pid, port } }: Extract<HomeService, { kind: 'running' | 'passing' }>): string {
  return port === undefined ? `pid ${pid}` : `pid ${pid}, port ${port}`;
}

/** What a service left behind; `advice` is what follows on the sentence. */
export function leftText(
  { driver, pid, interrupted }: Extract<HomeService, { kind: 'left' }>,
  advice = ': `rdctl start` takes it over, `rdctl shutdown` stops it.',
): string {
  const who = pid === undefined ? 'The last service' : `The last service (pid ${pid})`;
  const cut =
    interrupted === undefined ? '' : `, unless it was stopped for what was cut off (${plainText(interrupted)})`;
  return `${who} ended without stopping what it ran with the driver ${driver}, so that may run on${cut}${advice}`;
}

/** What a command says that needs a service. */
export function absenceText(home: HomeService): string {
  if (home.kind === 'left') return leftText(home);
  if (home.kind === 'passing') return `One (${processText(home)}) is starting or stopping; try again in a moment.`;
  return 'Start one with `rdctl start`, or let `rdctl apply -f FILE` do it.';
}

/** The file is not there, or what it holds is no use; one that may not be read is another matter. */
function isAboutTheFile({ code, cause }: RdError): boolean {
  return code === 'ERR_NOT_RUNNING' || (code === 'ERR_CONNECTION_SETTINGS' && systemCode(cause) === undefined);
}
