import { RdError } from '../../../errors.ts';
import type { Clock } from '../../../os/clock.ts';
import type { EngineDriver, EngineStatus, Look, MachineStart } from '../../driver.ts';
import { patience } from './slowness.ts';
import { standing } from './standing.ts';

/** The facts that an engine knows about the guest without a query. */
export interface GuestState {
  /** True if the machine is on and has booted; otherwise nothing runs in it. */
  isUp(): Promise<boolean>;
  /** True if the guest responds. */
  isConnected(signal: AbortSignal): Promise<boolean>;
  /** Returns the last start of the machine. */
  started(): Promise<MachineStart | undefined>;
  /** Runs work in the guest; fails as soon as the guest is halted for good. */
  unlessHalted<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Calls back after a new connection to the guest, which may have booted since. */
  onReconnect(listener: () => Promise<void>): void;
}

/**
 * Milliseconds that a stopped part counts as stopped without a check. Only this service starts one, and the check starts programs, which an idle
 * guest notices.
 */
export const STOPPED_STANDS_MS = 15 * 60_000;

/**
 * Returns an engine in a guest that may be off, unreachable or busy. In a guest that is off the engine is stopped; in an unreachable one its state is
 * unknown, and so is that of a silent one for a while.
 */
export function engineInGuest(
  engine: EngineDriver,
  { isUp, isConnected, started, unlessHalted, onReconnect }: GuestState,
  clock: Pick<Clock, 'now'>,
): EngineDriver {
  const silence = patience('engine', clock);
  const last = standing(clock, engine.observe, async ({ state }) => {
    if (state === 'stopped') return STOPPED_STANDS_MS;
    return state === 'running' && engine.standsMs ? engine.standsMs() : 0;
  });
  onReconnect(async () => last.forget());

  async function observe(signal: AbortSignal, how?: Look): Promise<EngineStatus> {
    if (!(await isUp())) return { state: 'stopped' };
    if (!(await isConnected(signal))) return { state: 'unresponsive', message: 'the guest does not respond' };
    try {
      const status = await last.observe(signal, how);
      if (status.state !== 'unresponsive' || !status.silent) silence.reset();
      else silence.endure(status.message, await started());
      return status;
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
      silence.reset();
      return last.change(async () => {
        if (step.do === 'stop' && !(await isUp())) return engine.release?.();
        return unlessHalted(signal, (until) => engine.perform(step, until));
      });
    },
    // The next observation resumes the servers that this ends.
    release: () => last.change(async () => engine.release?.()),
  };
}
