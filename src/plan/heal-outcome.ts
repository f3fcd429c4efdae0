import type { FieldMemory } from './healing.ts';

/** Shortest and longest pause after a failed heal, in milliseconds. */
const RETRY_MS = 30_000;
const LONGEST_RETRY_MS = 60 * 60_000;

/**
 * Returns the memory of a field after a successful heal. `against`: the manager of the reverted value; absent for a deferred change, which is no
 * round.
 */
export function afterHeal(field: FieldMemory | undefined, now: number, against?: string): FieldMemory {
  const { failed: _, ...known } = field ?? { since: now, rounds: {} };
  if (against === undefined) return known;
  return { ...known, rounds: { ...known.rounds, [against]: (known.rounds[against] ?? 0) + 1 } };
}

/** Returns the memory of a field after a failed heal, with the next retry time. `message`: the cause, as a sentence. */
export function afterFailure(field: FieldMemory | undefined, now: number, message: string): FieldMemory {
  const known = field ?? { since: now, rounds: {} };
  const attempts = (known.failed?.attempts ?? 0) + 1;
  const pause = Math.min(RETRY_MS * 2 ** (attempts - 1), LONGEST_RETRY_MS);
  return { ...known, failed: { message, attempts, retryAt: now + pause } };
}
