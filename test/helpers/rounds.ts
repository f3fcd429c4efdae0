/**
 * How many rounds a search under stress makes: `short` of them where a change has to wait for it, `full` with `RDCTL_TEST_LONG=1`.
 * Both begin with the seed of the run, so that the short one is the beginning of the full one.
 */
export function rounds(short: number, full: number): number {
  return process.env.RDCTL_TEST_LONG === '1' ? full : short;
}

/**
 * How many values a search by property tries of the `full` number: a fifth of them, and 20 at least, where somebody waits for it.
 * As above, the seed is the same.
 */
export function runs(full: number): number {
  return rounds(Math.min(full, Math.max(20, Math.ceil(full / 5))), full);
}

/** Where a search that does the same at every call goes: to the first call of each name and every `nth` one, or to all of them. */
export function pointsOf(calls: readonly string[], nth = 3): number[] {
  const every = rounds(nth, 1);
  return calls.flatMap((call, at) => (at % every === 0 || calls.indexOf(call) === at ? [at] : []));
}
