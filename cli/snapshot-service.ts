import { type Client, createClient } from '../src/client/client.ts';
import type { Connection } from '../src/client/connection.ts';
import { homeService } from '../src/client/home-service.ts';
import { type SnapshotCalls, snapshotCalls } from '../src/client/snapshots.ts';
import { RdError } from '../src/errors.ts';
import { realPace } from '../src/process/pace.ts';
import { COMPATIBLE } from '../src/product.ts';
import { homeOf } from './absence.ts';
import type { FlagTable, Invocation, Io } from './command.ts';
import { launchService } from './launch.ts';
import { plainText } from './views/value.ts';

type Caller = Pick<Invocation, 'connect' | 'globals' | 'io'>;

/** Of every snapshot command, before or after its word. */
export const JSON_FLAG = {
  json: { type: 'boolean', summary: 'Print for programs: records, and errors as {"error": TEXT}' },
} as const satisfies FlagTable;

/** The running service, ours or another application's, or `undefined` when none runs. */
export async function snapshotClient({ connect, globals, io }: Caller): Promise<Client | undefined> {
  let connection: Connection | undefined;
  try {
    connection = await connect();
    const client = createClient(connection);
    // Looked at before anything is sent: what answers may be another program.
    await client.backendState({ signal: io.signal });
    return client;
  } catch (error) {
    const { absentService } = await import('./absence.ts');
    await absentService(error, { globals, io }, connection);
    return undefined;
  }
}

export interface OperationInput {
  caller: Caller;
  /** Nothing of text goes to stderr. */
  json: boolean;
  /** What a Ctrl-C says: `Cancelling snapshot creation...` */
  cancelling: string;
  work(calls: SnapshotCalls): Promise<void>;
}

/**
 * Does the work through the service that runs, or through one that is started for it, keeps its backend off and ends after it. A signal
 * cancels the work and waits until it has been undone.
 * @throws RdError `ERR_SNAPSHOT` with the text of the service, `ERR_CANCELLED` after a signal.
 */
export async function operate(client: Client | undefined, input: OperationInput): Promise<void> {
  if (client) return underSignal(client, input);
  const { globals, io } = input.caller;
  const own = createClient(await launchService({ io, globals, power: 'keep', idle: true }));
  try {
    await underSignal(own, input);
  } finally {
    await end(own, io);
  }
}

async function underSignal(client: Client, { caller, json, cancelling, work }: OperationInput): Promise<void> {
  const { io } = caller;
  const calls = snapshotCalls(client);
  let cancel: Promise<void> | undefined;
  const onSignal = () => {
    if (!json) io.err(`${cancelling}\n`);
    // What became of it is told by the request that is under way.
    cancel = calls.cancel().catch(() => undefined);
  };
  if (io.signal.aborted) throw new RdError('ERR_CANCELLED', 'Nothing was begun.');
  io.signal.addEventListener('abort', onSignal, { once: true });
  const stopShowing = io.progress && !json && !client.connection.foreign ? showProgress(client, io) : async () => {};
  try {
    await work(calls);
  } catch (error) {
    await cancel;
    if (!cancel || !(error instanceof RdError)) throw error;
    throw new RdError('ERR_CANCELLED', error.message, { cause: error, advice: 'Nothing was changed.' });
  } finally {
    io.signal.removeEventListener('abort', onSignal);
    await stopShowing();
  }
}

const LOOK_MS = 400;
const CLEAR_LINE = '\r\u001b[2K';

/** One line on the terminal that says what is being done. Returns what ends it. */
function showProgress(client: Client, io: Io): () => Promise<void> {
  const ending = new AbortController();
  let shown = false;
  const showing = (async () => {
    while (!ending.signal.aborted) {
      const status = await client.status({ signal: ending.signal }).catch(() => undefined);
      const held = status?.conditions.find(({ type }) => type === 'Converged');
      if (held && held.status !== 'True' && !ending.signal.aborted) {
        io.err(`${shown ? CLEAR_LINE : ''}${plainText(held.message).slice(0, 100)}`);
        shown = true;
      }
      await realPace.sleep(LOOK_MS, ending.signal);
    }
  })();
  return async () => {
    ending.abort();
    await showing;
    if (shown) io.err(CLEAR_LINE);
  };
}

/** The service was there for this alone. */
async function end(client: Client, io: Io): Promise<void> {
  const where = homeOf(io);
  await client.shutdown();
  const deadline = realPace.now() + 120_000;
  while ((await homeService(where)).kind !== 'none') {
    if (realPace.now() >= deadline) {
      throw new RdError('ERR_DEADLINE', 'the service that was started for this does not end', {
        advice: `Look into ${where.logs}, and stop it with \`rdctl shutdown\`.`,
      });
    }
    await realPace.sleep(LOOK_MS / 10);
  }
}

/** With `--json` a failure is an object on stdout, for programs; otherwise it is thrown on to be printed. */
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

/** One line of JSON, with the signs escaped that the compatible tool escapes. */
export function jsonLine(value: object): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** What was found by looking around must not be overwritten by accident (design: "Identity and targets"). */
export function checkTarget(client: Client | undefined, target: string | undefined, { globals, io }: Caller): void {
  if (!client?.connection.foreign) return;
  if (target || globals['config-path'] || io.env.RDCTL_CONFIG_PATH || io.env.RDCTL_COMPAT) return;
  throw new RdError(
    'ERR_WRONG_TARGET',
    `what runs is ${COMPATIBLE.productName}, found through ${client.connection.file}`,
    { advice: `If its state is to be replaced, say so: --target ${COMPATIBLE.target}` },
  );
}
