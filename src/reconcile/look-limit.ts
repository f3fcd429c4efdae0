/** Shortest and longest limit of an observation. */
export const LOOK_LIMIT_MS = 30_000;
const LONGEST_MS = 120_000;
const TIMES_THE_USUAL = 10;
/** Of how many successful observations the usual duration is the median. */
const REMEMBERED = 9;

/** What a slow computer was seen to need. Milliseconds. */
export interface LookHistory {
  /** Durations of the last successful observations, newest last. */
  durations: readonly number[];
  /** Observations that have reached their limit since. */
  timeouts: number;
}

export const NO_LOOKS: LookHistory = { durations: [], timeouts: 0 };

/** Pure. The history after an observation that took this long, or reached its limit. */
export function withLook({ durations, timeouts }: LookHistory, look: number | 'timed out'): LookHistory {
  if (look === 'timed out') return { durations, timeouts: timeouts + 1 };
  return { durations: [...durations, look].slice(-REMEMBERED), timeouts: 0 };
}

/** Pure. Ten times the usual duration; twice as long after each timeout, so that a computer that has become slow is not given up. */
export function lookLimitMs(history: LookHistory): number {
  const least = Math.max(LOOK_LIMIT_MS, TIMES_THE_USUAL * (usualMs(history) ?? 0));
  return Math.min(LONGEST_MS, least * 2 ** history.timeouts);
}

/** Pure. `no response within 30 seconds, where 3 are usual` */
export function timeoutText(history: LookHistory): string {
  return `no response within ${seconds(lookLimitMs(history))} seconds${usualText(history)}`;
}

/** Pure. `the driver has not answered for 12 seconds, where 3 are usual` */
export function waitingText(ms: number, history: LookHistory): string {
  return `the driver has not answered for ${seconds(ms)} seconds${usualText(history)}`;
}

function usualText(history: LookHistory): string {
  const usual = usualMs(history);
  return usual === undefined ? '' : `, where ${usual < 1_000 ? 'less than 1 is' : `${seconds(usual)} are`} usual`;
}

function usualMs({ durations }: LookHistory): number | undefined {
  return [...durations].sort((one, other) => one - other)[Math.floor(durations.length / 2)];
}

function seconds(ms: number): number {
  return Math.round(ms / 1000);
}
