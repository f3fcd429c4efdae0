import { RdError } from '../../../errors.ts';
import type { EngineDriver, EngineStatus } from '../../driver.ts';

/** What an engine knows about the guest without a query. */
export interface GuestState {
  /** The machine is on and has booted; otherwise nothing runs in it. */
  isUp(): Promise<boolean>;
  /** Whether the guest responds. */
  isConnected(signal: AbortSignal): Promise<boolean>;
  /** Runs work in the guest; fails as soon as the guest is halted for good. */
  unlessHalted<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
}

/**
 * An engine in a guest that may be off or unreachable. In a guest that is off the engine is stopped; in an unreachable one its state is
 * unknown.
 */
export function engineInGuest(engine: EngineDriver, { isUp, isConnected, unlessHalted }: GuestState): EngineDriver {
  async function observe(signal: AbortSignal): Promise<EngineStatus> {
    if (!(await isUp())) return { state: 'stopped' };
    if (!(await isConnected(signal))) return { state: 'unresponsive', message: 'the guest does not respond' };
    try {
      return await engine.observe(signal);
    } catch (error) {
      if (signal.aborted || !(error instanceof RdError) || error.code !== 'ERR_DRIVER_FAILED') throw error;
      if (!(await isUp())) return { state: 'stopped' };
      if (await isConnected(signal)) throw error;
      return { state: 'unresponsive', message: 'the guest does not respond' };
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
