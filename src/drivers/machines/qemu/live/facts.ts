import { RdError } from '../../../../errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../../json.ts';
import { BALLOON, DATA_DRIVE } from '../arguments.ts';
import type { Qmp } from '../qmp.ts';

/** Memory, processors and data disk of a machine as its QEMU tells them now. Sizes in bytes. */
export interface MachineFacts {
  memory: {
    /** What the guest has: all that there is, less what its balloon holds. */
    bytes: number;
    /** What it was started with and what was plugged in since. */
    whole: number;
    /** The most that can be plugged in; `whole` where nothing can. */
    most: number;
    /** What the guest cannot do without, as it said itself. */
    needed?: { bytes: number /** Seconds since 1970. */; at: number };
  };
  cpus: { count: number; free: readonly CpuSlot[] };
  diskBytes: number;
  /** A write to one of the disks failed, and not for lack of room. */
  writeFailed: boolean;
}

/** Where a processor can be plugged in. */
export interface CpuSlot {
  type: string;
  place: JsonObject;
}

/** Where QEMU has the properties of the balloon. */
export const BALLOON_PATH = `/machine/peripheral/${BALLOON}`;

/** What the kernel of a guest takes at its start, at most: some fixed, and tables that grow with what it starts with. */
const TAKEN_BYTES = 128 * 2 ** 20;
const TAKEN_PART = 1 / 32;

/** One look. @throws RdError `ERR_DRIVER_FAILED` when QEMU does not answer or answers something else. */
export async function readFacts(qmp: Qmp, signal: AbortSignal): Promise<MachineFacts> {
  const ask = (command: string, args?: JsonObject) => qmp.execute(command, args, { signal });
  const property = (path: string, name: string) => ask('qom-get', { path, property: name });
  const [balloon, summary, devices, slots, disks, size, stats] = await Promise.all([
    ask('query-balloon'),
    ask('query-memory-size-summary'),
    ask('query-memory-devices'),
    ask('query-hotpluggable-cpus'),
    ask('query-block'),
    // A QEMU older than 7.1 has no such property: then nothing is known to be possible.
    ifTold(property('/machine', 'memory')),
    ifTold(property(BALLOON_PATH, 'guest-stats')),
  ]);
  const whole = number(summary, 'base-memory') + numberOr(0, summary, 'plugged-memory');
  const slotsLeft = numberOr(0, size, 'slots') - list(devices).length;
  const bytes = number(balloon, 'actual');
  const needed = neededOf(stats, { bytes, whole, base: number(summary, 'base-memory') });
  const cpus = list(slots).filter(isObject);
  return {
    memory: {
      bytes,
      whole,
      most: slotsLeft > 0 ? Math.max(whole, numberOr(whole, size, 'max-size')) : whole,
      ...(needed ? { needed } : {}),
    },
    cpus: {
      count: cpus.filter((slot) => typeof slot['qom-path'] === 'string').length,
      free: cpus.filter((slot) => slot['qom-path'] === undefined).flatMap(slotOf),
    },
    diskBytes: number(child(child(diskOf(disks), 'inserted'), 'image'), 'virtual-size'),
    writeFailed: list(disks).some((disk) => child(disk, 'io-status') === 'failed'),
  };
}

/**
 * Bytes that are not left over, those of the kernel included. The word of the guest is some seconds old, and tells of what it had then:
 * of that, what it uses is the difference of two numbers in it. It does not count what its kernel took at the start. That is known by
 * what the guest has now where this is what it had then, and otherwise the most that it can be.
 */
function neededOf(
  stats: JsonValue | undefined,
  { bytes, whole, base }: { bytes: number; whole: number; base: number },
): MachineFacts['memory']['needed'] {
  const told = child(stats, 'stats');
  const total = numberOr(Number.POSITIVE_INFINITY, told, 'stat-total-memory');
  const available = numberOr(Number.POSITIVE_INFINITY, told, 'stat-available-memory');
  const at = numberOr(0, stats, 'last-update');
  // Before the first word of the guest every number is the largest that there is.
  if (at <= 0 || available < 0 || available > total || total > whole) return undefined;
  const most = TAKEN_BYTES + base * TAKEN_PART;
  const taken = bytes - total;
  return { bytes: total - available + (taken >= 0 && taken <= most ? taken : most), at };
}

function slotOf(slot: JsonObject): CpuSlot[] {
  return typeof slot.type === 'string' && isObject(slot.props) && slot['vcpus-count'] === 1
    ? [{ type: slot.type, place: slot.props }]
    : [];
}

function diskOf(disks: JsonValue): JsonValue | undefined {
  return list(disks).find((disk) => isObject(disk) && disk.device === DATA_DRIVE);
}

/** What a refusal is no failure of; a connection that broke shows in the questions beside it. */
function ifTold(answer: Promise<JsonValue>): Promise<JsonValue | undefined> {
  return answer.catch(() => undefined);
}

function list(value: JsonValue): JsonValue[] {
  return Array.isArray(value) ? value : [];
}

function child(value: JsonValue | undefined, name: string): JsonValue | undefined {
  return isObject(value) ? value[name] : undefined;
}

function numberOr(otherwise: number, value: JsonValue | undefined, name: string): number {
  const found = child(value, name);
  return typeof found === 'number' ? found : otherwise;
}

function number(value: JsonValue | undefined, name: string): number {
  const found = child(value, name);
  if (typeof found === 'number') return found;
  throw new RdError('ERR_DRIVER_FAILED', `QEMU does not tell the ${name} of the machine`);
}
