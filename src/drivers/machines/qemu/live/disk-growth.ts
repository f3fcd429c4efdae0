import { RdError } from '../../../../errors.ts';
import { DATA_SERIAL } from '../../../../guest-images/recipe.ts';
import { DATA_DRIVE } from '../arguments.ts';
import type { LiveParts } from './live-parts.ts';
import { settled } from './settled.ts';

const DEVICE = `/dev/disk/by-id/virtio-${DATA_SERIAL}`;
/** Growing a file system writes tables for all that is new. */
const GROW_MS = 100_000;

const GROW_COMMAND = ['resize2fs', DEVICE] as const;

/** After a boot, for a disk that grew while the machine was off. Prints why when that cannot be done. */
export const GROW_SCRIPT = `why=$(resize2fs ${DEVICE} 2>&1) || echo "$why"
`;

/**
 * Makes the data disk larger while the guest uses it, and its file system with it. Done once more it only looks.
 * @param before what QEMU says it is: that program would cut off data without a word (real components, 3.5).
 * @throws RdError `ERR_DRIVER_FAILED` for a smaller size, when QEMU refuses or the guest does not see it, `ERR_CANCELLED`.
 */
export async function growDisk(parts: LiveParts, before: number, bytes: number, signal: AbortSignal): Promise<void> {
  const { monitor, guest, pace } = parts;
  if (bytes < before) {
    throw new RdError(
      'ERR_DRIVER_FAILED',
      `the data disk has ${before} bytes and never shrinks, not to ${bytes} either`,
    );
  }
  if (bytes > before) {
    await monitor.use((qmp) => qmp.execute('block_resize', { device: DATA_DRIVE, size: bytes }, { signal }), signal);
  }
  const look = async () => Number((await guest.run(['blockdev', '--getsize64', DEVICE], { signal })).stdout.trim());
  const seen = await settled(pace, look, (value) => value >= bytes, signal);
  if (seen < bytes) {
    throw new RdError('ERR_DRIVER_FAILED', `the guest sees ${seen} of the ${bytes} bytes of its disk`, {
      advice: 'It is tried again. When that does not help, stop and start the machine.',
    });
  }
  await guest.run(GROW_COMMAND, { signal, timeoutMs: GROW_MS });
}
