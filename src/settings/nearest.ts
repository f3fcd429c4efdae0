const LONGEST = 80;

/**
 * Returns the candidate most similar to `name`, or undefined if none is close. Case-insensitive; a swap of neighboring
 * letters counts as one edit, like a missing, an extra and a wrong letter.
 */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  if (name.length > LONGEST) return undefined;
  const target = name.toLowerCase();
  let best: string | undefined;
  let least = Math.max(2, Math.floor(name.length / 3)) + 1;
  for (const candidate of candidates) {
    if (candidate.length > LONGEST || Math.abs(candidate.length - name.length) >= least) continue;
    const mistakes = distance(target, candidate.toLowerCase());
    // Any word is close to a short one: at least half of it must match.
    if (mistakes < least && mistakes * 2 <= Math.max(name.length, candidate.length)) {
      best = candidate;
      least = mistakes;
    }
  }
  return best;
}

/** Computes the optimal string alignment distance. Libraries such as `fastest-levenshtein` count a swap of neighbors as two edits. */
function distance(a: string, b: string): number {
  let secondLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min((row[j - 1] ?? 0) + 1, (last[j] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, (secondLast[j - 2] ?? 0) + 1);
      }
      row.push(cost);
    }
    secondLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
