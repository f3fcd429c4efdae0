import type { Client } from '../src/client/client.ts';
import { polled, waitConverged } from '../src/client/converge.ts';
import { RdError } from '../src/errors.ts';
import type { JsonObject } from '../src/json.ts';
import { type Pace, realPace } from '../src/process/pace.ts';
import { COMPATIBLE } from '../src/product.ts';
import type { Io } from './command.ts';
import { formatDuration } from './literals.ts';
import { plainText } from './views/value.ts';

export interface WaitInput {
  client: Client;
  /** Version of the desired state that was asked for; absent: the one in force now. */
  generation: number | undefined;
  /** The body that was sent, if any; a proposal of it tells whether an application without generations still has to restart. */
  sent: JsonObject | undefined;
  timeoutMs: number;
  io: Io;
  pace?: Pace;
}

const POLL_MS = 2000;

/**
 * Waits until the backend is what was asked for. Texts: cli facts, 6.8.
 * @throws RdError `ERR_CONVERGE_FAILED`, `ERR_DEADLINE`, `ERR_CANCELLED`.
 */
export async function waitStarted(input: WaitInput): Promise<void> {
  const { client, timeoutMs, pace = realPace } = input;
  try {
    if (client.connection.foreign) await waitForeign(input, pace);
    else
      await waitOwn(input, pace).catch((error: unknown) => {
        // Reached by flags alone, another application shows itself only here.
        if (!(error instanceof RdError) || error.code !== 'ERR_NOT_FOUND') throw error;
        return waitForeign(input, pace);
      });
  } catch (error) {
    if (error instanceof RdError && error.code === 'ERR_DEADLINE') {
      const message = `timed out after ${formatDuration(timeoutMs)} waiting for ${COMPATIBLE.productName} to start`;
      throw new RdError('ERR_DEADLINE', message, { cause: error, details: [error.message] });
    }
    if (error instanceof RdError && error.code === 'ERR_CONVERGE_FAILED') {
      const message = `the ${COMPATIBLE.productName} backend failed to start; check the application logs`;
      throw new RdError('ERR_CONVERGE_FAILED', message, { cause: error, details: [error.message] });
    }
    throw error;
  }
}

async function waitOwn({ client, generation, timeoutMs, io }: WaitInput, pace: Pace): Promise<void> {
  const { signal } = io;
  const wanted = generation ?? (await client.status({ signal })).generation;
  let told = false;
  await waitConverged({
    feed: polled({ read: () => client.status({ signal }), clock: pace, signal }),
    generation: wanted,
    timeoutMs,
    clock: pace,
    signal,
    onStatus({ conditions }) {
      const held = conditions.find(({ reason }) => reason === 'Held');
      // What keeps the backend off may need a person, and nothing else on the terminal says so.
      if (held && !told) io.err(`notice: ${plainText(held.message)}\n`);
      told ||= held !== undefined;
    },
  });
}

/** No generations there: ready counts only while nothing that was sent still asks for a restart. */
async function waitForeign({ client, sent, timeoutMs, io }: WaitInput, pace: Pace): Promise<void> {
  const { signal } = io;
  const deadline = pace.now() + timeoutMs;
  for (;;) {
    const state = await client.backendState({ signal }).then(
      (reply) => reply.vmState,
      (error: unknown) => {
        if (error instanceof RdError && error.code !== 'ERR_CANCELLED') return undefined;
        throw error;
      },
    );
    if (state === 'ERROR') throw new RdError('ERR_CONVERGE_FAILED', 'The backend is in the state ERROR.');
    if ((state === 'STARTED' || state === 'DISABLED') && !(sent && (await restartDue(client, sent, signal)))) return;
    const left = deadline - pace.now();
    if (left <= 0) throw new RdError('ERR_DEADLINE', `The last state seen was ${state ?? 'unknown'}.`);
    await pace.sleep(Math.min(POLL_MS, left), signal);
    if (signal.aborted) throw new RdError('ERR_CANCELLED', 'Interrupted while waiting for the backend.');
  }
}

async function restartDue(client: Client, sent: JsonObject, signal: AbortSignal): Promise<boolean> {
  const proposal = await client.proposal(sent, { signal });
  return Object.values(proposal).some((entry) => entry.desired !== undefined);
}
