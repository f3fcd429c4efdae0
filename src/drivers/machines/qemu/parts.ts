import { RdError } from '../../../errors.ts';
import { defined } from '../../../json.ts';
import type { Clock } from '../../../os/clock.ts';
import { tailOf } from '../../../os/program-log.ts';
import type { DriverContext } from '../../driver.ts';
import type { ImageStore } from '../../guest-images/store.ts';
import type { Acceleration } from './accelerator.ts';
import type { QemuHost } from './arguments.ts';
import type { ConfinedRun } from './confine/access.ts';
import type { Confine } from './confine/confinement.ts';
import type { Connection, GuestClock } from './guest.ts';
import type { HostPortFilter } from './host-ports/filter.ts';
import type { Monitor } from './monitor.ts';
import type { GuestMounts } from './mounts/mounts.ts';
import type { QemuPlaces } from './places.ts';
import type { PortForwarder } from './ports/forwarder.ts';

/** Dependencies shared by the operations on one machine. */
export interface MachineParts {
  places: QemuPlaces;
  logFile: string;
  /** Images of this home that a machine can use. */
  images: Pick<ImageStore, 'list' | 'selected' | 'verify' | 'verifyDisk'>;
  host: QemuHost;
  run: ConfinedRun;
  confine: Confine;
  environment: Readonly<Record<string, string>>;
  guest: Connection;
  monitor: Monitor;
  guestClock: GuestClock;
  mounts: GuestMounts;
  ports: Pick<PortForwarder, 'watch' | 'switchTo' | 'forget'>;
  hostPorts: HostPortFilter;
  /** Detects the accelerator of this host, once. */
  accelerator(signal: AbortSignal): Promise<Acceleration>;
  /** True if a machine is frozen on stop and resumed on start. */
  freezes: boolean;
  /** True if a QEMU of this machine runs. */
  isAlive(): Promise<boolean>;
  clock: Clock;
  log: DriverContext['log'];
}

/** The last message of a kernel that gives up, which ends its QEMU: the guest does not reboot. */
const PANIC = /Kernel panic - not syncing: (.+?)\s*(?:\]---)?$/;

/** Number of lines to report of a panic and the trace after it. */
const PANIC_LINES = 60;

/** Returns the error for a QEMU that has exited unexpectedly. `serialLog`: that of the guest that it booted. */
export async function qemuFailed(logFile: string, serialLog?: string, cause?: unknown): Promise<RdError> {
  const details = await tailOf(logFile);
  const printed = serialLog === undefined ? [] : await tailOf(serialLog, PANIC_LINES);
  const panic = printed.flatMap((line) => PANIC.exec(line)?.[1] ?? []).at(-1);
  const last = panic === undefined ? details.at(-1) : `the kernel of the guest gave up: ${panic}`;
  return new RdError('ERR_DRIVER_FAILED', last ? `QEMU ended: ${last}` : 'QEMU ended', {
    ...defined({ cause }),
    details: panic === undefined ? details : printed,
    advice: `See ${panic === undefined ? logFile : serialLog}.`,
  });
}
