import { expect, test } from 'vitest';
import { whenText } from '../../src/client/when.ts';

/** In the time zone of this computer. */
const NOW = new Date(2026, 10, 24, 15, 30, 0);

test.each([
  [new Date(2026, 10, 24, 15, 29, 30), 'just now'],
  // The clock was set back.
  [new Date(2026, 10, 24, 16, 0, 0), 'just now'],
  [new Date(2026, 10, 24, 15, 29, 0), '1 minute ago'],
  [new Date(2026, 10, 24, 14, 31, 0), '59 minutes ago'],
  [new Date(2026, 10, 24, 12, 15, 0), '3 hours ago'],
  [new Date(2026, 10, 24, 0, 5, 0), '15 hours ago'],
  [new Date(2026, 10, 23, 16, 0, 0), 'yesterday'],
  [new Date(2026, 10, 23, 0, 0, 0), 'yesterday'],
  [new Date(2026, 10, 22, 23, 59, 0), '2 days ago'],
  [new Date(2026, 10, 18, 15, 0, 0), '6 days ago'],
  [new Date(2026, 10, 12, 15, 0, 0), 'on November 12'],
  [new Date(2025, 10, 24, 15, 0, 0), 'on November 24, 2025'],
])('%s is %s', (then, text) => {
  expect(whenText(then.toISOString(), NOW.getTime())).toBe(text);
});

test('the evening before is hours ago, and garbage is no date', () => {
  const morning = new Date(2026, 10, 24, 1, 0, 0).getTime();
  expect(whenText(new Date(2026, 10, 23, 22, 0, 0).toISOString(), morning)).toBe('3 hours ago');
  expect(whenText('soon', morning)).toBe('at an unknown time');
});
