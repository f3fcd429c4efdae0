import type { Clock } from '../../../os/clock.ts';
import type { DriverContext } from '../../driver.ts';
import type { ImageStore } from '../../guest-images/store.ts';
import type { Acceleration } from './accelerator.ts';
import type { HostRun } from './disks.ts';
import type { Connection } from './guest.ts';
import type { GuestClock } from './guest-clock.ts';
import type { Monitor } from './monitor.ts';
import type { GuestMounts } from './mounts/mounts.ts';
import type { QemuPlaces } from './places.ts';
import type { PortForwarder } from './ports/forwarder.ts';

/** Dependencies shared by the operations on one machine. */
export interface MachineParts {
  places: QemuPlaces;
  logFile: string;
  /** Images of this home that a machine can use. */
  images: Pick<ImageStore, 'list' | 'verify'>;
  run: HostRun;
  environment: Readonly<Record<string, string>>;
  guest: Connection;
  monitor: Monitor;
  guestClock: GuestClock;
  mounts: GuestMounts;
  ports: Pick<PortForwarder, 'look' | 'use' | 'forget'>;
  /** Detects the accelerator of this host, once. */
  accelerator(signal: AbortSignal): Promise<Acceleration>;
  /** Whether a machine is frozen on stop and resumed on start. */
  freezes: boolean;
  /** Whether a QEMU of this machine runs. */
  isAlive(): Promise<boolean>;
  clock: Clock;
  log: DriverContext['log'];
}
