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
