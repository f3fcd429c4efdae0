import type { JsonValue } from '../../../../json.ts';
import type { Pace } from '../../../../process/pace.ts';
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

/** What a way works with. */
export interface WayParts {
  places: QemuPlaces;
  guest: Pick<Connection, 'run'>;
  pace: Pace;
  /** Gets what the programs of this host print. */
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

/** One way of showing a directory of this host in the guest. */
export interface MountWay {
  readonly type: MountType;
  /** What the guest image has to have. */
  readonly feature?: string;
  /** Pure: why this host and its images cannot, as a clause; undefined when they can. */
  obstacle(facts: HostFacts): string | undefined;
  /** `on this host`: a program of this host that must be there before QEMU is; `into the guest`: one that mounts; else none. */
  readonly daemon?: 'on this host' | 'into the guest';
  /** Whether a state of QEMU can be saved: `unmounted`, only while nothing is mounted in the guest. */
  readonly migration: 'free' | 'unmounted' | 'blocked';
  /** Pure: what QEMU has to be told. */
  qemuArguments(home: SharedHome, spec: MachineSpec, places: QemuPlaces): string[];
  /** Starts the program of this host, and waits until QEMU can use it. */
  begin?(work: MountWork): Promise<void>;
  /** Mounts in the guest. The place is there and empty. */
  mount(work: MountWork): Promise<void>;
}

/** Name of the directory for QEMU and the guest. */
export const TAG = 'rdctl-home';
