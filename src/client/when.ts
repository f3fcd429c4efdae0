const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** Hours and days after which the next larger unit is used. */
const MOST_HOURS = 12;
const MOST_DAYS = 7;

/**
 * Formats a time in the past for people, in the time zone of this computer: `2 minutes ago`, `3 hours ago`, `yesterday`, `4 days ago`, `on November
 * 12`, and with the year if it is another one. @param at RFC 3339. @param now milliseconds since the epoch.
 */
export function whenText(at: string, now: number): string {
  const then = new Date(at);
  const ago = now - then.getTime();
  if (Number.isNaN(ago)) return 'at an unknown time';
  // Covers a time in the future, after the clock was set back.
  if (ago < MINUTE) return 'just now';
  if (ago < HOUR) return `${plural(Math.floor(ago / MINUTE), 'minute')} ago`;
  const days = daysBetween(then, new Date(now));
  if (days === 0 || ago < MOST_HOURS * HOUR) return `${plural(Math.floor(ago / HOUR), 'hour')} ago`;
  if (days === 1) return 'yesterday';
  if (days < MOST_DAYS) return `${days} days ago`;
  const year = then.getFullYear() === new Date(now).getFullYear() ? {} : ({ year: 'numeric' } as const);
  return `on ${then.toLocaleDateString('en-US', { month: 'long', day: 'numeric', ...year })}`;
}

/** Counts the midnights between two times. */
function daysBetween(from: Date, to: Date): number {
  const day = (time: Date) => Date.UTC(time.getFullYear(), time.getMonth(), time.getDate());
  return (day(to) - day(from)) / (24 * HOUR);
}

function plural(n: number, word: string): string {
  return `${n} ${word}${n === 1 ? '' : 's'}`;
}
