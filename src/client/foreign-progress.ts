import type { BackendState } from '../reconcile/status.ts';

/** What a write has set off, as far as looking from outside can tell. */
export interface ForeignProgress {
  /** After a settings write that was answered with this sentence, in that state. */
  settingsSent(answer: string, state: BackendState): void;
  /** False where it must not be sent yet: a stop would fall into a restart, and `looked` says when its time has come. */
  power(power: 'started' | 'stopped', state: BackendState): boolean;
  /** Takes in a look. `restartDue` says whether accepted settings still wait for a restart; undefined: nobody knows. */
  looked(state: BackendState, restartDue: () => Promise<boolean | undefined>): Promise<Standing>;
}

export interface Standing {
  /** Nothing is left to be waited for. */
  settled: boolean;
  /** A state of ERROR that is not an old one. */
  failed: boolean;
  /** The wish for power was passed over, because the application was busy, or its time has come: say it (again). */
  repeat?: 'started' | 'stopped' | undefined;
  /** What is missing, as a sentence. */
  missing: string;
}

const READY: readonly BackendState[] = ['STARTED', 'DISABLED'];
/** Looks at the opposite of what was asked for, after which it is asked for again. */
const PATIENCE = 4;
/** Looks at an ERROR that was there before the write, after which it counts as one of now. */
const OLD_ERROR_LOOKS = 20;

/**
 * Follows an application that has no versions of its state. A restart has happened when it has left its ready state and is back,
 * or when it tells that nothing waits for one. Where it was busy it first becomes ready, and restarts after that.
 */
export function foreignProgress(): ForeignProgress {
  let awaited: 'nothing' | 'leave' | 'arrive' = 'nothing';
  let wish: 'started' | 'stopped' | undefined;
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
    if (wish === 'stopped') return READY.includes(state);
    return wish === 'started' && (state === 'STOPPED' || (state === 'ERROR' && oldError));
  }

  /** What the application tells in so many words wins over what could be seen. */
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
      if (wish === undefined) wish = 'started';
    },
    power(power, state) {
      deferred = power === 'stopped' && restarting;
      if (!deferred) restarting = false;
      sent(state);
      wish = power;
      return !deferred;
    },
    async looked(state, restartDue) {
      if (state !== 'ERROR') oldError = false;
      const ready = READY.includes(state);
      if (ready && awaited === 'arrive') awaited = 'leave';
      else if (!ready && awaited === 'leave') awaited = 'nothing';
      opposite = isOpposite(state) ? opposite + 1 : 0;
      errors = state === 'ERROR' ? errors + 1 : 0;
      const repeat = wish !== undefined && opposite > 0 && opposite % PATIENCE === 0 ? { repeat: wish } : {};
      const failed = state === 'ERROR' && (!oldError || errors > OLD_ERROR_LOOKS);
      const missing = `it is in the state ${state}`;
      if (deferred) {
        const over = ready && !(await isDue(restartDue));
        if (over) deferred = false;
        return { settled: false, failed, ...(over ? { repeat: 'stopped' } : {}), missing };
      }
      if (wish === 'stopped') return { settled: state === 'STOPPED', failed, ...repeat, missing };
      if (!ready) return { settled: wish === undefined && state === 'STOPPED', failed, ...repeat, missing };
      if (wish === undefined) return { settled: true, failed: false, missing };
      const settled = !(await isDue(restartDue));
      return { settled, failed: false, missing: 'it has not restarted yet for the settings that it accepted' };
    },
  };
}
