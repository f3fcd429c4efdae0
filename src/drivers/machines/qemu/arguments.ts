import { join } from 'node:path';
import type { GuestImage } from '../../../guest-images/image.ts';
import { DATA_SERIAL, FIRMWARE_FOLDER } from '../../../guest-images/recipe.ts';
import type { QemuPlaces } from './places.ts';

/** What runs the instructions of the guest: the kernel of this host, or QEMU itself. */
export type Accelerator = 'kvm' | 'tcg';

export interface QemuArguments {
  image: Pick<GuestImage, 'directory' | 'files'>;
  places: QemuPlaces;
  accelerator: Accelerator;
  /** GiB at the start, and the most that can be plugged in while it runs. */
  memoryGiB: number;
  memoryCeilingGiB: number;
  cpus: number;
  cpuCeiling: number;
  /** Port of 127.0.0.1 that leads to the guest's ssh. */
  sshPort: number;
  /** For what the machine has beside all this. */
  more?: readonly string[];
  /** Files that the root disk is a layer over, the upper one first; without them those that it names itself. */
  below?: readonly string[];
}

/** Slots for memory that is plugged in later; each growth takes one. */
const MEMORY_SLOTS = 8;
const DISK_NODE = 'disk0';
/** QEMU's name for the data disk. */
export const DATA_NODE = 'data0';
/** QEMU's name for the disk of the guest's data, and for what gives back memory of the guest. */
export const DATA_DRIVE = 'data';
export const BALLOON = 'balloon0';
/**
 * A write that fails halts the guest, which may go on once it is tried again. QEMU itself does so only for a lack of room: for a quota that
 * is used up, or a copy that cannot be written, the guest would lose what it wrote.
 */
const HALT = 'werror=stop';
/** Seconds between two words of the guest on what it uses. */
export const STATS_S = 5;
/** QEMU's name for the network of the guest. */
export const NETWORK = 'net0';

const KERNEL_LINE =
  'console=ttyS0 root=/dev/vda rw quiet panic=-1 apparmor=0 memhp_default_state=online_movable swiotlb=1024';

/**
 * The command line of a machine. Everything of QEMU's own that would depend on files of the user or on its version's defaults is
 * switched off. `apparmor=0`: the guest has no program for it, and containers would not start. `swiotlb`: with places for more memory
 * its kernel keeps 64 MiB for devices that reach only the first 4 GiB, and there are none.
 */
export function qemuArguments(input: QemuArguments): string[] {
  const { image, places, accelerator, memoryGiB, memoryCeilingGiB, cpus, cpuCeiling, sshPort, below = [] } = input;
  const { directory, files } = image;
  const given = (name: string, file: string) => ['-fw_cfg', `name=${FIRMWARE_FOLDER}/${name},file=${comma(file)}`];
  return [
    'qemu-system-x86_64',
    '-nodefaults',
    '-no-user-config',
    '-name',
    `${comma(`rdctl-${places.id}`)},process=rdctl-${places.id}`,
    '-machine',
    'q35',
    '-accel',
    accelerator === 'kvm' ? 'kvm' : 'tcg,thread=multi,tb-size=512',
    '-cpu',
    cpuModel(accelerator),
    '-smp',
    `${cpus},maxcpus=${Math.max(cpus, cpuCeiling)}`,
    '-m',
    memoryCeilingGiB > memoryGiB ? `${memoryGiB}G,slots=${MEMORY_SLOTS},maxmem=${memoryCeilingGiB}G` : `${memoryGiB}G`,
    '-kernel',
    join(directory, files.kernel.name),
    '-initrd',
    join(directory, files.initrd.name),
    '-append',
    accelerator === 'kvm' ? KERNEL_LINE : `${KERNEL_LINE} mitigations=off`,
    ...disk(DISK_NODE, 'disk', places.disk, below),
    '-device',
    `virtio-blk-pci,drive=disk,${HALT}`,
    ...disk(DATA_NODE, DATA_DRIVE, places.data),
    '-device',
    `virtio-blk-pci,drive=${DATA_DRIVE},${HALT},serial=${DATA_SERIAL}`,
    '-netdev',
    `user,id=${NETWORK},hostfwd=tcp:127.0.0.1:${sshPort}-:22`,
    '-device',
    `virtio-net-pci,netdev=${NETWORK}`,
    '-device',
    // With `deflate-on-oom` the guest would go on to tell its programs of memory that it does not have. What it has freed goes back to this
    // host, and is no part of a frozen state.
    `virtio-balloon-pci,id=${BALLOON},guest-stats-polling-interval=${STATS_S},free-page-reporting=on`,
    '-device',
    'virtio-rng-pci',
    ...given('authorized_key', `${places.key}.pub`),
    ...given('host_key', places.hostKey),
    ...given('hostname', places.hostname),
    '-display',
    'none',
    '-monitor',
    'none',
    '-no-reboot',
    '-serial',
    // The one path that QEMU takes as it is.
    `file:${places.serialLog}`,
    '-qmp',
    `unix:${comma(places.monitor)},server=on,wait=off`,
    ...(input.more ?? []),
  ];
}

function disk(node: string, drive: string, file: string, below: readonly string[] = []): string[] {
  const layers = below.map((layer, index) => {
    const way = 'backing.'.repeat(index + 1);
    return `,${way}driver=qcow2,${way}file.driver=file,${way}file.filename=${comma(layer)}`;
  });
  return [
    '-drive',
    `file=${comma(file)},if=none,id=${drive},node-name=${node},format=qcow2,discard=unmap,detect-zeroes=unmap${layers.join('')}`,
  ];
}

/** All that the accelerator can give to a guest. */
export function cpuModel(accelerator: Accelerator): string {
  return accelerator === 'kvm' ? 'host' : 'max';
}

/** A value of an option, which a comma would end unless it is doubled. */
export function comma(text: string): string {
  return text.replaceAll(',', ',,');
}
