import { RdError } from '../../../errors.ts';
import type { Connection } from './guest.ts';
import { REFUSE_WHILE_GROWING } from './live/growth-script.ts';

/** Mount point of the data disk in the guest, and the unit of the freeze watchdog. */
const MOUNT = '/var/lib/rdctl';
const UNIT = 'rdctl-thaw';
/** Seconds until the guest thaws by itself if the service is gone. */
const MAX_S = 30;
/** There may be much to flush before the freeze, and the host disk may be slow. */
const FREEZE_MS = 120_000;
const THAW_MS = 60_000;

/**
 * `$1`: mount point, `$2`: unit, `$3`: seconds. Flushes most data while programs continue. The watchdog runs in the guest and retries until
 * it succeeds: a thaw during the freeze would be refused.
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
 * `$1`: mount point, `$2`: unit. Status 1 when the file system was not frozen; the watchdog then stays, because an abandoned freeze may
 * still take effect.
 */
const THAW_SCRIPT = `fsfreeze --unfreeze "$1" 2>/dev/null || exit 1
timeout 20 systemctl stop "$2.service" 2>/dev/null
exit 0
`;

/** The file system of the guest's data disk, for freezing it briefly. */
export interface GuestFreeze {
  /**
   * Runs the work while the file system is frozen and flushed.
   * @throws RdError `ERR_DRIVER_FAILED` when it was not frozen throughout, `ERR_CANCELLED`, and what the work throws.
   */
  during<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>;
  /** Thaws it. Idempotent. */
  thaw(): Promise<void>;
}

export function guestFreeze(guest: Pick<Connection, 'run'>): GuestFreeze {
  /** Whether it was frozen until now. No signal: a canceled caller must still thaw the guest. */
  async function thaw(): Promise<boolean> {
    const { exitCode } = await guest.run(['sh', '-s', '--', MOUNT, UNIT], {
      input: THAW_SCRIPT,
      timeoutMs: THAW_MS,
      accept: [0, 1],
    });
    return exitCode === 0;
  }

  async function freeze(signal: AbortSignal): Promise<void> {
    const words = [MOUNT, UNIT, String(MAX_S)];
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
        // The watchdog thaws it later too.
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
