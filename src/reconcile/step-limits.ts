import type { StepName } from './step.ts';

const MINUTE_MS = 60_000;

/**
 * Limits of the steps in milliseconds. Generous: they end what hangs, and must not end what is slow. A machine or a
 * cluster may have to download first; a moby engine waits a minute for its containerd and two for itself.
 * `docs/conditions.md` lists the same numbers.
 */
export const STEP_LIMITS_MS = {
  'machine start': 10 * MINUTE_MS,
  'machine stop': 2 * MINUTE_MS,
  'machine adjust': 2 * MINUTE_MS,
  'engine start': 5 * MINUTE_MS,
  'engine stop': 2 * MINUTE_MS,
  'engine adjust': 2 * MINUTE_MS,
  'cluster start': 10 * MINUTE_MS,
  'cluster stop': 2 * MINUTE_MS,
  'cluster reset': 5 * MINUTE_MS,
} as const satisfies Record<StepName, number>;

/** Time budget of all attempts of one step, as a multiple of its limit; after that the failure is reported. */
export const ATTEMPTS_BUDGET = 2;

/** Grace period for a cancelled step. */
export const GRACE_MS = 30_000;

/** How long a started cluster may take to answer. */
export const CLUSTER_ANSWER_MS = 10 * MINUTE_MS;

/** `10 minutes`, `30 seconds`. */
export function minutesText(ms: number): string {
  return ms < MINUTE_MS ? `${ms / 1000} seconds` : `${ms / MINUTE_MS} minutes`;
}
