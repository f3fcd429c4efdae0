import type { MachineParts } from './parts.ts';

const POLL_MS = 100;
/** After a guest was told to go on. */
const LOOKS_AFTER = 5;

/**
 * Has a guest go on that QEMU halted and keeps in this status.
 * @returns the status that it then stays in: a disk that is still full halts it at once.
 * @throws RdError `ERR_DRIVER_FAILED` when QEMU refuses, `ERR_CANCELLED`.
 */
export async function goOnFrom(
  { monitor, pace }: Pick<MachineParts, 'monitor' | 'pace'>,
  status: string,
  signal: AbortSignal,
): Promise<string> {
  await monitor.use((qmp) => qmp.execute('cont', undefined, { signal }), signal);
  let now = status;
  for (let look = 0; look < LOOKS_AFTER; look++) {
    await pace.sleep(POLL_MS, signal);
    now = await monitor.status(signal);
    if (now === status) return now;
  }
  return now;
}
