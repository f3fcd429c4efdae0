import { join } from 'node:path';
import type { JsonValue } from '../../../json.ts';
import { ARCHITECTURES, type Architecture } from '../../guest-images/architecture.ts';
import type { GuestImage } from '../../guest-images/image.ts';
import { DATA_SERIAL, FIRMWARE_FOLDER } from '../../guest-images/recipe.ts';
import type { QemuPlaces } from './places.ts';

/** The executor of guest instructions: the kernel of the host (KVM on Linux, HVF on macOS), or QEMU itself (TCG). */
export type Accelerator = 'kvm' | 'hvf' | 'tcg';

/** The host of a QEMU, and the architecture of its guests. */
export interface QemuHost {
  platform: NodeJS.Platform;
  architecture: Architecture;
}

export interface QemuArguments {
  image: Pick<GuestImage, 'directory' | 'files'>;
  host: QemuHost;
  places: QemuPlaces;
  accelerator: Accelerator;
  /** GiB at the start, and the limit for hot-plugging. */
  memoryGiB: number;
  memoryCeilingGiB: number;
  cpus: number;
  cpuCeiling: number;
  /** Port of 127.0.0.1 that leads to the guest's ssh. */
  sshPort: number;
  /** Further arguments, such as those of the shared directory. */
  extra?: readonly string[];
  /** Backing files of the root disk, topmost first; by default the disk of the image. */
  backingFiles?: readonly string[];
}

/** Slots for hot-plugged memory; each growth takes one. */
const MEMORY_SLOTS = 8;
const DISK_NODE = 'disk0';
/** QEMU's node name of the data disk. */
export const DATA_NODE = 'data0';
/** QEMU's device names of the data disk and the balloon. */
export const DATA_DRIVE = 'data';
export const BALLOON = 'balloon0';
/**
 * Halts the guest on a failed write; it continues after a retry. By default QEMU does so only for `ENOSPC`: with an exhausted quota or a failed copy
 * the guest would lose writes.
 */
const HALT = 'werror=stop';
/** Interval of the guest's memory statistics, in seconds. */
export const STATS_S = 5;
/** QEMU's name of the guest's network. */
export const NETWORK = 'net0';
/** The guest's address in `NETWORK`: the first one that QEMU assigns. */
export const GUEST_ADDRESS = '10.0.2.15';

const KERNEL_LINE = 'root=/dev/vda rw quiet panic=-1 apparmor=0 memhp_default_state=online_movable swiotlb=1024';
/**
 * Kernel parameters for an emulated processor: no mitigations of processor vulnerabilities, and few wake-ups of an idle guest. They disable the
 * watchdogs of processors and clocks, huge pages (useless in emulation), memory compaction and pressure averages, and batch RCU callbacks.
 */
const emulatedLine = (architecture: Architecture) => [
  'mitigations=off nowatchdog',
  ARCHITECTURES[architecture].emulatedKernelLine,
  'transparent_hugepage=never psi=0 rcu_nocbs=all',
  'sysctl.vm.compaction_proactiveness=0 sysctl.vm.stat_interval=60',
];

/** Returns the kernel command line of a guest. */
function kernelLine(architecture: Architecture, accelerator: Accelerator): string {
  const words = [`console=${ARCHITECTURES[architecture].console}`, KERNEL_LINE];
  if (accelerator === 'tcg') words.push(...emulatedLine(architecture));
  return words.filter((word) => word !== '').join(' ');
}

/**
 * Returns the QEMU command line of a machine. It disables features that depend on user files or version defaults. `apparmor=0`: the guest has no
 * AppArmor parser, so containers would not start. `swiotlb`: with hot-plug slots the kernel would reserve 64 MiB for 32-bit DMA devices, and there
 * are none.
 */
export function qemuArguments(input: QemuArguments): string[] {
  const {
    image,
    host: { platform, architecture },
    places,
    accelerator,
    memoryGiB,
    memoryCeilingGiB,
    cpus,
    cpuCeiling,
    sshPort,
  } = input;
  const { directory, files } = image;
  const firmwareFile = (name: string, file: string) => [
    '-fw_cfg',
    `name=${FIRMWARE_FOLDER}/${name},file=${comma(file)}`,
  ];
  return [
    ARCHITECTURES[architecture].qemu.program,
    '-nodefaults',
    '-no-user-config',
    '-name',
    // On other systems QEMU cannot set the name of its process, and refuses to start.
    `rdctl-${places.id}${platform === 'linux' ? `,process=rdctl-${places.id}` : ''}`,
    '-machine',
    ARCHITECTURES[architecture].machine,
    '-accel',
    accelerator === 'tcg' ? 'tcg,thread=multi,tb-size=512' : accelerator,
    '-cpu',
    cpuModel(architecture, accelerator),
    '-smp',
    `${cpus},maxcpus=${Math.max(cpus, cpuCeiling)}`,
    '-m',
    memoryCeilingGiB > memoryGiB ? `${memoryGiB}G,slots=${MEMORY_SLOTS},maxmem=${memoryCeilingGiB}G` : `${memoryGiB}G`,
    '-kernel',
    join(directory, files.kernel.name),
    '-initrd',
    join(directory, files.initrd.name),
    '-append',
    kernelLine(architecture, accelerator),
    ...disk(DISK_NODE, 'disk', [places.disk, ...backingOf(input)]),
    '-device',
    `virtio-blk-pci,drive=disk,${HALT}`,
    ...disk(DATA_NODE, DATA_DRIVE, [places.data]),
    '-device',
    `virtio-blk-pci,drive=${DATA_DRIVE},${HALT},serial=${DATA_SERIAL}`,
    '-netdev',
    // The guest has no IPv6; QEMU would lead its IPv6 addresses to the loopback interface of this host.
    `user,id=${NETWORK},ipv6=off,hostfwd=tcp:127.0.0.1:${sshPort}-:22`,
    '-device',
    `virtio-net-pci,netdev=${NETWORK}`,
    '-device',
    // With `deflate-on-oom` the guest would report memory that it does not have. Free page reporting returns freed memory to the host and
    // keeps it out of a frozen state.
    `virtio-balloon-pci,id=${BALLOON},guest-stats-polling-interval=${STATS_S},free-page-reporting=on`,
    '-device',
    'virtio-rng-pci',
    ...firmwareFile('authorized_key', `${places.key}.pub`),
    ...firmwareFile('host_key', places.hostKey),
    ...firmwareFile('hostname', places.hostname),
    '-display',
    'none',
    '-monitor',
    'none',
    '-no-reboot',
    '-serial',
    // QEMU takes this path unescaped.
    `file:${places.serialLog}`,
    '-qmp',
    `unix:${comma(places.monitor)},server=on,wait=off`,
    ...(input.extra ?? []),
  ];
}

/** Returns the backing files of the root disk, topmost first. */
export function backingOf({ image: { directory, files }, backingFiles }: QemuArguments): readonly string[] {
  return backingFiles ?? [join(directory, files.disk.name)];
}

function disk(node: string, drive: string, files: readonly string[]): string[] {
  return [
    '-drive',
    `file=${comma(wholeDisk(files))},if=none,id=${drive},node-name=${node},format=qcow2,discard=unmap,detect-zeroes=unmap`,
  ];
}

/**
 * Returns the name of a qcow2 disk and its backing files, topmost first, for the programs of QEMU. They open these and no others, whatever backing
 * file a header names.
 */
export function wholeDisk(files: readonly string[]): string {
  const disk = files.reduceRight<JsonValue>(
    (backing, filename) => ({ driver: 'qcow2', file: { driver: 'file', filename }, backing }),
    null,
  );
  return `json:${JSON.stringify(disk)}`;
}

/** Returns a CPU model with every feature that the accelerator offers. */
export function cpuModel(architecture: Architecture, accelerator: Accelerator): string {
  return accelerator === 'tcg' ? `max${ARCHITECTURES[architecture].emulatedFeatures}` : 'host';
}

/** Escapes an option value: QEMU requires commas to be doubled. */
export function comma(text: string): string {
  return text.replaceAll(',', ',,');
}
