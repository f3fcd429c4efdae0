import { type Client, createClient } from '../../../src/client/client.ts';
import { blame } from '../../../src/client/converge.ts';
import { homeService } from '../../../src/client/home-service.ts';
import { type SnapshotCalls, snapshotCalls } from '../../../src/client/snapshots.ts';
import { RdError } from '../../../src/errors.ts';
import type { PlanRequest } from '../../../src/plan/change.ts';
import { realPace } from '../../../src/process/pace.ts';
import { COMPATIBLE } from '../../../src/product.ts';
import type { StatusDocument } from '../../../src/reconcile/status-document.ts';
import type { FlagTable, Io } from '../../command.ts';
import { homeOf, namesService } from '../../session/absence.ts';
import { tellInterruptions } from '../../session/interruptions.ts';
import { launchService } from '../../session/launch.ts';
import { serviceLine } from '../../session/patient-client.ts';
import { askService, type Caller } from '../../session/service.ts';
import { endOwn, stays } from '../../session/service-end.ts';
import { plainText } from '../../views/value.ts';

/** Of every snapshot command, before or after its word. */
export const JSON_FLAG = {
  json: { type: 'boolean', summary: 'Print for programs: records, and errors as {"error": TEXT}' },
} as const satisfies FlagTable;

/** The running service, ours or another application's, or `undefined` when none runs. */
export async function snapshotClient(caller: Caller): Promise<Client | undefined> {
  const asked = await askService(caller, async (connection) => {
    const client = createClient(connection);
    // Looked at before anything is sent: what answers may be another program.
    await client.backendState({ signal: caller.io.signal });
    return client;
  });
  return 'answer' in asked ? asked.answer : undefined;
}

export interface OperationInput {
  caller: Caller;
  /** Nothing of text goes to stderr. */
  json: boolean;
  /** What a Ctrl-C says: `Cancelling snapshot creation...` */
  cancelling: string;
  /** What a service that is killed in the middle leaves undone, and what becomes of that. */
  cutOff: { message: string; advice: string };
  work(calls: SnapshotCalls): Promise<void>;
}

/**
 * Does the work through the service that runs, or through one that is started for it, keeps its backend off and ends after it. A signal
 * cancels the work and waits until it has been undone. One that another command has started for itself is waited out.
 * @throws RdError `ERR_SNAPSHOT` with the text of the service, `ERR_CANCELLED` after a signal.
 */
export async function operate(client: Client | undefined, input: OperationInput): Promise<void> {
  const { globals, io } = input.caller;
  let found = client;
  for (;;) {
    if (found && (await stays(found, input.caller))) return underSignal(found, input);
    const { connection, pid } = await launchService({ io, globals, power: 'keep', idle: true, quiet: input.json });
    if (pid !== undefined) return alone(createClient(connection), pid, input);
    found = createClient(connection);
  }
}

/** With a service that is there for this alone. */
async function alone(own: Client, pid: number, input: OperationInput): Promise<void> {
  try {
    await underSignal(own, input);
  } finally {
    await endOwn(own, pid, { io: input.caller.io, quiet: input.json });
  }
}

async function underSignal(client: Client, { caller, json, cancelling, cutOff, work }: OperationInput): Promise<void> {
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
  const stopShowing = json || client.connection.foreign ? async () => {} : serviceLine(client, io, { text: workText });
  try {
    await work(calls);
  } catch (error) {
    await cancel;
    if (!(error instanceof RdError)) throw error;
    if (await hasEnded(client, error, caller)) {
      throw new RdError(error.code, `${cutOff.message}: the service ended in the middle of it`, {
        cause: error,
        advice: cutOff.advice,
      });
    }
    if (!cancel) throw error;
    throw new RdError('ERR_CANCELLED', error.message, { cause: error, advice: 'Nothing was changed.' });
  } finally {
    io.signal.removeEventListener('abort', onSignal);
    await stopShowing();
  }
}

const LOOK_MS = 40;
/** How long a killed service may take to be gone. */
const DYING_MS = 3000;

function workText({ maintenance, conditions }: StatusDocument): string | undefined {
  const held = conditions.find(({ type }) => type === 'Converged');
  return maintenance ?? (held?.status === 'True' ? undefined : held?.message);
}

/** Whether a request broke off because the service of this home is no more. */
async function hasEnded({ connection }: Client, error: RdError, { globals, io }: Caller): Promise<boolean> {
  if (connection.foreign || namesService(globals, io)) return false;
  if (error.code !== 'ERR_CONNECTION' && error.code !== 'ERR_NOT_RUNNING') return false;
  // A process that is killed closes its connections some time before it is gone.
  const deadline = realPace.now() + DYING_MS;
  while (await serviceLives(io)) {
    if (realPace.now() >= deadline) return false;
    await realPace.sleep(LOOK_MS);
  }
  return true;
}

async function serviceLives(io: Io): Promise<boolean> {
  const { kind } = await homeService(homeOf(io));
  return kind === 'running' || kind === 'passing';
}

/** How the backend of a running service goes on that is stopped for it. */
const AFTERWARDS = {
  create: 'The backend starts again when the copy is made.',
  restore: 'That happens once the snapshot is verified; the backend then starts with what it holds.',
};

interface Deed {
  do: keyof typeof AFTERWARDS;
  name: string;
  /** A machine that is on, and all that it is to be, is otherwise copied as it runs. */
  stop: boolean;
}

/** Says on stderr what is about to be stopped meanwhile; nothing where the name keeps it from beginning. */
export async function tellStopped(client: Client, deed: Deed, io: Io): Promise<void> {
  if (client.connection.foreign) return;
  const known = await Promise.all([snapshotCalls(client).list(io.signal), client.status({ signal: io.signal })]).catch(
    () => undefined,
  );
  if (!known) return;
  const [records, status] = known;
  if (records.some(({ name }) => name === deed.name) !== (deed.do === 'restore')) return;
  if (!deed.stop && status.access && status.converged) return;
  const stopping: PlanRequest = { settings: {}, state: 'stopped', prune: [] };
  // Of a restore the plan of a stop knows what ends, and not what starts.
  const words = ({ what }: { what: string }) => (deed.do === 'restore' ? (what.split('; ')[0] ?? what) : what);
  if (await tellInterruptions(client, stopping, io, words)) io.err(`notice: ${AFTERWARDS[deed.do]}\n`);
}

/** Says on stderr when the backend of a running service did not come back, which undoes nothing. */
export async function tellUnready(client: Client, io: Io): Promise<void> {
  if (client.connection.foreign) return;
  const status = await client.status({ signal: io.signal }).catch(() => undefined);
  if (!status || status.converged) return;
  const why = blame(status)?.message ?? 'see `rdctl status`.';
  io.err(`notice: The snapshot is complete, and the backend is not up (${status.backendState}): ${plainText(why)}\n`);
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
