import type { Driver, Look } from '../drivers/driver.ts';
import { messageOf, RdError } from '../errors.ts';
import type { Clock } from '../os/clock.ts';
import type { Observed } from '../plan/backend.ts';

/** Observes all parts in parallel. Throws the drivers' errors. */
export async function observe(driver: Driver, signal: AbortSignal, how: Look = 'full'): Promise<Observed> {
  const [machine, moby, containerd, cluster] = await Promise.all([
    driver.machine.observe(signal),
    driver.engines.moby.observe(signal, how),
    driver.engines.containerd.observe(signal, how),
    driver.cluster ? driver.cluster.observe(signal, how) : ({ state: 'unsupported' } as const),
  ]);
  return { machine, engines: { moby, containerd }, cluster };
}

/**
 * Observes all parts within a time limit: a program that accepts a connection and never answers must not block the
 * loop. Throws `ERR_DRIVER_FAILED` at the limit, and when the signal aborts. `timedOut` is called at the limit.
 */
async function observeInTime(
  { driver, clock, how }: Pick<ObserverInput, 'driver' | 'clock'> & { how: Look },
  history: LookHistory,
  signal: AbortSignal,
  timedOut: () => void,
): Promise<Observed> {
  const stop = new AbortController();
  const done = new AbortController();
  const giveUp = () => stop.abort();
  signal.addEventListener('abort', giveUp, { once: true });
  if (signal.aborted) giveUp();
  clock.sleep(lookLimitMs(history), done.signal).then(() => {
    if (!done.signal.aborted && !stop.signal.aborted) timedOut();
    giveUp();
  });
  try {
    return await Promise.race([
      observe(driver, stop.signal, how),
      rejectOnAbort(stop.signal, `${timeoutText(history)}.`),
    ]);
  } finally {
    done.abort();
    signal.removeEventListener('abort', giveUp);
  }
}

function rejectOnAbort(signal: AbortSignal, text: string): Promise<never> {
  return new Promise((_resolve, reject) => {
    const advice = 'This computer may be busy, or an engine hangs: check the logs of the engines.';
    const fail = () => reject(new RdError('ERR_DRIVER_FAILED', text, { advice }));
    if (signal.aborted) fail();
    else signal.addEventListener('abort', fail, { once: true });
  });
}

/** The loop's observations, and the callers waiting for a new one. */
export interface Observer {
  /** Observes everything now. Throws the drivers' errors, and `ERR_DRIVER_FAILED` when interrupted. */
  look(): Promise<Observed>;
  /** True if an observation was requested or is due. */
  waiting(): boolean;
  /** Interrupts a running observation, because another follows at once; its callers get that one. */
  interrupt(): void;
  /** Returns the last successful observation. */
  seen(): Observed | undefined;
  /**
   * Requests an observation. True once one that began after the call has succeeded; false when it failed, the signal
   * aborted, or the loop has ended. A failed one is retried while `isHopeful`.
   */
  request(signal: AbortSignal, mayRetry: () => boolean): Promise<boolean>;
  /** An observed part may have exited: an observation is due at once. */
  markStale(): void;
  /** True if a part may have exited since the last successful observation began. */
  isStale(): boolean;
  /** Returns the reason that the current state is unknown, as a clause, or undefined after a successful observation. */
  unknownReason(): string | undefined;
  /** Describes what a running observation is waiting for, as a clause. */
  waitingFor(): string | undefined;
  /** Ends the observer: there will be no more observations. */
  end(): void;
}

export interface ObserverInput {
  driver: Driver;
  clock: Clock;
  /** Throws when the backend must not be observed now. */
  check(): void;
  /** Aborts when the loop ends. */
  closing: AbortSignal;
  /** Called when an observation is requested or due. */
  wake(): void;
}

/** Retry interval of a failed observation for callers that wait for a successful one. */
const RETRY_MS = 500;

export function createObserver({ driver, clock, check, closing, wake }: ObserverInput): Observer {
  let next = pendingObservation();
  let ended = false;
  let seen: Observed | undefined;
  let unknownReason: string | undefined = 'the service has not observed it yet';
  let running: AbortController | undefined;
  let history = NO_LOOKS;
  /** When the running observation began. */
  let since = 0;
  let isDue = false;
  /** Counts possible exits; `observedExits` of them precede a successful observation. */
  let exits = 0;
  let observedExits = 0;

  /** Requests one observation. */
  async function requestOnce(signal: AbortSignal): Promise<boolean> {
    if (ended || signal.aborted) return false;
    const pending = next;
    pending.callers++;
    wake();
    return new Promise((resolve) => {
      const giveUp = () => {
        pending.callers--;
        resolve(false);
      };
      signal.addEventListener('abort', giveUp, { once: true });
      pending.result.then((ok) => {
        signal.removeEventListener('abort', giveUp);
        resolve(ok);
      });
    });
  }

  return {
    async request(signal, mayRetry) {
      while (!(await requestOnce(signal))) {
        if (signal.aborted || closing.aborted || !mayRetry()) return false;
        await clock.sleep(RETRY_MS, AbortSignal.any([signal, closing]));
      }
      return true;
    },
    waiting: () => isDue || next.callers > 0,
    end() {
      ended = true;
      next.end(false);
    },
    markStale() {
      exits++;
      isDue = true;
      wake();
    },
    isStale: () => exits > observedExits,
    seen: () => seen,
    unknownReason: () => unknownReason,
    waitingFor: () => (running === undefined ? undefined : waitingText(clock.now() - since, history)),
    interrupt: () => running?.abort(),
    async look() {
      const abort = new AbortController();
      // Not `AbortSignal.any`: Node 20 never forgets the signals derived from a long-lived one, and there is a look every few seconds.
      const either = new AbortController();
      const giveUp = () => either.abort();
      for (const signal of [abort.signal, closing]) signal.addEventListener('abort', giveUp, { once: true });
      if (closing.aborted) giveUp();
      running = abort;
      since = clock.now();
      const pending = next;
      if (!ended) next = pendingObservation();
      const known = exits;
      // An observation that somebody requested, for example for a plan, names the running containers; a routine one does not.
      const how = pending.callers > 0 || seen === undefined ? 'full' : 'routine';
      isDue = false;
      try {
        check();
        seen = await observeInTime({ driver, clock, how }, history, either.signal, () => {
          history = withLook(history, 'timed out');
        });
        history = withLook(history, clock.now() - since);
      } catch (error) {
        if (abort.signal.aborted) {
          next.callers += pending.callers;
          pending.end(next.result);
        } else {
          unknownReason = `the last observation failed: ${messageOf(error).replace(/\.$/, '')}`;
          pending.end(false);
        }
        throw error;
      } finally {
        closing.removeEventListener('abort', giveUp);
        running = undefined;
      }
      unknownReason = undefined;
      observedExits = known;
      pending.end(true);
      return seen;
    },
  };
}

/** An observation to come, for the callers that requested it. */
interface PendingObservation {
  /** True if the observation succeeded. */
  result: Promise<boolean>;
  /** Ends the observation. An interrupted one ends with the result of the next. */
  end(result: boolean | Promise<boolean>): void;
  callers: number;
}

function pendingObservation(): PendingObservation {
  let end: PendingObservation['end'] = () => {};
  const result = new Promise<boolean>((resolve) => {
    end = resolve;
  });
  return { result, end, callers: 0 };
}

/** Shortest and longest limit of an observation. */
export const LOOK_LIMIT_MS = 30_000;
const LONGEST_MS = 120_000;
const TIMES_THE_USUAL = 10;
/** Observations in the median of the usual duration. */
const REMEMBERED = 9;

/** Observation times on this computer, in milliseconds. */
export interface LookHistory {
  /** Durations of the last successful observations, newest last. */
  durations: readonly number[];
  /** Observations since then that reached their limit. */
  timeouts: number;
}

export const NO_LOOKS: LookHistory = { durations: [], timeouts: 0 };

/** Returns the history after an observation that took this long, or reached its limit. Pure. */
export function withLook({ durations, timeouts }: LookHistory, look: number | 'timed out'): LookHistory {
  if (look === 'timed out') return { durations, timeouts: timeouts + 1 };
  return { durations: [...durations, look].slice(-REMEMBERED), timeouts: 0 };
}

/**
 * Returns the limit of the next observation: ten times the usual duration, within bounds, and doubled after each timeout, so that the loop does not
 * give up on a computer that has become slow. Pure.
 */
export function lookLimitMs(history: LookHistory): number {
  const least = Math.max(LOOK_LIMIT_MS, TIMES_THE_USUAL * (usualMs(history) ?? 0));
  return Math.min(LONGEST_MS, least * 2 ** history.timeouts);
}

/** Formats `no response within 30 seconds, where 3 are usual`. Pure. */
export function timeoutText(history: LookHistory): string {
  return `no response within ${seconds(lookLimitMs(history))} seconds${usualText(history)}`;
}

/** Formats `the driver has not answered for 12 seconds, where 3 are usual`. Pure. */
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
