import type { LiveRoom, MachineSpec } from '../../../driver.ts';
import type { MachineFacts } from './facts.ts';

export const GIB = 2 ** 30;
/** With less than this a guest starts to evict its working set. */
const RESERVE_BYTES = 256 * 2 ** 20;
/** The guest reports every few seconds; an older report says nothing about now. */
const FRESH_S = 60;
/**
 * How far the file system of the data disk can grow online. mke2fs reserves 1024 blocks for group descriptors, each for 64 groups of 128
 * MiB:
 * 8 TiB. Beyond that the kernel changes the layout, and a growth would take more than ten minutes.
 */
export const DISK_MOST_BYTES = 8 * 2 ** 40;

/**
 * The live limits of the guest. Memory: down to its usage plus a reserve, in whole GiB, up to what fits in. Processors are never removed
 * (QEMU hangs later), and a disk never shrinks.
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

/** The spec that a machine runs with, as QEMU reports it. */
export function runningSpec(recorded: MachineSpec, { memory, cpus, diskBytes }: MachineFacts): MachineSpec {
  return { ...recorded, memoryGiB: shownGiB(memory.bytes), cpus: cpus.count, diskBytes };
}

/** GiB with two digits: memory being resized can have any number of bytes. */
function shownGiB(bytes: number): number {
  return Math.round((bytes / GIB) * 100) / 100;
}

/** `2.5 GiB` */
export function gibText(bytes: number): string {
  return `${shownGiB(bytes)} GiB`;
}

/** A change was started and not completed; only a retry finishes it. */
export function isUnfinished(recorded: MachineSpec, facts: MachineFacts): boolean {
  const { memoryGiB, cpus, diskBytes } = runningSpec(recorded, facts);
  return memoryGiB !== recorded.memoryGiB || cpus !== recorded.cpus || diskBytes !== recorded.diskBytes;
}
