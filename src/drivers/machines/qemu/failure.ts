import { RdError } from '../../../errors.ts';
import { tailOf } from '../../../os/program-log.ts';

/** Error for a QEMU that has exited unexpectedly. */
export async function qemuFailed(logFile: string, cause?: unknown): Promise<RdError> {
  const details = await tailOf(logFile);
  const last = details.at(-1);
  return new RdError('ERR_DRIVER_FAILED', last ? `QEMU ended: ${last}` : 'QEMU ended', {
    ...(cause === undefined ? {} : { cause }),
    details,
    advice: `See ${logFile}.`,
  });
}
