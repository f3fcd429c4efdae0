import type { JsonValue } from '../../../../json.ts';
import type { Clock } from '../../../../os/clock.ts';
import type { MachineSpec } from '../../../driver.ts';
import type { Connection } from '../guest.ts';
import type { QemuPlaces } from '../places.ts';
import type { SharedHome } from './home.ts';
import type { HostFacts } from './host-facts.ts';

export const MOUNT_TYPES = ['reverse-sshfs', '9p', 'virtiofs'] as const;
/** `virtualMachine.mount.type`. */
export type MountType = (typeof MOUNT_TYPES)[number];

export function isMountType(value: JsonValue | undefined): value is MountType {
  return MOUNT_TYPES.some((type) => type === value);
}

/** Dependencies of a mount type. */
export interface WayParts {
  places: QemuPlaces;
  guest: Pick<Connection, 'run'>;
  clock: Clock;
  /** Receives the output of host programs. */
  logFile: string;
  environment: Readonly<Record<string, string>>;
  /** Port of 127.0.0.1 that leads to the guest's ssh. */
  port(): Promise<number>;
}

export interface MountWork {
  home: SharedHome;
  spec: MachineSpec;
  facts: HostFacts;
  parts: WayParts;
  signal: AbortSignal;
}

/** One mount type: shows a host directory in the guest. */
export interface MountWay {
  readonly type: MountType;
  /** Features that the guest image must have. */
  readonly feature?: string;
  /** Pure: why the host or its images do not support it, as a clause; undefined when they do. */
  obstacle(facts: HostFacts): string | undefined;
  /** `on this host`: a host program that must run before QEMU; `into the guest`: one that mounts; else none. */
  readonly daemon?: 'on this host' | 'into the guest';
  /** Whether QEMU can save its state: `unmounted`, only while nothing is mounted in the guest. */
  readonly migration: 'free' | 'unmounted' | 'blocked';
  /** Pure: the QEMU arguments. */
  qemuArguments(home: SharedHome, spec: MachineSpec, places: QemuPlaces): string[];
  /** Starts the host program and waits until QEMU can use it. */
  begin?(work: MountWork): Promise<void>;
  /** Mounts in the guest. The mount point exists and is empty. */
  mount(work: MountWork): Promise<void>;
}

/** Name of the directory for QEMU and the guest. */
export const TAG = 'rdctl-home';
