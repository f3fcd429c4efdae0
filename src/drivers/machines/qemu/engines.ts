import { RdError } from '../../../errors.ts';
import type { EngineDriver, EngineStatus } from '../../driver.ts';

/** What an engine can know of the guest without asking it. */
export interface GuestState {
  /** The machine is on and has come up; nothing in it runs otherwise. */
  isUp(): Promise<boolean>;
  /** Whether the guest answers. */
  isConnected(signal: AbortSignal): Promise<boolean>;
  /** Runs work in the guest; fails as soon as the guest cannot go on. */
  unlessHalted<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
}

/**
 * An engine in a guest that may be off or out of reach: the first is a stopped engine, because what it had in memory is gone with the
 * guest; the second is one of which nobody knows more than that.
 */
export function engineInGuest(engine: EngineDriver, { isUp, isConnected, unlessHalted }: GuestState): EngineDriver {
  async function observe(signal: AbortSignal): Promise<EngineStatus> {
    if (!(await isUp())) return { state: 'stopped' };
    if (!(await isConnected(signal))) return { state: 'unresponsive', message: 'the guest does not answer' };
    try {
      return await engine.observe(signal);
    } catch (error) {
      if (signal.aborted || !(error instanceof RdError) || error.code !== 'ERR_DRIVER_FAILED') throw error;
      if (!(await isUp())) return { state: 'stopped' };
      if (await isConnected(signal)) throw error;
      return { state: 'unresponsive', message: 'the guest does not answer' };
    }
  }

  return {
    ...engine,
    observe,
    async perform(step, signal) {
      if (step.do === 'stop' && !(await isUp())) return engine.release?.();
      return unlessHalted(signal, (until) => engine.perform(step, until));
    },
  };
}
