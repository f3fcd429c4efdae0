import type { Part } from '../formats/format.ts';

/** What became of one setting of an imported profile. */
export type Fidelity =
  /** The same value at the same path. */
  | { outcome: 'kept'; part: Part; path: string }
  /** In the result, and not as it was written: a clause says how it differs. */
  | { outcome: 'changed'; part: Part; path: string; from?: string; reason: string }
  /** Not in the result. `place` is in the words of the format. */
  | { outcome: 'lost'; part?: Part; place: string; reason: string };

export type Outcome = Fidelity['outcome'];

/** How many of each there are. */
export function outcomeCounts(entries: readonly Fidelity[]): Record<Outcome, number> {
  const counts = { kept: 0, changed: 0, lost: 0 };
  for (const { outcome } of entries) counts[outcome] += 1;
  return counts;
}
