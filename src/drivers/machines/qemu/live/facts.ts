import { RdError } from '../../../../errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../../json.ts';
import type { LiveRoom, MachineSpec } from '../../../driver.ts';
import { BALLOON, DATA_DRIVE } from '../arguments.ts';
import type { Qmp } from '../monitor.ts';

/** Memory, processors and data disk of a machine as QEMU reports them. Sizes in bytes. */
export interface MachineFacts {
  memory: {
    /** Available to the guest: the total less its balloon. */
    bytes: number;
    /** Memory at the start plus any plugged in since. */
    whole: number;
    /** The limit for hot-plugging; equals `whole` where unsupported. */
    most: number;
    /** Memory that the guest needs, by its own statistics. */
    needed?: { bytes: number /** Seconds since 1970. */; at: number };
  };
  cpus: { count: number; free: readonly CpuSlot[] };
  diskBytes: number;
  /** A disk write failed for a reason other than lack of space. */
  writeFailed: boolean;
}

/** A free processor slot. */
export interface CpuSlot {
  type: string;
  place: JsonObject;
}

/** QOM path of the balloon. */
export const BALLOON_PATH = `/machine/peripheral/${BALLOON}`;

/** Upper bound for memory that a guest kernel reserves at boot: a fixed amount, and tables proportional to the initial memory. */
const KERNEL_BYTES = 128 * 2 ** 20;
const KERNEL_SHARE = 1 / 32;

/** Queries QEMU once. @throws RdError `ERR_DRIVER_FAILED` when QEMU does not respond or responds with something else. */
export async function readFacts(qmp: Qmp, signal: AbortSignal): Promise<MachineFacts> {
  const execute = (command: string, args?: JsonObject) => qmp.execute(command, args, { signal });
  const property = (path: string, name: string) => execute('qom-get', { path, property: name });
  const [balloon, summary, devices, slots, disks, size, stats] = await Promise.all([
    execute('query-balloon'),
    execute('query-memory-size-summary'),
    execute('query-memory-devices'),
    // Refused by machines to which no processor can be added.
    undefinedIfRefused(execute('query-hotpluggable-cpus')),
    execute('query-block'),
    // Missing before QEMU 7.1, where hot-plugging is treated as unsupported.
    undefinedIfRefused(property('/machine', 'memory')),
    undefinedIfRefused(property(BALLOON_PATH, 'guest-stats')),
  ]);
  const whole = number(summary, 'base-memory') + numberOr(0, summary, 'plugged-memory');
  const slotsLeft = numberOr(0, size, 'slots') - list(devices).length;
  const bytes = number(balloon, 'actual');
  const needed = neededOf(stats, { bytes, whole, base: number(summary, 'base-memory') });
  return {
    memory: {
      bytes,
      whole,
      most: slotsLeft > 0 ? Math.max(whole, numberOr(whole, size, 'max-size')) : whole,
      ...(needed ? { needed } : {}),
    },
    cpus:
      slots === undefined ? { count: list(await execute('query-cpus-fast')).length, free: [] } : cpusOf(list(slots)),
    diskBytes: number(child(child(diskOf(disks), 'inserted'), 'image'), 'virtual-size'),
    writeFailed: list(disks).some((disk) => child(disk, 'io-status') === 'failed'),
  };
}

/**
 * Returns bytes in use, including the kernel's. The statistics are some seconds old, so usage is the difference of two numbers in them. They exclude
 * memory that the kernel reserved at boot: exactly known when the memory has not changed since, otherwise the upper bound.
 */
function neededOf(
  stats: JsonValue | undefined,
  { bytes, whole, base }: { bytes: number; whole: number; base: number },
): MachineFacts['memory']['needed'] {
  const reported = child(stats, 'stats');
  const total = numberOr(Number.POSITIVE_INFINITY, reported, 'stat-total-memory');
  const available = numberOr(Number.POSITIVE_INFINITY, reported, 'stat-available-memory');
  const at = numberOr(0, stats, 'last-update');
  // Before the guest's first report every number is the maximum.
  if (at <= 0 || available < 0 || available > total || total > whole) return undefined;
  const most = KERNEL_BYTES + base * KERNEL_SHARE;
  const reserved = bytes - total;
  return { bytes: total - available + (reserved >= 0 && reserved <= most ? reserved : most), at };
}

function cpusOf(slots: readonly JsonValue[]): MachineFacts['cpus'] {
  const cpus = slots.filter(isObject);
  return {
    count: cpus.filter((slot) => typeof slot['qom-path'] === 'string').length,
    free: cpus.filter((slot) => slot['qom-path'] === undefined).flatMap(slotOf),
  };
}

function slotOf(slot: JsonObject): CpuSlot[] {
  return typeof slot.type === 'string' && isObject(slot.props) && slot['vcpus-count'] === 1
    ? [{ type: slot.type, place: slot.props }]
    : [];
}

function diskOf(disks: JsonValue): JsonValue | undefined {
  return list(disks).find((disk) => isObject(disk) && disk.device === DATA_DRIVE);
}

/** Ignores the refusal of an optional query. A broken connection still fails the other queries. */
function undefinedIfRefused(answer: Promise<JsonValue>): Promise<JsonValue | undefined> {
  return answer.catch(() => undefined);
}

function list(value: JsonValue): JsonValue[] {
  return Array.isArray(value) ? value : [];
}

function child(value: JsonValue | undefined, name: string): JsonValue | undefined {
  return isObject(value) ? value[name] : undefined;
}

function numberOr(fallback: number, value: JsonValue | undefined, name: string): number {
  const found = child(value, name);
  return typeof found === 'number' ? found : fallback;
}

function number(value: JsonValue | undefined, name: string): number {
  const found = child(value, name);
  if (typeof found === 'number') return found;
  throw new RdError('ERR_DRIVER_FAILED', `QEMU does not report the ${name} of the machine`);
}

export const GIB = 2 ** 30;
/** With less free memory, a guest starts to evict its working set. */
const RESERVE_BYTES = 256 * 2 ** 20;
/** The guest reports every few seconds; older reports are stale. */
const FRESH_S = 60;
/**
 * Maximum size to which the file system of the data disk can grow online. mke2fs reserves 1024 blocks for group descriptors, each for 64 groups of
 * 128 MiB: 8 TiB. Beyond that the kernel changes the layout, and a growth would take more than ten minutes.
 */
export const DISK_MOST_BYTES = 8 * 2 ** 40;

/**
 * Returns the live limits of the guest. Memory: down to its usage plus a reserve, in whole GiB, up to the limit for hot-plugging. Processors are
 * never removed (QEMU hangs later), and a disk never shrinks.
 * @param seconds since 1970.
 * @param possibleCpus processors that the guest's kernel can use: without KVM, recent kernels recognize no hypervisor and ignore free slots.
 */
export function roomOf(
  { memory, cpus, diskBytes }: MachineFacts,
  seconds: number,
  possibleCpus = Number.POSITIVE_INFINITY,
): Required<LiveRoom> {
  const { bytes, needed } = memory;
  const isFresh = needed !== undefined && Math.abs(seconds - needed.at) <= FRESH_S;
  const floor = isFresh ? Math.max(1, Math.ceil((needed.bytes + RESERVE_BYTES) / GIB)) : Number.POSITIVE_INFINITY;
  return {
    memoryGiB: { least: Math.min(floor, shownGiB(bytes)), most: Math.floor(memory.most / GIB) },
    cpus: { least: cpus.count, most: Math.max(cpus.count, Math.min(cpus.count + cpus.free.length, possibleCpus)) },
    diskBytes: { least: diskBytes, most: Math.max(diskBytes, DISK_MOST_BYTES) },
  };
}

/** Returns the spec that a machine runs with, as QEMU reports it. */
export function runningSpec(recorded: MachineSpec, { memory, cpus, diskBytes }: MachineFacts): MachineSpec {
  return { ...recorded, memoryGiB: shownGiB(memory.bytes), cpus: cpus.count, diskBytes };
}

/** Returns GiB with two digits: memory being resized can have any number of bytes. */
function shownGiB(bytes: number): number {
  return Math.round((bytes / GIB) * 100) / 100;
}

/** Formats `2.5 GiB`. */
export function gibText(bytes: number): string {
  return `${shownGiB(bytes)} GiB`;
}

/** True if a change was started and not completed; only a retry finishes it. */
export function isUnfinished(recorded: MachineSpec, facts: MachineFacts): boolean {
  const { memoryGiB, cpus, diskBytes } = runningSpec(recorded, facts);
  return memoryGiB !== recorded.memoryGiB || cpus !== recorded.cpus || diskBytes !== recorded.diskBytes;
}
