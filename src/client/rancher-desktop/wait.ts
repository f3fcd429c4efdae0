import { RdError } from '../../errors.ts';
import type { JsonObject } from '../../json.ts';
import type { Clock } from '../../os/clock.ts';
import { COMPATIBLE } from '../../product.ts';
import { stripHidden } from '../../settings/printable.ts';
import type { LifecycleClient, SettingsClient } from '../contract.ts';

export interface ReadyWait {
  client: Pick<LifecycleClient, 'backendState'> & Pick<SettingsClient, 'proposal'>;
  /** The body that was sent; proposing it again shows whether the application still has to restart. */
  sent: JsonObject | undefined;
  timeoutMs: number;
  clock: Clock;
  signal: AbortSignal;
  /** Called with the state after each look, as a sentence. */
  show(text: string): void;
}

const POLL_MS = 2000;

/**
 * Waits until the backend is ready. There are no generations: ready counts only once no sent setting requires a restart.
 * @throws RdError `ERR_CONVERGE_FAILED`, `ERR_DEADLINE`, `ERR_CANCELLED`.
 */
export async function waitUntilReady({ client, sent, timeoutMs, clock, signal, show }: ReadyWait): Promise<void> {
  const deadline = clock.now() + timeoutMs;
  for (;;) {
    const state = await client.backendState({ signal }).then(
      (reply) => reply.vmState,
      (error: unknown) => {
        if (error instanceof RdError && error.code !== 'ERR_CANCELLED') return undefined;
        throw error;
      },
    );
    if (state === 'ERROR') throw new RdError('ERR_CONVERGE_FAILED', 'The backend is in state ERROR.');
    if ((state === 'STARTED' || state === 'DISABLED') && !(sent && (await restartDue(client, sent, signal)))) return;
    show(`The backend of ${COMPATIBLE.productName} is in state ${stripHidden(state ?? 'unknown')}.`);
    const left = deadline - clock.now();
    if (left <= 0) throw new RdError('ERR_DEADLINE', `The last state seen was ${state ?? 'unknown'}.`);
    await clock.sleep(Math.min(POLL_MS, left), signal);
    if (signal.aborted) throw new RdError('ERR_CANCELLED', 'Interrupted while waiting for the backend.');
  }
}

async function restartDue(
  client: Pick<SettingsClient, 'proposal'>,
  sent: JsonObject,
  signal: AbortSignal,
): Promise<boolean> {
  const proposal = await client.proposal(sent, { signal });
  return Object.values(proposal).some((entry) => entry.desired !== undefined);
}
