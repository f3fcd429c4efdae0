const RFC_3339 = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2})$/;

/**
 * RFC 3339 with nanoseconds, trailing zeros dropped, in the time zone of `offsetMinutes` east of UTC: `Z` for none.
 * `nanoseconds` are those below the millisecond.
 */
export function formatCreated(ms: number, nanoseconds: number, offsetMinutes: number): string {
  const local = new Date(ms + offsetMinutes * 60_000).toISOString();
  const fraction = `${local.slice(20, 23)}${String(nanoseconds).padStart(6, '0')}`.replace(/0+$/, '');
  return `${local.slice(0, 19)}${fraction === '' ? '' : `.${fraction}`}${zone(offsetMinutes)}`;
}

/** Now, in the time zone of this computer. */
export function createdNow(): string {
  const ms = Date.now();
  return formatCreated(ms, Number(process.hrtime.bigint() % 1_000_000n), -new Date(ms).getTimezoneOffset());
}

/** Nanoseconds since the epoch; `undefined` unless RFC 3339. */
export function instantOf(created: string): bigint | undefined {
  const [, seconds, fraction = '', offset] = RFC_3339.exec(created) ?? [];
  const ms = seconds === undefined ? Number.NaN : Date.parse(`${seconds}${offset}`);
  return Number.isNaN(ms) ? undefined : BigInt(ms) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
}

function zone(minutes: number): string {
  if (minutes === 0) return 'Z';
  const pad = (value: number) => String(value).padStart(2, '0');
  const size = Math.abs(minutes);
  return `${minutes < 0 ? '-' : '+'}${pad(Math.floor(size / 60))}:${pad(size % 60)}`;
}
