import { RdError } from '../errors.ts';
import type { Clock } from '../reconcile/clock.ts';
import type { Condition, LoopStatus } from '../reconcile/status.ts';

/** Milliseconds: the first pause between two looks, and the longest. */
const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 1000;
/** A service that restarts is away for a moment; one that is gone stays away. */
const AWAY_LIMIT = 3000;
/** A look that fails so shortly before the end fails because of the end. */
const LAST_MOMENT = 100;

export interface WaitInput<S extends LoopStatus> {
  /** `GET /v2/status`. */
  read(): Promise<S>;
  /** The version of the desired state that must be reached, or a later one. */
  generation: number;
  timeoutMs: number;
  /** The limit as it was asked for, where a part of it has passed already; for the message. */
  askedMs?: number;
  clock: Clock;
  signal: AbortSignal;
  /** Called with every status that differs from the one before in phases or conditions. */
  onStatus?(status: S): void;
}

/**
 * Looks until the service has converged for the generation. Throws `ERR_CONVERGE_FAILED` with the condition that failed,
 * `ERR_DEADLINE` naming what was still missing, `ERR_CANCELLED`, or the connection error of a service that went away.
 */
export async function waitConverged<S extends LoopStatus>(input: WaitInput<S>): Promise<S> {
  const { clock, signal, timeoutMs, askedMs = timeoutMs } = input;
  const start = clock.now();
  let pause = FIRST_PAUSE;
  let seen = '';
  let last: S | undefined;
  let awaySince: number | undefined;
  for (;;) {
    if (signal.aborted) throw cancelled();
    try {
      last = await input.read();
      awaySince = undefined;
    } catch (error) {
      awaySince ??= clock.now();
      // The last look is given only what is left of the time.
      if (last && isDeadline(error) && start + timeoutMs - clock.now() < LAST_MOMENT) throw deadline(askedMs, last);
      if (!isConnectionError(error)) throw error;
      if (clock.now() - awaySince >= AWAY_LIMIT) throw wentAway(error);
    }
    if (last && awaySince === undefined) {
      const now = fingerprint(last);
      if (now !== seen) {
        seen = now;
        pause = FIRST_PAUSE;
        input.onStatus?.(last);
      }
      if (hasConverged(last, input.generation)) return last;
      if (hasFailed(last, input.generation)) throw convergeFailed(last);
    }
    const left = start + timeoutMs - clock.now();
    if (left <= 0) throw deadline(askedMs, last);
    await clock.sleep(Math.min(pause, left), signal);
    pause = Math.min(pause * 1.5, LONGEST_PAUSE);
  }
}

/** True when the status speaks for the generation, or a later one, and says that nothing is left to do. */
export function hasConverged(status: LoopStatus, generation: number): boolean {
  return status.converged && status.observedGeneration >= generation;
}

function hasFailed(status: LoopStatus, generation: number): boolean {
  if (status.backendState === 'ERROR') return status.observedGeneration >= generation;
  // Nothing is tried for it, so that no generation is ever seen to the end.
  return status.conditions.some(({ reason }) => reason === 'DataNotWhole');
}

/**
 * The condition that explains why a status is not converged: what is wrong before what is under way, and a part before the sum of
 * the parts. Never one that is as wanted, such as a cluster that is switched off.
 */
export function blame(status: LoopStatus): Condition | undefined {
  const of = (concern: Condition['concern']) => {
    const open = status.conditions.filter((condition) => condition.concern === concern);
    return open.find((condition) => condition.type !== 'Converged') ?? open[0];
  };
  return of('attention') ?? of('patience');
}

function convergeFailed(status: LoopStatus): RdError {
  const condition = blame(status);
  return new RdError(
    'ERR_CONVERGE_FAILED',
    condition
      ? `The backend did not reach the desired state (${condition.type}: ${condition.reason}): ${sentence(condition)}`
      : 'The backend is in the state ERROR.',
    // Other settings would not help.
    condition?.reason === 'DataNotWhole' ? { advice: 'What was sent is kept, and counts from then on.' } : {},
  );
}

function deadline(timeoutMs: number, last: LoopStatus | undefined): RdError {
  const condition = last && blame(last);
  const missing = condition ? ` (${condition.type}: ${condition.reason}): ${sentence(condition)}` : '.';
  const limit = `${timeoutMs / 1000} s`;
  return new RdError('ERR_DEADLINE', `The backend has not converged within ${limit}${missing}`, {
    advice: 'The service goes on working; look with `rdctl status`, or apply again with a longer --timeout.',
  });
}

function sentence({ message, reason }: Condition): string {
  const text = message || reason;
  return text.endsWith('.') ? text : `${text}.`;
}

function wentAway(cause: RdError): RdError {
  return new RdError(cause.code, `The service went away while it was at work: ${cause.message}.`, {
    cause,
    advice: 'What was sent is kept. Apply again: that starts the service, and it finishes.',
  });
}

function cancelled(): RdError {
  return new RdError('ERR_CANCELLED', 'Interrupted while waiting for the backend.', {
    advice: 'What was sent stays in force and the service goes on; look with `rdctl status`.',
  });
}

function isDeadline(error: unknown): boolean {
  return error instanceof RdError && error.code === 'ERR_DEADLINE';
}

function isConnectionError(error: unknown): error is RdError {
  return error instanceof RdError && (error.code === 'ERR_CONNECTION' || error.code === 'ERR_NOT_RUNNING');
}

function fingerprint(status: LoopStatus): string {
  return JSON.stringify([status.generation, status.backendState, status.phases, status.conditions]);
}
