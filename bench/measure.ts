/** One line of the result table. `ratio` is subject over reference, or reference over subject where more is better, or what a name says. */
export interface Result {
  name: string;
  /** What is compared with what, in words. */
  compared: string;
  ratio: number;
  /** `<=` or `>=` and the number that we want. */
  aim: { sign: '<=' | '>='; value: number };
  met: boolean;
  /** Median of the subject and of the reference, in `unit`. */
  subject: number;
  reference: number;
  unit: string;
  rounds: number;
}

/** The middle value; of an even number of values the mean of the middle two. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const high = sorted[middle];
  if (high === undefined) throw new Error('median of nothing');
  return sorted.length % 2 === 1 ? high : (high + (sorted[middle - 1] ?? high)) / 2;
}

/** Runs both in turn, so that drift of the machine hits both; the ratio is the median of the paired ratios. */
export async function paired(
  rounds: number,
  subject: () => Promise<number>,
  reference: () => Promise<number>,
): Promise<{ ratio: number; subject: number; reference: number }> {
  const subjects: number[] = [];
  const references: number[] = [];
  for (let round = 0; round < rounds; round++) {
    // The order alternates, because whoever comes second finds warmer caches.
    if (round % 2 === 0) {
      references.push(await reference());
      subjects.push(await subject());
    } else {
      subjects.push(await subject());
      references.push(await reference());
    }
  }
  return compare(subjects, references);
}

/** Of figures that were taken in turn: the ratio is the median of the paired ratios. */
export function compare(
  subjects: readonly number[],
  references: readonly number[],
): { ratio: number; subject: number; reference: number } {
  const ratios = subjects.map((value, index) => value / (references[index] ?? Number.NaN));
  return { ratio: median(ratios), subject: median(subjects), reference: median(references) };
}

/** Completes a result: rounds the ratio for print and judges it unrounded. */
export function result(line: Omit<Result, 'met'>): Result {
  const met = line.aim.sign === '<=' ? line.ratio <= line.aim.value : line.ratio >= line.aim.value;
  return { ...line, ratio: Math.round(line.ratio * 100) / 100, met };
}
