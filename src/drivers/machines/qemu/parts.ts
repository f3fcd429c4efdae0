import type { ImageStore } from '../../../guest-images/store.ts';
import type { Pace } from '../../../process/pace.ts';
import type { DriverContext } from '../../driver.ts';
import type { Acceleration } from './accelerator.ts';
import type { HostRun } from './disks.ts';
import type { Connection } from './guest.ts';
import type { GuestClock } from './guest-clock.ts';
import type { Monitor } from './monitor.ts';
import type { GuestMounts } from './mounts/mounts.ts';
import type { QemuPlaces } from './places.ts';
import type { PortForwarder } from './ports/forwarder.ts';

/** What the works on one machine share. */
export interface MachineParts {
  places: QemuPlaces;
  logFile: string;
  /** Images of this home that a machine can be made from. */
  images: Pick<ImageStore, 'list' | 'verify'>;
  run: HostRun;
  environment: Readonly<Record<string, string>>;
  guest: Connection;
  monitor: Monitor;
  clock: GuestClock;
  mounts: GuestMounts;
  ports: Pick<PortForwarder, 'look' | 'use' | 'forget'>;
  /** Looks once what can run a guest here. */
  accelerator(signal: AbortSignal): Promise<Acceleration>;
  /** Whether a machine is frozen at its end and resumed at its start. */
  freezes: boolean;
  /** Whether there is a QEMU of this machine. */
  isAlive(): Promise<boolean>;
  pace: Pace;
  log: DriverContext['log'];
}
