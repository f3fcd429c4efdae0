import { RdError } from '../../../../errors.ts';
import { DATA_SERIAL } from '../../../guest-images/recipe.ts';
import { DATA_DRIVE } from '../arguments.ts';
import { GROWTH_SCRIPT } from '../setup-scripts.ts';
import type { LiveParts } from './change.ts';
import { pollUntilSettled } from './change.ts';
import { gibText } from './facts.ts';

const DEVICE = `/dev/disk/by-id/virtio-${DATA_SERIAL}`;
const SUBJECT = 'the file system of the data disk';
/** Growing a file system writes new tables, which takes minutes for several TiB. */
const WAIT_MS = 45_000;
const POLL_MS = 500;

/** Progress of the file system's growth, and its size in bytes; 0 when unknown. */
export type Growth =
  | { state: 'done' }
  /** The growth continues in the guest without a caller. */
  | { state: 'going'; bytes: number }
  | { state: 'failed'; bytes: number; why: string };

/** Parses the output of the guest scripts. */
export function parseGrowth(text: string): Growth {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const at = lines.findLastIndex((line) => /^(done|going|failed) \d+$/.test(line));
  const [state, size] = (lines[at] ?? '').split(' ');
  const bytes = Number(size ?? 0);
  if (state === 'done') return { state };
  if (state === 'going') return { state, bytes };
  const [why = 'no reason given'] = [...lines.slice(0, Math.max(0, at)), ...lines.slice(at + 1)].slice(-1);
  return { state: 'failed', bytes, why };
}

/** Describes the degradation of a machine whose file system is smaller than its disk, as a clause; undefined if there is none. */
export function degradationOf(growth: Growth, whole: number): string | undefined {
  if (growth.state === 'done') return undefined;
  const { bytes } = growth;
  if (growth.state === 'going') {
    const progress = bytes > 0 ? `has ${gibText(bytes)} of ${gibText(whole)}` : `is to have ${gibText(whole)}`;
    return `${SUBJECT} ${progress} and is still growing in the background`;
  }
  const size = bytes > 0 ? `has ${gibText(bytes)} and not` : 'is not';
  return `${SUBJECT} ${size} ${gibText(whole)}, because it did not grow (${growth.why}); each start retries`;
}

/**
 * Grows the data disk while the guest uses it, and its file system with it. Idempotent: when repeated it only checks, and waits for a
 * growth in progress.
 * @param before the current size that QEMU reports: QEMU would truncate to a smaller size without a warning.
 * @returns the state of the file system's growth: `going` when it takes longer than a caller should wait.
 * @throws RdError `ERR_DRIVER_FAILED` for a smaller size, when QEMU refuses, the guest does not see it or its file system does
 *   not grow, `ERR_CANCELLED`.
 */
export async function growDisk(parts: LiveParts, before: number, bytes: number, signal: AbortSignal): Promise<Growth> {
  const { monitor, guest, clock } = parts;
  if (bytes < before) {
    throw new RdError('ERR_DRIVER_FAILED', `the data disk has ${before} bytes and cannot shrink to ${bytes}`);
  }
  if (bytes > before) {
    await monitor.use((qmp) => qmp.execute('block_resize', { device: DATA_DRIVE, size: bytes }, { signal }), signal);
  }
  const readDiskBytes = async () =>
    Number((await guest.run(['blockdev', '--getsize64', DEVICE], { signal })).stdout.trim());
  const guestBytes = await pollUntilSettled(clock, readDiskBytes, (value) => value >= bytes, signal);
  if (guestBytes < bytes) {
    throw new RdError('ERR_DRIVER_FAILED', `the guest sees ${guestBytes} of the ${bytes} bytes of its disk`, {
      advice: 'This is retried automatically. If that does not help, restart the machine.',
    });
  }
  const deadline = clock.now() + WAIT_MS;
  let growth = await queryGrowth(guest, 'begin', signal);
  while (growth.state === 'going' && clock.now() < deadline) {
    await clock.sleep(POLL_MS, signal);
    if (signal.aborted) throw new RdError('ERR_CANCELLED', `waiting for ${SUBJECT} to grow was canceled`);
    growth = await queryGrowth(guest, 'look', signal);
  }
  if (growth.state !== 'failed') return growth;
  throw new RdError('ERR_DRIVER_FAILED', `${SUBJECT} does not grow to ${gibText(bytes)}: ${growth.why}`, {
    advice: 'A boot checks it and retries: run `rdctl shutdown`, then `rdctl start`.',
  });
}

/** Queries the growth. `begin`: retries a failed one. Either order starts one that has not been started. */
async function queryGrowth(guest: LiveParts['guest'], order: 'begin' | 'look', signal: AbortSignal): Promise<Growth> {
  const { stdout } = await guest.run(['sh', '-s', '--', order], { input: GROWTH_SCRIPT, signal });
  return parseGrowth(stdout);
}

/** Tracks a growth in the background. A finished one is not queried again until the next one starts. */
export function growthWatch(guest: LiveParts['guest']) {
  let finished: Growth | undefined;
  return {
    begin() {
      finished = undefined;
    },
    /** Describes the current degradation, as a clause; undefined if there is none. */
    async degradation(whole: number, signal: AbortSignal): Promise<string | undefined> {
      const growth = finished ?? (await queryGrowth(guest, 'look', signal));
      if (growth.state !== 'going') finished = growth;
      return degradationOf(growth, whole);
    },
  };
}
