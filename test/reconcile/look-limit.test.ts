import { expect, test } from 'vitest';
import { lookLimitMs, NO_LOOKS, timeoutText, waitingText, withLook } from '../../src/reconcile/observe.ts';

const after = (...looks: (number | 'timed out')[]) => looks.reduce(withLook, NO_LOOKS);
const late = 'timed out' as const;

test.each([
  { looks: [], limitMs: 30_000 },
  { looks: [200], limitMs: 30_000 },
  { looks: [8_000], limitMs: 80_000 },
  { looks: [8_000, 100, 100], limitMs: 30_000 },
  { looks: [60_000], limitMs: 120_000 },
  // A computer that is too slow from the beginning, and one that has become slow.
  { looks: [late], limitMs: 60_000 },
  { looks: [200, late, late], limitMs: 120_000 },
  { looks: [200, late, late, late, late], limitMs: 120_000 },
  { looks: [200, late, late, 35_000, 36_000], limitMs: 120_000 },
  { looks: [late, late, 200], limitMs: 30_000 },
])('after observations of $looks ms the next one has $limitMs ms', ({ looks, limitMs }) => {
  expect(lookLimitMs(after(...looks))).toBe(limitMs);
});

test('nine observations are remembered', () => {
  expect(after(...Array.from({ length: 20 }, (_, at) => at)).durations).toEqual([11, 12, 13, 14, 15, 16, 17, 18, 19]);
});

test('the texts say what is usual here, if it is known', () => {
  expect(waitingText(12_300, NO_LOOKS)).toBe('the driver has not answered for 12 seconds');
  expect(waitingText(12_300, after(3_000))).toBe('the driver has not answered for 12 seconds, where 3 are usual');
  expect(timeoutText(after(200))).toBe('no response within 30 seconds, where less than 1 is usual');
  expect(timeoutText(after(8_000, late))).toBe('no response within 120 seconds, where 8 are usual');
});
