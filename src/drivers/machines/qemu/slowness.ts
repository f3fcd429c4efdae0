import { RdError } from '../../../errors.ts';
import type { Clock } from '../../../os/clock.ts';
import type { MachineStart } from '../../driver.ts';

/** Milliseconds of silence after which a part counts as hung. */
const SILENCE_LIMIT = 60_000;

/** Usual durations of starts on two idle cores without hardware virtualization, in milliseconds. */
const USUAL_MS = { boot: 20_000, resume: 3_000 };
/** A guest that hangs is restarted after this many times the usual limit at the latest. */
const MOST = 4;

/**
 * Returns the factor for limits on responses of the guest, from 1 to 4: how much longer than usual its last start took on this computer, which may be
 * slow or busy. Pure.
 */
export function slowness(started: MachineStart | undefined): number {
  if (started === undefined) return 1;
  // Before the boot, a resume may have failed.
  const boot = started.phases.findIndex(({ name }) => name === 'boot');
  const ms = started.phases.slice(Math.max(0, boot)).reduce((sum, phase) => sum + phase.ms, 0);
  return Math.min(MOST, Math.max(1, ms / USUAL_MS[started.how]));
}

/** Decides when a silent part counts as hung. Busy guests, and the programs in them, look hung for a while; only a hung part is restarted. */
export interface Patience {
  /** Resets the silence, because the part responded or was stopped. */
  reset(): void;
  /** Returns once the part has been silent for too long. Throws `ERR_DRIVER_FAILED` with the message before that. */
  endure(message: string, started: MachineStart | undefined): void;
}

/**
 * Creates the patience for one part.
 * @param what a noun, for advice: `machine`.
 */
export function patience(what: string, clock: Pick<Clock, 'now'>): Patience {
  let since: number | undefined;
  return {
    reset() {
      since = undefined;
    },
    endure(message, started) {
      const limitMs = Math.round(SILENCE_LIMIT * slowness(started));
      since ??= clock.now();
      const ms = clock.now() - since;
      if (ms > limitMs) return;
      throw new RdError('ERR_DRIVER_FAILED', ms < 1_000 ? message : `${message} (for ${Math.round(ms / 1000)} s now)`, {
        advice: `The ${what} is restarted if this lasts longer than ${Math.round(limitMs / 1000)} seconds.`,
      });
    },
  };
}
