import { RdError } from '../../../errors.ts';
import { HALTED, WRITE_FAILED } from './monitor.ts';
import type { MachineParts } from './parts.ts';

type HaltParts = Pick<MachineParts, 'monitor' | 'clock'>;

const CHECK_INTERVAL_MS = 1_000;

/** Returns the reason that the guest stays halted by a full disk after a resume, as a clause; undefined if it does not. */
export async function haltReason(parts: HaltParts, signal: AbortSignal): Promise<string | undefined> {
  const status = await parts.monitor.status(signal);
  if (status !== WRITE_FAILED) return undefined;
  return HALTED[await resumeFrom(parts, status, signal).catch(() => status)];
}

/**
 * Runs work in the guest, and aborts it as soon as the guest is halted for good: otherwise it would wait forever for a response and block a stop.
 * @throws RdError `ERR_DRIVER_FAILED` then, and any error of the work.
 */
export async function unlessHalted<T>(
  parts: HaltParts,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const halted = new AbortController();
  const done = new AbortController();
  const watch = async () => {
    const until = AbortSignal.any([signal, done.signal]);
    while (!until.aborted) {
      await parts.clock.sleep(CHECK_INTERVAL_MS, until);
      const why = until.aborted ? undefined : await haltReason(parts, until).catch(() => undefined);
      if (why === undefined) continue;
      halted.abort();
      return new RdError('ERR_DRIVER_FAILED', why);
    }
  };
  const watching = watch();
  try {
    return await work(AbortSignal.any([signal, halted.signal]));
  } catch (error) {
    if (!halted.signal.aborted) throw error;
    throw (await watching) ?? error;
  } finally {
    done.abort();
  }
}

const POLL_MS = 100;
/** Status checks after resuming a guest. */
const RESUME_CHECKS = 5;

/**
 * Resumes a guest that QEMU halted in this state.
 * @returns the resulting run state: a disk that is still full halts it at once.
 * @throws RdError `ERR_DRIVER_FAILED` when QEMU refuses, `ERR_CANCELLED`.
 */
export async function resumeFrom(
  { monitor, clock }: Pick<MachineParts, 'monitor' | 'clock'>,
  status: string,
  signal: AbortSignal,
): Promise<string> {
  await monitor.use((qmp) => qmp.execute('cont', undefined, { signal }), signal);
  let now = status;
  for (let check = 0; check < RESUME_CHECKS; check++) {
    await clock.sleep(POLL_MS, signal);
    now = await monitor.status(signal);
    if (now === status) return now;
  }
  return now;
}
