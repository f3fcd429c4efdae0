import type { LiveRoom, MachineSpec } from '../../../driver.ts';
import type { MachineFacts } from './facts.ts';

export const GIB = 2 ** 30;
/** A guest that is left with less than this begins to throw away what it works with. */
const RESERVE_BYTES = 256 * 2 ** 20;
/** The guest tells what it uses every few seconds; a word older than this says nothing about now. */
const FRESH_S = 60;
/**
 * How far the file system of the data disk grows while it is in use. mke2fs leaves 1024 blocks for descriptors of groups that come later, 64
 * of 128 MiB each in a block: 8 TiB. Beyond that the kernel would lay them out in another way, and one growth would take more than ten minutes.
 */
export const DISK_MOST_BYTES = 8 * 2 ** 40;

/**
 * What the guest takes without a restart, now. Memory: down to what it uses and a reserve, in whole GiB, up to what fits in. A
 * processor is never taken away (real components, 3.5: QEMU hangs later), and a disk never shrinks.
 * @param seconds since 1970.
 */
export function roomOf({ memory, cpus, diskBytes }: MachineFacts, seconds: number): Required<LiveRoom> {
  const { bytes, needed } = memory;
  const isFresh = needed !== undefined && Math.abs(seconds - needed.at) <= FRESH_S;
  const floor = isFresh ? Math.max(1, Math.ceil((needed.bytes + RESERVE_BYTES) / GIB)) : Number.POSITIVE_INFINITY;
  return {
    memoryGiB: { least: Math.min(floor, shownGiB(bytes)), most: Math.floor(memory.most / GIB) },
    cpus: { least: cpus.count, most: cpus.count + cpus.free.length },
    diskBytes: { least: diskBytes, most: Math.max(diskBytes, DISK_MOST_BYTES) },
  };
}

/** The spec that a machine runs with, by what QEMU says of it. */
export function runningSpec(recorded: MachineSpec, { memory, cpus, diskBytes }: MachineFacts): MachineSpec {
  return { ...recorded, memoryGiB: shownGiB(memory.bytes), cpus: cpus.count, diskBytes };
}

/** GiB with two digits: memory that is on its way from one size to another has any number of bytes. */
function shownGiB(bytes: number): number {
  return Math.round((bytes / GIB) * 100) / 100;
}

/** `2.5 GiB` */
export function gibText(bytes: number): string {
  return `${shownGiB(bytes)} GiB`;
}

/** A change of one of them began and was not seen to its end; all that is left is to do it again. */
export function isUnfinished(recorded: MachineSpec, facts: MachineFacts): boolean {
  const { memoryGiB, cpus, diskBytes } = runningSpec(recorded, facts);
  return memoryGiB !== recorded.memoryGiB || cpus !== recorded.cpus || diskBytes !== recorded.diskBytes;
}
