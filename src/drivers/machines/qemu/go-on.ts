import type { MachineParts } from './parts.ts';

const POLL_MS = 100;
/** Delay after resuming a guest. */
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
  for (let look = 0; look < RESUME_CHECKS; look++) {
    await clock.sleep(POLL_MS, signal);
    now = await monitor.status(signal);
    if (now === status) return now;
  }
  return now;
}
