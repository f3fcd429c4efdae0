/** The default seed of every random search: results must not depend on luck. */
const FIXED = 20300101;

/**
 * The seed for the random values of all tests: `RDCTL_TEST_SEED`, a whole number, or `random` for a new one each time.
 * @throws Error for anything else.
 */
export function testSeed(wanted = process.env.RDCTL_TEST_SEED): number {
  if (wanted === undefined || wanted === '') return FIXED;
  if (wanted === 'random') return Math.floor(Math.random() * 0x8000_0000);
  if (!/^-?\d{1,10}$/.test(wanted)) throw new Error('RDCTL_TEST_SEED is neither a whole number nor "random"');
  return Number(wanted);
}
