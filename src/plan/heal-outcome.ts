import type { FieldMemory } from './healing.ts';

/** First and longest pause after a heal that failed, in milliseconds. */
const RETRY_MS = 30_000;
const LONGEST_RETRY_MS = 60 * 60_000;

/** What is remembered of a field that was healed. `against`: the manager of the value that it had; absent for a deferred change, which is no round. */
export function afterHeal(field: FieldMemory | undefined, now: number, against?: string): FieldMemory {
  const { failed: _, ...known } = field ?? { since: now, rounds: {} };
  if (against === undefined) return known;
  return { ...known, rounds: { ...known.rounds, [against]: (known.rounds[against] ?? 0) + 1 } };
}

/** The same of a heal that failed. `message`: why, as a sentence. */
export function afterFailure(field: FieldMemory | undefined, now: number, message: string): FieldMemory {
  const known = field ?? { since: now, rounds: {} };
  const attempts = (known.failed?.attempts ?? 0) + 1;
  const pause = Math.min(RETRY_MS * 2 ** (attempts - 1), LONGEST_RETRY_MS);
  return { ...known, failed: { message, attempts, retryAt: now + pause } };
}
