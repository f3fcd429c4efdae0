import type { BackendState } from '../../reconcile/contract.ts';

/** Tracks the progress of a write, as far as it is visible from outside. */
export interface ForeignProgress {
  /** Records that a settings write was answered with this sentence, in that state. */
  settingsSent(answer: string, state: BackendState): void;
  /** Records a power request. Returns false when it must not be sent yet: a stop would collide with a restart; `observed` reports when to send it. */
  power(power: 'started' | 'stopped', state: BackendState): boolean;
  /** Records an observation. `restartDue` returns whether accepted settings still require a restart; undefined if unknown. */
  observed(state: BackendState, restartDue: () => Promise<boolean | undefined>): Promise<Progress>;
}

/** The progress as of an observation. */
export interface Progress {
  /** Whether there is nothing left to wait for. */
  settled: boolean;
  /** Whether there is a new ERROR state, as opposed to an old one. */
  failed: boolean;
  /** Power to send again: the request was ignored because the application was busy, or it can be sent now. */
  repeat?: 'started' | 'stopped' | undefined;
  /** The missing part, as a sentence. */
  missing: string;
}

const READY: readonly BackendState[] = ['STARTED', 'DISABLED'];
/** Observations of the opposite of the requested power before the request is repeated. */
const PATIENCE = 4;
/** Observations after which an ERROR from before the write counts as new. */
const OLD_ERROR_OBSERVATIONS = 20;

/**
 * Tracks an application without versions of its state. A restart has happened when it left its ready state and is back,
 * or when it reports that none is due. A busy application first becomes ready, and restarts after that.
 */
export function foreignProgress(): ForeignProgress {
  let awaited: 'nothing' | 'leave' | 'arrive' = 'nothing';
  let requested: 'started' | 'stopped' | undefined;
  let restarting = false;
  let deferred = false;
  let oldError = false;
  let opposite = 0;
  let errors = 0;

  function sent(state: BackendState): void {
    oldError = state === 'ERROR';
    opposite = 0;
    errors = 0;
  }

  function isOpposite(state: BackendState): boolean {
    if (requested === 'stopped') return READY.includes(state);
    return requested === 'started' && (state === 'STOPPED' || (state === 'ERROR' && oldError));
  }

  /** Returns whether a restart is due. An explicit report overrides what was observed. */
  async function isDue(restartDue: () => Promise<boolean | undefined>): Promise<boolean> {
    const due = await restartDue();
    if (due === false) awaited = 'nothing';
    return due ?? awaited !== 'nothing';
  }

  return {
    settingsSent(answer, state) {
      sent(state);
      if (/no restart required|no changes necessary/.test(answer)) return;
      awaited = /eventually be reconfigured/.test(answer) ? 'arrive' : READY.includes(state) ? 'leave' : 'nothing';
      restarting = true;
      // A restart also starts a backend that was off.
      if (requested === undefined) requested = 'started';
    },
    power(power, state) {
      deferred = power === 'stopped' && restarting;
      if (!deferred) restarting = false;
      sent(state);
      requested = power;
      return !deferred;
    },
    async observed(state, restartDue) {
      if (state !== 'ERROR') oldError = false;
      const ready = READY.includes(state);
      if (ready && awaited === 'arrive') awaited = 'leave';
      else if (!ready && awaited === 'leave') awaited = 'nothing';
      opposite = isOpposite(state) ? opposite + 1 : 0;
      errors = state === 'ERROR' ? errors + 1 : 0;
      const repeat = requested !== undefined && opposite > 0 && opposite % PATIENCE === 0 ? { repeat: requested } : {};
      const failed = state === 'ERROR' && (!oldError || errors > OLD_ERROR_OBSERVATIONS);
      const missing = `it is in state ${state}`;
      if (deferred) {
        const over = ready && !(await isDue(restartDue));
        if (over) deferred = false;
        return { settled: false, failed, ...(over ? { repeat: 'stopped' } : {}), missing };
      }
      if (requested === 'stopped') return { settled: state === 'STOPPED', failed, ...repeat, missing };
      if (!ready) return { settled: requested === undefined && state === 'STOPPED', failed, ...repeat, missing };
      if (requested === undefined) return { settled: true, failed: false, missing };
      const settled = !(await isDue(restartDue));
      return { settled, failed: false, missing: 'it has not restarted yet to apply the accepted settings' };
    },
  };
}
