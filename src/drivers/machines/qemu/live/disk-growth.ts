import { RdError } from '../../../../errors.ts';
import { DATA_SERIAL } from '../../../../guest-images/recipe.ts';
import { DATA_DRIVE } from '../arguments.ts';
import type { LiveParts } from './live-parts.ts';
import { gibText } from './room.ts';
import { settled } from './settled.ts';

const DEVICE = `/dev/disk/by-id/virtio-${DATA_SERIAL}`;
/** Growing a file system writes tables for all that is new. */
const GROW_MS = 100_000;

const SUBJECT = 'the file system of the data disk';
const GROW_COMMAND = ['resize2fs', DEVICE] as const;

/** After a boot, for a disk that grew while the machine was off. Prints why when that cannot be done. */
export const GROW_SCRIPT = `why=$(resize2fs ${DEVICE} 2>&1) || echo "$why"
`;

/**
 * Makes the data disk larger while the guest uses it, and its file system with it. Done once more it only looks.
 * @param before what QEMU says it is: that program would cut off data without a word (real components, 3.5).
 * @throws RdError `ERR_DRIVER_FAILED` for a smaller size, when QEMU refuses, the guest does not see it or its file system does
 *   not grow, `ERR_CANCELLED`.
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
  try {
    await guest.run(GROW_COMMAND, { signal, timeoutMs: GROW_MS });
  } catch (error) {
    if (signal.aborted || !(error instanceof RdError) || error.code !== 'ERR_DRIVER_FAILED') throw error;
    throw new RdError('ERR_DRIVER_FAILED', `${SUBJECT} does not grow to ${gibText(bytes)}: ${reasonOf(error)}`, {
      cause: error,
      details: error.details,
      advice: 'A boot checks it and tries again: `rdctl shutdown`, then `rdctl start`.',
    });
  }
}

/** Says what a start has found out: why the file system did not grow to so many bytes, and how large it is, if that is known. */
export async function tooSmall(
  guest: LiveParts['guest'],
  { bytes, why }: { bytes: number; why: string },
  signal: AbortSignal,
): Promise<string> {
  const has = await fileSystemBytes(guest, signal).catch((error: unknown) => {
    if (signal.aborted || !(error instanceof RdError)) throw error;
  });
  const size = has === undefined ? 'is not' : `has ${gibText(has)} and not`;
  return `${SUBJECT} ${size} ${gibText(bytes)}, because it did not grow at the start (${why}); each start tries it again`;
}

async function fileSystemBytes(guest: LiveParts['guest'], signal: AbortSignal): Promise<number | undefined> {
  const { stdout } = await guest.run(['tune2fs', '-l', DEVICE], { signal });
  const bytes = numberAt(stdout, 'Block count') * numberAt(stdout, 'Block size');
  return Number.isFinite(bytes) ? bytes : undefined;
}

function numberAt(text: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
}

function reasonOf({ details, message }: RdError): string {
  return details.at(-1) ?? message;
}
