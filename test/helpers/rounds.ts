/** Whether this is a run of everything, of which a normal one is a part. */
export const LONG = process.env.RDCTL_TEST_LONG === '1';

/**
 * How many rounds a stress search makes: `short` when a change has to wait for it, `full` with `RDCTL_TEST_LONG=1`.
 * Both start with the seed of the run, so the short search is the beginning of the full one.
 */
export function rounds(short: number, full: number): number {
  return LONG ? full : short;
}

/**
 * How many values a property search tries of the `full` number: a fifth of them but at least 20 in a normal run.
 * The seed is the same, as above.
 */
export function runs(full: number): number {
  return rounds(Math.min(full, Math.max(20, Math.ceil(full / 5))), full);
}
