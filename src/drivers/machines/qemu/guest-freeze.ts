import { RdError } from '../../../errors.ts';
import type { Connection } from './guest.ts';
import { REFUSE_WHILE_GROWING } from './live/growth-script.ts';

/** Where the data disk is mounted in the guest, and the unit that watches over its freeze. */
const MOUNT = '/var/lib/rdctl';
const UNIT = 'rdctl-thaw';
/** Seconds after which the guest goes on by itself, whatever became of us. */
const MOST_S = 30;
/** What is written before the freeze may be much, and the disk of this host slow. */
const FREEZE_MS = 120_000;
const THAW_MS = 60_000;

/**
 * `$1`: mount point, `$2`: unit, `$3`: seconds. Most is written while programs go on. The watch is a program of the guest's own that
 * tries until it has succeeded: one that came while the freeze was being made would be refused.
 */
const FREEZE_SCRIPT = `set -eu
mountpoint -q -- "$1"
${REFUSE_WHILE_GROWING}systemctl stop "$2.service" 2>/dev/null || true
systemctl reset-failed "$2.service" 2>/dev/null || true
fsfreeze --unfreeze "$1" 2>/dev/null || true
sync --file-system -- "$1"
systemd-run --quiet --collect --unit="$2" -- \\
  /bin/sh -c 'sleep "$2"; i=0; until fsfreeze --unfreeze "$1" || [ "$i" -ge 300 ]; do i=$((i + 1)); sleep 1; done' \\
  thaw "$1" "$3"
exec fsfreeze --freeze "$1"
`;

/**
 * `$1`: mount point, `$2`: unit. Status 1 when it was not frozen any more, or not yet: the watch stays then, because a freeze that was
 * given up may still come.
 */
const THAW_SCRIPT = `fsfreeze --unfreeze "$1" 2>/dev/null || exit 1
timeout 20 systemctl stop "$2.service" 2>/dev/null
exit 0
`;

/** The file system of the guest's data disk, held still for a moment. */
export interface GuestFreeze {
  /**
   * Does the work while nothing is written there and all that was is on the disk.
   * @throws RdError `ERR_DRIVER_FAILED` when it was not frozen all the time, `ERR_CANCELLED`, and what the work throws.
   */
  during<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>;
  /** Harmless when it is not frozen. */
  thaw(): Promise<void>;
}

export function guestFreeze(guest: Pick<Connection, 'run'>): GuestFreeze {
  /** Whether it was frozen until now. No signal: who gives up must still let the guest go on. */
  async function thaw(): Promise<boolean> {
    const { exitCode } = await guest.run(['sh', '-s', '--', MOUNT, UNIT], {
      input: THAW_SCRIPT,
      timeoutMs: THAW_MS,
      accept: [0, 1],
    });
    return exitCode === 0;
  }

  async function freeze(signal: AbortSignal): Promise<void> {
    const words = [MOUNT, UNIT, String(MOST_S)];
    try {
      await guest.run(['sh', '-s', '--', ...words], { input: FREEZE_SCRIPT, timeoutMs: FREEZE_MS, signal });
    } catch (cause) {
      if (signal.aborted || !(cause instanceof RdError)) throw cause;
      throw new RdError('ERR_DRIVER_FAILED', 'the data disk could not be held still in the guest', {
        cause,
        details: [cause.message, ...cause.details],
        advice: 'Try again, or with `--stop`.',
      });
    }
  }

  return {
    async during(work, signal) {
      let result: Awaited<ReturnType<typeof work>>;
      try {
        await freeze(signal);
        result = await work();
      } catch (error) {
        // The watch does it too, later.
        await thaw().catch(() => undefined);
        throw error;
      }
      if (await thaw()) return result;
      throw new RdError('ERR_DRIVER_FAILED', 'the guest did not hold still for long enough', {
        details: [`${MOUNT} was frozen, and went on by itself before the copy had begun`],
        advice: 'Try again when this computer is less busy, or with `--stop`.',
      });
    },
    thaw: async () => void (await thaw()),
  };
}
