/**
 * Maintenance windows: `Sat 02:00-04:00`, `Mon-Fri 22:00-23:30, Sun 02:00-04:00`, `Sat, Sun 23:00-01:00`, or `03:00-04:00` for every day. A window
 * follows the local time of its zone: an hour that the clock repeats is open twice, and one that it skips never.
 */

/** The windows of one profile. */
export interface MaintenanceWindow {
  /** As written. */
  window: string;
  /** Milliseconds after which a deferred change is made even if no window has opened. */
  maxDeferMs: number;
}

/** A time of day on some weekdays, in minutes since midnight. It ends on the next day if `to` is not after `from`. */
interface Span {
  /** 0 is Sunday. */
  days: readonly number[];
  from: number;
  to: number;
}

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'] as const;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Default of `maxDeferMs`, in milliseconds. */
export const DEFAULT_MAX_DEFER = 7 * DAY;
const LONGEST_DEFER = 366 * DAY;
const EXAMPLE = 'such as "Sat 02:00-04:00" or "Mon-Fri 22:00-23:30, Sun 02:00-04:00"';

/** The error in a window, as a clause, and a correct example. */
export interface WindowProblem {
  message: string;
  expected: string;
}

/** Returns the spans of a window, or the first problem with it. */
export function parseWindow(text: string): Span[] | WindowProblem {
  const spans: Span[] = [];
  let days: number[] = [];
  for (const item of text.split(',').map((part) => part.trim())) {
    const [, words = '', times] = /^(.*?)\s*(\d{1,2}:\d{2}\s*-\s*\d{1,2}:\d{2})?$/.exec(item) ?? [];
    const named = words === '' ? [] : daysIn(words);
    if (named === undefined || (words === '' && times === undefined)) {
      return { message: `${JSON.stringify(item)} is not a weekly time window`, expected: EXAMPLE };
    }
    days = [...days, ...named];
    if (times === undefined) continue;
    const [from, to] = times.split('-').map((time) => minutesIn(time.trim()));
    if (from === undefined || to === undefined || from === 24 * 60) {
      return { message: `${JSON.stringify(times)} is not a time of a day`, expected: 'times from 00:00 to 24:00' };
    }
    if (from === to) {
      return { message: `${JSON.stringify(times)} is empty`, expected: 'an end that differs from the beginning' };
    }
    spans.push({ days: days.length === 0 ? DAYS.map((_, day) => day) : days, from, to });
    days = [];
  }
  return days.length === 0 ? spans : { message: `${JSON.stringify(text)} has days without a time`, expected: EXAMPLE };
}

/** Parses `Sat`, `Mon-Fri` or `Fri-Mon`; undefined for anything else. */
function daysIn(words: string): number[] | undefined {
  const [first, last, ...more] = words.split('-').map((word) => dayIn(word.trim()));
  if (first === undefined || more.length > 0) return undefined;
  if (!words.includes('-')) return [first];
  if (last === undefined) return undefined;
  const count = ((last - first + 7) % 7) + 1;
  return Array.from({ length: count }, (_, index) => (first + index) % 7);
}

function dayIn(word: string): number | undefined {
  const index = DAYS.findIndex((day) => day.toLowerCase() === word.toLowerCase());
  return index === -1 ? undefined : index;
}

function minutesIn(time: string): number | undefined {
  const [hours = Number.NaN, minutes = Number.NaN] = time.split(':').map(Number);
  const total = hours * 60 + minutes;
  return minutes < 60 && total <= 24 * 60 ? total : undefined;
}

const UNITS: Readonly<Record<string, number>> = { m: MINUTE, h: HOUR, d: DAY, w: 7 * DAY };

/** Parses `30m`, `12h`, `7d` or `2w`, from a minute to a year, to milliseconds; undefined for anything else. */
export function parseDefer(text: string): number | undefined {
  const [, amount = '', unit = ''] = /^(\d{1,6})([mhdw])$/.exec(text) ?? [];
  const ms = Number(amount) * (UNITS[unit] ?? 0);
  return amount !== '' && ms >= MINUTE && ms <= LONGEST_DEFER ? ms : undefined;
}

/** True if a window is open at a moment. `zone`: IANA name of the time zone, by default that of this computer. */
export function isOpen(spans: readonly Span[], at: number, zone?: string): boolean {
  const wall = at + offsetAt(at, zone);
  const day = new Date(wall).getUTCDay();
  const minutes = Math.floor((((wall % DAY) + DAY) % DAY) / MINUTE);
  return spans.some(({ days, from, to }) => {
    if (from < to) return days.includes(day) && minutes >= from && minutes < to;
    return (days.includes(day) && minutes >= from) || (days.includes((day + 6) % 7) && minutes < to);
  });
}

/** Returns the first moment from `at` on at which a window is open, or undefined if there is none in the coming weeks. */
export function nextOpening(spans: readonly Span[], at: number, zone?: string): number | undefined {
  if (isOpen(spans, at, zone)) return at;
  const wall = at + offsetAt(at, zone);
  const midnight = wall - (((wall % DAY) + DAY) % DAY);
  const days = Array.from({ length: DAYS_AHEAD }, (_, day) => midnight + day * DAY);
  // A moment at which the clock is moved can belong to another day than the one that names it.
  const candidates = days.flatMap((day) => momentsOf(spans, day, zone)).filter((moment) => moment > at);
  return candidates.sort((a, b) => a - b).find((moment) => isOpen(spans, moment, zone));
}

/** Daylight saving can skip a window that is on one day of the week only, so more than one week is searched. */
const DAYS_AHEAD = 22;

/** Returns the moments of one local day at which a window can open: its start times, and each clock change. `midnight` is in local time. */
function momentsOf(spans: readonly Span[], midnight: number, zone?: string): number[] {
  const [before, after] = [offsetAt(midnight - DAY, zone), offsetAt(midnight + 2 * DAY, zone)];
  const offsets = before === after ? [before] : [before, after];
  const begins = spans.flatMap(({ from }) => offsets.map((offset) => midnight + from * MINUTE - offset));
  if (before === after) return begins;
  const moved = change(midnight - DAY - before, midnight + 2 * DAY - after, zone);
  return [...begins, moved];
}

/** Returns the moment between two others at which the UTC offset changes, to the millisecond. */
function change(from: number, to: number, zone?: string): number {
  let [low, high] = [from, to];
  const before = offsetAt(low, zone);
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetAt(middle, zone) === before) low = middle;
    else high = middle;
  }
  return high;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** Returns the milliseconds that the local time of a zone is ahead of UTC. */
function offsetAt(at: number, zone?: string): number {
  if (zone === undefined) return -new Date(at).getTimezoneOffset() * MINUTE;
  let format = formats.get(zone);
  if (!format) {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      ...{ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' },
    });
    formats.set(zone, format);
  }
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
  const whole = at - (((at % 1000) + 1000) % 1000);
  return Date.UTC(year, month - 1, day, hour, minute, second) - whole;
}

/** Formats `Sat 02:00 (in 3 days)`, with the date if the weekday alone would be ambiguous. */
export function momentText(at: number, now: number, zone?: string): string {
  const wall = new Date(at + offsetAt(at, zone));
  const time = `${DAYS[wall.getUTCDay()]} ${wall.toISOString().slice(11, 16)}`;
  const left = Math.max(0, at - now);
  const day = left < 6 * DAY ? '' : `${wall.toISOString().slice(0, 10)} `;
  return `${day}${time} (in ${leftText(left)})`;
}

function leftText(ms: number): string {
  const unit = (count: number, name: string) => `${count} ${name}${count === 1 ? '' : 's'}`;
  if (ms >= 2 * DAY) return unit(Math.round(ms / DAY), 'day');
  if (ms >= 2 * HOUR) return unit(Math.round(ms / HOUR), 'hour');
  return unit(Math.max(1, Math.round(ms / MINUTE)), 'minute');
}
