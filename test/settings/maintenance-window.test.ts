import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { isOpen, momentText, nextOpening, parseDefer, parseWindow } from '../../src/settings/maintenance-window.ts';
import { runs } from '../helpers/rounds.ts';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
/** With and without daylight saving time, in both hemispheres, with half hours, and one that skipped a day. */
const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'America/St_Johns',
  'Australia/Lord_Howe',
  'Asia/Kathmandu',
  'Pacific/Apia',
];

const at = (text: string) => Date.parse(text);

function spansOf(text: string) {
  const spans = parseWindow(text);
  if (!Array.isArray(spans)) throw new Error(spans.message);
  return spans;
}

test.each([
  ['Sat 02:00-04:00', [{ days: [6], from: 120, to: 240 }]],
  ['sat, SUN 23:00-01:00', [{ days: [6, 0], from: 1380, to: 60 }]],
  ['Fri-Mon 00:00-24:00', [{ days: [5, 6, 0, 1], from: 0, to: 1440 }]],
  [
    'Mon-Fri 22:00-23:30, Sun 2:00-4:00',
    [
      { days: [1, 2, 3, 4, 5], from: 1320, to: 1410 },
      { days: [0], from: 120, to: 240 },
    ],
  ],
  ['03:00 - 04:00', [{ days: [0, 1, 2, 3, 4, 5, 6], from: 180, to: 240 }]],
])('%s', (text, spans) => {
  expect(parseWindow(text)).toEqual(spans);
});

test.each([
  ['', 'is not a weekly time window'],
  ['Sat', 'has days without a time'],
  ['Sat 02:00', 'is not a weekly time window'],
  ['Sat 02:00-02:00', 'is empty'],
  ['Sat 02:60-03:00', 'is not a time of a day'],
  ['Sat 24:00-25:00', 'is not a time of a day'],
  ['Saturday 02:00-03:00', 'is not a weekly time window'],
  ['Mon-Wed-Fri 02:00-03:00', 'is not a weekly time window'],
  ['Sat 02:00-03:00,', 'is not a weekly time window'],
])('%j is refused', (text, problem) => {
  expect(parseWindow(text)).toMatchObject({ message: expect.stringContaining(problem) });
});

test('a time of deferral is from a minute to a year', () => {
  expect(['30m', '12h', '7d', '2w', '366d'].map(parseDefer)).toEqual(
    [0.5 / 24, 0.5, 7, 14, 366].map((days) => days * DAY),
  );
  expect(['0d', '7', '367d', '1y', '-1d', '1.5h', ''].map(parseDefer)).toEqual(Array(7).fill(undefined));
});

test('a window over midnight belongs to the day on which it begins', () => {
  const spans = spansOf('Sat 23:00-01:00');
  const open = (text: string) => isOpen(spans, at(text), 'UTC');
  expect(open('2026-11-28T22:59:00Z')).toBe(false);
  expect(open('2026-11-28T23:00:00Z')).toBe(true);
  expect(open('2026-11-29T00:59:59Z')).toBe(true);
  expect(open('2026-11-29T01:00:00Z')).toBe(false);
  expect(open('2026-11-28T00:30:00Z')).toBe(false);
});

test('an hour that the clock skips has no window, and one that it repeats has two', () => {
  const spans = spansOf('Sun 02:00-03:00');
  // In Berlin, 02:00 is followed by 03:00 on 2027-03-28, and 03:00 by 02:00 on 2026-10-25.
  expect(nextOpening(spans, at('2027-03-27T12:00:00Z'), 'Europe/Berlin')).toBe(at('2027-04-04T00:00:00Z'));
  const autumn = at('2026-10-24T12:00:00Z');
  expect(nextOpening(spans, autumn, 'Europe/Berlin')).toBe(at('2026-10-25T00:00:00Z'));
  expect(isOpen(spans, at('2026-10-25T00:30:00Z'), 'Europe/Berlin')).toBe(true);
  expect(isOpen(spans, at('2026-10-25T01:30:00Z'), 'Europe/Berlin')).toBe(true);
  // A window that ends in the repeated hour opens again where the clock is set back.
  const early = spansOf('Sun 01:30-02:15');
  expect(nextOpening(early, at('2026-10-25T00:20:00Z'), 'Europe/Berlin')).toBe(at('2026-10-25T01:00:00Z'));
});

/** What a clock on the wall reads, by the system's own formatting. */
function wallOf(moment: number, zone: string): { day: number; minutes: number } {
  const text = new Date(moment).toLocaleString('en-US', {
    timeZone: zone,
    weekday: 'short',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  });
  const [, weekday = '', hours, minutes] = /^(\w+),? (\d+):(\d+)/.exec(text) ?? [];
  const day = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'].indexOf(weekday);
  return { day, minutes: Number(hours) * 60 + Number(minutes) };
}

const SPAN = fc
  .record({
    days: fc.uniqueArray(fc.nat(6), { minLength: 1 }),
    from: fc.nat(1439),
    to: fc.integer({ min: 1, max: 1440 }),
  })
  .filter(({ from, to }) => from !== to);
const SPANS = fc.array(SPAN, { minLength: 1, maxLength: 3 });
/** Half of them within two days of a change of the clock. */
const MOMENT = fc.oneof(
  fc.integer({ min: at('2011-01-01'), max: at('2040-01-01') }),
  fc
    .tuple(
      fc.constantFrom('2026-03-29', '2026-10-25', '2026-03-08', '2026-11-01', '2026-04-05', '2026-10-04', '2011-12-30'),
      fc.integer({ min: -2 * DAY, max: 2 * DAY }),
    )
    .map(([day, off]) => at(day) + off),
);

test('a window is open exactly while the clock on the wall reads a time in it', () => {
  fc.assert(
    fc.property(SPANS, MOMENT, fc.constantFrom(...ZONES), (spans, moment, zone) => {
      const { day, minutes } = wallOf(moment, zone);
      const expected = spans.some(({ days, from, to }) =>
        from < to
          ? days.includes(day) && minutes >= from && minutes < to
          : (days.includes(day) && minutes >= from) || (days.includes((day + 6) % 7) && minutes < to),
      );
      expect(isOpen(spans, moment, zone)).toBe(expected);
    }),
    { numRuns: runs(3000) },
  );
});

test('the next opening is the first moment at which a window is open', () => {
  fc.assert(
    fc.property(SPANS, MOMENT, fc.constantFrom(...ZONES), (spans, moment, zone) => {
      const next = nextOpening(spans, moment, zone);
      if (next === undefined) throw new Error('none in three weeks');
      expect(next).toBeGreaterThanOrEqual(moment);
      expect(isOpen(spans, next, zone)).toBe(true);
      // Every 15 minutes before, and just before it.
      for (let earlier = moment; earlier < next; earlier += 15 * MINUTE) {
        expect(isOpen(spans, earlier, zone), new Date(earlier).toISOString()).toBe(false);
      }
      if (next > moment) expect(isOpen(spans, next - 1, zone)).toBe(false);
    }),
    { numRuns: runs(1500) },
  );
}, 30_000);

test('without a zone, the clock on the wall is that of this computer', () => {
  for (const zone of ['America/St_Johns', 'Europe/Berlin', 'Asia/Kathmandu']) {
    vi.stubEnv('TZ', zone);
    fc.assert(
      fc.property(SPANS, MOMENT, (spans, moment) => {
        expect(nextOpening(spans, moment)).toBe(nextOpening(spans, moment, zone));
        expect(momentText(moment, moment)).toBe(momentText(moment, moment, zone));
      }),
      { numRuns: runs(200) },
    );
  }
  vi.unstubAllEnvs();
}, 30_000);

test('a moment is shown in local time, with how far away it is', () => {
  const now = at('2026-11-24T15:00:00Z');
  expect(momentText(at('2026-11-28T01:00:00Z'), now, 'Europe/Berlin')).toBe('Sat 02:00 (in 3 days)');
  expect(momentText(at('2026-11-24T20:30:00Z'), now, 'UTC')).toBe('Tue 20:30 (in 6 hours)');
  expect(momentText(now + 61_000, now, 'UTC')).toBe('Tue 15:01 (in 1 minute)');
  expect(momentText(at('2026-12-05T02:00:00Z'), now, 'UTC')).toBe('2026-12-05 Sat 02:00 (in 10 days)');
});
