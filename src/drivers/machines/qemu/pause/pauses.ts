import { messageOf } from '../../../../errors.ts';
import type { Clock } from '../../../../os/clock.ts';
import type { DriverContext, MachinePause, MachineStart } from '../../../driver.ts';
import { slowness } from '../slowness.ts';
import { type Door, doorInUse } from './connections.ts';
import { idleness } from './idleness.ts';

/** The operations and facts of one machine that pauses need. */
export interface PausedParts {
  /** Halts the guest and the programs of this host that would notice that it does not respond. Undoes that on failure. */
  pause(signal: AbortSignal): Promise<void>;
  /** Continues the guest and those programs, as far as possible. Idempotent. */
  wake(signal: AbortSignal): Promise<void>;
  /** Wakes a guest that an earlier process left paused. */
  wakeAbandoned(signal: AbortSignal): Promise<void>;
  /** Returns the connections of clients and of this service, by door. */
  connections(): Promise<ReadonlyMap<Door, number>>;
  /** Returns the number of this service's own connections, by door. */
  own(): Promise<ReadonlyMap<Door, number>>;
  /** Returns a text that changes with every connection, and is cheap to read. */
  connectionCounts(): Promise<string>;
  /** Returns the processor time that QEMU has used, in milliseconds; undefined when it does not run. */
  cpuMs(): Promise<number | undefined>;
  /** Returns the last start of an emulated machine; undefined for others. */
  emulatedStart(): Promise<MachineStart | undefined>;
  clock: Clock;
  /** Returns the current time, RFC 3339. */
  now(): string;
  log: DriverContext['log'];
}

/**
 * Pauses a machine that nobody uses, and wakes it.
 *
 * ```
 *           unused for the time limit, and no work in it
 *   awake ──────────────────────────────────────────────▶ paused
 *         ◀──────────────────────────────────────────────
 *           a connection, or work in it
 * ```
 *
 * Only this process knows of a pause: the next one wakes what a killed one left paused.
 */
export interface Pauses {
  current(): MachinePause | undefined;
  /** Does work that needs the guest and counts as use: wakes the guest first, and keeps it awake meanwhile. */
  awake<T>(work: () => Promise<T>): Promise<T>;
  /** Observes without counting as use: a paused guest stays paused, and `whilePaused` replaces the observation. */
  observe<T>(work: () => Promise<T>, whilePaused: () => Promise<T>): Promise<T>;
  /** Sets the milliseconds without use after which the machine is paused; 0: never. */
  setLimit(ms: number): void;
  wake(): Promise<void>;
  /** Wakes the machine and stops pausing it until an observation sets the limit again: without this process, nothing would wake it. */
  release(): Promise<void>;
}

/** Milliseconds from the last work in the guest to the check for use: connections of our own take a moment to close. */
const SETTLE_MS = 2_000;
/** Milliseconds between checks for the first connection, and between those that read everything. */
const POLL_MS = 200;
const FULL_POLL_MS = 5_000;
/** Milliseconds for a transition. A guest that does not respond by then is repaired or restarted as any other. */
const LIMIT_MS = 20_000;

export function guestPauses(parts: PausedParts): Pauses {
  const { clock, log } = parts;
  let idle = idleness();
  let limitMs = 0;
  /** Count of work in the guest, including observations. */
  let working = 0;
  let paused: (MachinePause & { end: AbortController }) | undefined;
  /** A pause or a wake in progress. */
  let transition: Promise<void> | undefined;
  let nextCheck: AbortController | undefined;
  let adoption: Promise<void> | undefined;

  /** Wakes a guest that an earlier process left paused; once, before anything else. */
  function adopt(): Promise<void> {
    adoption ??= parts.wakeAbandoned(AbortSignal.timeout(LIMIT_MS)).catch((error: unknown) => {
      // The problem of the machine shows in its observation.
      log('warn', 'the machine could not be woken', { why: messageOf(error) });
    });
    return adoption;
  }

  function beginTransition(work: () => Promise<void>): Promise<void> {
    const result = work();
    const ended = () => {
      transition = undefined;
    };
    transition = result.then(ended, ended);
    return result;
  }

  async function hold<T>(work: () => Promise<T>): Promise<T> {
    nextCheck?.abort();
    working += 1;
    try {
      return await work();
    } finally {
      working -= 1;
      if (working === 0 && limitMs > 0) void checkLater();
    }
  }

  async function checkLater(): Promise<void> {
    nextCheck?.abort();
    const check = new AbortController();
    nextCheck = check;
    await clock.sleep(SETTLE_MS, check.signal);
    if (check.signal.aborted) return;
    await pauseIfUnused(check.signal).catch((error: unknown) =>
      log('warn', 'the machine is not paused', { why: messageOf(error) }),
    );
  }

  async function pauseIfUnused(signal: AbortSignal): Promise<void> {
    const cpuMs = await parts.cpuMs();
    if (cpuMs === undefined) return;
    const looks = [parts.connections(), parts.own(), parts.emulatedStart()] as const;
    const [connections, own, started] = await Promise.all(looks);
    const connected = doorInUse(connections, own) !== undefined;
    // Background work of an idle emulated guest takes longer if its start did.
    const idleMs = idle.add({ at: clock.now(), cpuMs: cpuMs / slowness(started), connected }, limitMs);
    // Work that has begun in the meantime aborts the check.
    if (signal.aborted || limitMs === 0 || idleMs < limitMs) return;
    await beginTransition(() => pause(own));
  }

  async function pause(own: ReadonlyMap<Door, number>): Promise<void> {
    await parts.pause(AbortSignal.timeout(LIMIT_MS));
    const end = new AbortController();
    paused = { since: parts.now(), end };
    log('info', 'the machine is paused until the next connection', {});
    void wakeAtConnection(own, end.signal);
  }

  /** Wakes the guest at a connection, including those made while it was being halted. */
  async function wakeAtConnection(own: ReadonlyMap<Door, number>, signal: AbortSignal): Promise<void> {
    let counts: string | undefined;
    let fullAt = 0;
    while (!signal.aborted) {
      try {
        const now = await parts.connectionCounts();
        if (now !== counts || clock.now() >= fullAt) {
          counts = now;
          fullAt = clock.now() + FULL_POLL_MS;
          const door = doorInUse(await parts.connections(), own);
          if (door !== undefined) {
            log('info', 'a connection wakes the machine', { to: door });
            return void (await wake());
          }
        }
      } catch (error) {
        log('warn', 'nothing shows who connects to the paused machine; waking it', { why: messageOf(error) });
        return void (await wake());
      }
      await clock.sleep(POLL_MS, signal);
    }
  }

  async function wake(): Promise<void> {
    // Without a transition nothing is awaited, so that of two callers only one begins it.
    while (transition !== undefined) await transition;
    if (paused === undefined) return;
    paused.end.abort();
    const begin = clock.now();
    await beginTransition(async () => {
      await parts.wake(AbortSignal.timeout(LIMIT_MS)).then(
        () => log('info', 'the machine is awake', { ms: Math.round(clock.now() - begin) }),
        // The problem of the machine shows in the next observation, which repairs it.
        (error: unknown) => log('warn', 'the machine could not be woken', { why: messageOf(error) }),
      );
      paused = undefined;
      idle.used(clock.now());
    });
  }

  return {
    current: () => paused && { since: paused.since },
    async awake(work) {
      await adopt();
      do await wake();
      while (transition !== undefined || paused !== undefined);
      return hold(work).finally(() => idle.used(clock.now()));
    },
    async observe(work, whilePaused) {
      await adopt();
      while (transition !== undefined) await transition;
      return paused ? whilePaused() : hold(work);
    },
    setLimit(ms) {
      if (ms === limitMs) return;
      limitMs = ms;
      idle = idleness();
    },
    wake,
    async release() {
      limitMs = 0;
      nextCheck?.abort();
      await wake();
    },
  };
}
