import { RdError } from '../../../../errors.ts';
import type { JsonObject } from '../../../../json.ts';
import type { LiveRoom, MachineSpec } from '../../../driver.ts';
import { STATS_S } from '../arguments.ts';
import type { Qmp } from '../monitor.ts';
import { type LiveParts, pollUntilSettled } from './change.ts';
import { degradationOf, growDisk } from './disk-growth.ts';
import { BALLOON_PATH, type CpuSlot, GIB, gibText, type MachineFacts, readFacts, roomOf } from './facts.ts';

export interface AdjustParts extends LiveParts {
  /** The latest record. */
  recorded: MachineSpec;
  /** Processors that the guest's kernel can use until its next boot; absent when unknown. */
  possibleCpus?: number | undefined;
  /** Records the spec that the machine runs with, and that it differs from its start. `growing`: the degradation until its file system has grown. */
  record(change: Partial<MachineSpec>, adjusted: true, growing?: string): Promise<unknown>;
}

/**
 * Applies memory, processors and disk size of `desired` to the running guest, one after the other. Each is recorded once the guest uses it; a large
 * disk once its file system is growing. A failure does not prevent the others. Idempotent: repeating it finishes earlier work.
 * @throws RdError `ERR_DRIVER_FAILED` for changes that require a restart and for those that QEMU or the guest did not make, `ERR_CANCELLED`.
 */
export async function adjustMachine(parts: AdjustParts, desired: MachineSpec, signal: AbortSignal): Promise<void> {
  const facts = await parts.monitor.use((qmp) => readFacts(qmp, signal), signal);
  checkRoom(roomOf(facts, Date.now() / 1000, parts.possibleCpus), facts, desired);
  const failures: RdError[] = [];
  const attempt = async (
    member: 'memoryGiB' | 'cpus' | 'diskBytes',
    now: number,
    wanted: number,
    work: () => Promise<string | undefined>,
  ) => {
    if (now === wanted && parts.recorded[member] === wanted) return;
    try {
      // Record the change first: a kill in between leaves a machine that differs from its start.
      await parts.record({}, true);
      const growing = await work();
      await parts.record({ [member]: wanted }, true, growing);
    } catch (error) {
      if (signal.aborted || !(error instanceof RdError)) throw error;
      failures.push(error);
    }
  };
  const { cpus, memoryGiB } = desired;
  // A larger disk suffices.
  const diskBytes = Math.max(desired.diskBytes, facts.diskBytes);
  await attempt('diskBytes', facts.diskBytes, diskBytes, async () =>
    degradationOf(await growDisk(parts, facts.diskBytes, diskBytes, signal), diskBytes),
  );
  await attempt('cpus', facts.cpus.count, cpus, async () => {
    await setProcessors(parts, facts.cpus, cpus, signal);
    return undefined;
  });
  await attempt('memoryGiB', facts.memory.bytes / GIB, memoryGiB, async () => {
    await setMemory(parts, facts.memory, memoryGiB * GIB, signal);
    return undefined;
  });
  const [first, ...others] = failures;
  if (first === undefined) return;
  if (others.length === 0) throw first;
  throw new RdError('ERR_DRIVER_FAILED', failures.map(({ message }) => message).join('; '), {
    cause: first,
    details: failures.flatMap(({ details }) => details),
    advice: [...new Set(failures.flatMap(({ advice }) => advice ?? []))].join(' '),
  });
}

/** Refuses before any change: the guest may use more than when the plan was made. */
function checkRoom({ memoryGiB, cpus }: Required<LiveRoom>, facts: MachineFacts, desired: MachineSpec): void {
  if (desired.memoryGiB * GIB !== facts.memory.bytes) checkWithin('GiB of memory', desired.memoryGiB, memoryGiB);
  checkWithin('processors', desired.cpus, cpus);
}

function checkWithin(what: string, value: number, { least, most }: { least: number; most: number }): void {
  if (value >= least && value <= most) return;
  throw new RdError('ERR_DRIVER_FAILED', `the running machine can have ${least} to ${most} ${what}, not ${value}`, {
    advice: 'Restart the machine, or choose another size.',
  });
}

/** Prints the processor count. A udev rule onlines processors; the guest may be slow, or its image may not have the rule. */
const ONLINE_CPUS_SCRIPT = `for switch in /sys/devices/system/cpu/cpu[0-9]*/online; do
  [ "$(cat "$switch")" != 0 ] || echo 1 >"$switch"
done
getconf _NPROCESSORS_ONLN
`;

/**
 * Plugs in processors until there are `count`, and waits until the guest uses them. Never removes one: QEMU hangs some time after a processor was
 * unplugged.
 * @throws RdError `ERR_DRIVER_FAILED` for a smaller count, when QEMU refuses or the guest does not use them, `ERR_CANCELLED`.
 */
async function setProcessors(parts: LiveParts, before: MachineFacts['cpus'], count: number, signal: AbortSignal) {
  const { monitor, guest, clock } = parts;
  if (count < before.count) {
    throw new RdError(
      'ERR_DRIVER_FAILED',
      `processors of a running machine cannot be removed (it has ${before.count})`,
    );
  }
  const chosen = [...before.free].sort(compareSlots).slice(0, count - before.count);
  await monitor.use(async (qmp) => {
    for (const { type, place } of chosen) {
      await qmp.execute('device_add', { driver: type, id: idOf(place), ...place }, { signal });
    }
  }, signal);
  const countOnline = async () =>
    Number((await guest.run(['sh', '-s'], { input: ONLINE_CPUS_SCRIPT, signal })).stdout.trim());
  const used = await pollUntilSettled(clock, countOnline, (value) => value >= count, signal);
  if (used >= count) return;
  throw new RdError('ERR_DRIVER_FAILED', `the guest uses ${used} of ${count} processors`, {
    advice: 'This is retried automatically. If that does not help, restart the machine.',
  });
}

function idOf(place: JsonObject): string {
  return `cpu-${numbers(place).join('-')}`;
}

/** Sorts by socket, so that the guest numbers processors as at boot. */
function compareSlots(one: CpuSlot, other: CpuSlot): number {
  const [a, b] = [numbers(one.place), numbers(other.place)];
  const index = a.findIndex((value, at) => value !== b[at]);
  return index === -1 ? 0 : (a[index] ?? 0) - (b[index] ?? 0);
}

function numbers(place: JsonObject): number[] {
  return ['socket-id', 'die-id', 'core-id', 'thread-id'].map((name) => Number(place[name] ?? 0));
}

/** Upper bound for memory that the guest kernel reserves: a fixed amount, and tables proportional to its memory. */
const KERNEL_BYTES = 256 * 2 ** 20;
const KERNEL_SHARE = 1 / 32;

/** Prints the total memory. The guest kernel onlines memory itself if configured at boot; repeating it is harmless. */
const ONLINE_MEMORY_SCRIPT = `for block in /sys/devices/system/memory/memory[0-9]*/state; do
  read -r state <"$block"
  [ "$state" != offline ] || echo online_movable >"$block"
done
grep '^MemTotal:' /proc/meminfo
`;

/**
 * Resizes the memory of the running guest: hot-plugs missing memory and reclaims the surplus with the balloon. If the guest does not release that
 * much, it gets everything back. Idempotent: when repeated it only checks.
 * @param bytes whole GiB.
 * @throws RdError `ERR_DRIVER_FAILED` when QEMU refuses or the guest does not accept or release it, `ERR_CANCELLED`.
 */
async function setMemory(parts: LiveParts, before: MachineFacts['memory'], bytes: number, signal: AbortSignal) {
  const { guest, clock } = parts;
  const readTotal = async () =>
    parseTotal((await guest.run(['sh', '-s'], { input: ONLINE_MEMORY_SCRIPT, signal })).stdout);
  const total = await readTotal();
  const missing = bytes - before.whole;
  if (missing > 0) await hotPlug(parts, missing, signal);
  const actual = await balloon(parts, bytes, signal);
  if (actual > bytes) {
    const restored = await balloon(parts, before.bytes, signal);
    throw new RdError(
      'ERR_DRIVER_FAILED',
      `the guest releases memory down to ${gibText(actual)} only, not to ${gibText(bytes)}`,
      {
        advice: `It has ${gibText(restored)} now. Stop containers that use memory, or restart the machine.`,
      },
    );
  }
  const change = bytes - before.bytes;
  const reserved = KERNEL_BYTES + Math.max(before.whole, bytes) * KERNEL_SHARE;
  const least = Math.max(bytes - reserved, total + change - Math.abs(change) * KERNEL_SHARE);
  const finalTotal = await pollUntilSettled(clock, readTotal, (value) => value >= least, signal);
  if (finalTotal >= least) return awaitStatistics(parts, signal);
  throw new RdError(
    'ERR_DRIVER_FAILED',
    `the guest uses ${gibText(finalTotal)} of the ${gibText(bytes)} that it was assigned`,
    {
      advice: 'This is retried automatically. If that does not help, restart the machine.',
    },
  );
}

/** Makes QEMU ask the guest for its memory statistics at once, by setting the interval. */
export async function requestStatistics(qmp: Qmp, signal: AbortSignal): Promise<void> {
  for (const value of [0, STATS_S]) {
    await qmp.execute('qom-set', { path: BALLOON_PATH, property: 'guest-stats-polling-interval', value }, { signal });
  }
}

/** Waits for fresh memory statistics from the guest, so that the next plan is current. A silent guest blocks nothing. */
async function awaitStatistics({ monitor, clock }: LiveParts, signal: AbortSignal): Promise<void> {
  const updatedAt = (refresh: boolean) =>
    monitor.use(async (qmp) => {
      if (refresh) await requestStatistics(qmp, signal);
      return (await readFacts(qmp, signal)).memory.needed?.at ?? 0;
    }, signal);
  const before = await updatedAt(false);
  await pollUntilSettled(
    clock,
    () => updatedAt(true),
    (at) => at > before,
    signal,
  );
}

/** Plugs in memory. The id comes from the number of devices, so that it is unique. */
async function hotPlug({ monitor }: LiveParts, bytes: number, signal: AbortSignal): Promise<void> {
  await monitor.use(async (qmp) => {
    const execute = (command: string, args?: JsonObject) => qmp.execute(command, args, { signal });
    const devices = await execute('query-memory-devices');
    const id = `memory${Array.isArray(devices) ? devices.length : 0}`;
    // A backend without a device, left by a crash, blocks the name and holds no memory.
    await execute('object-del', { id: `${id}-host` }).catch(() => undefined);
    // Shared, for host programs such as virtiofsd that access guest memory.
    await execute('object-add', { 'qom-type': 'memory-backend-memfd', id: `${id}-host`, size: bytes, share: true });
    await execute('device_add', { driver: 'pc-dimm', id, memdev: `${id}-host` });
  }, signal);
}

/**
 * Sets the balloon and waits until it stops moving. Returns the guest's memory then.
 * @throws RdError `ERR_CANCELLED` with the progress: the balloon continues, and a large change takes minutes.
 */
async function balloon({ monitor, clock, progress }: LiveParts, bytes: number, signal: AbortSignal): Promise<number> {
  await monitor.use((qmp) => qmp.execute('balloon', { value: bytes }, { signal }), signal);
  let lastBytes: number | undefined;
  let nearest = Number.POSITIVE_INFINITY;
  const readBalloon = async () => {
    lastBytes = await monitor.use(async (qmp) => (await readFacts(qmp, signal)).memory.bytes, signal);
    const distance = Math.abs(lastBytes - bytes);
    if (distance < nearest && nearest !== Number.POSITIVE_INFINITY) progress?.();
    nearest = Math.min(nearest, distance);
    return lastBytes;
  };
  return pollUntilSettled(clock, readBalloon, (value) => value === bytes, signal).catch((cause: unknown) => {
    if (!signal.aborted || lastBytes === undefined) throw cause;
    const text = `the memory of the guest is still changing: ${gibText(lastBytes)} now, ${gibText(bytes)} requested`;
    throw new RdError('ERR_CANCELLED', text, {
      cause,
      advice: 'The guest continues. Wait a while and run `rdctl apply` again, or restart the machine.',
    });
  });
}

/** Parses the guest's total memory, in bytes. */
function parseTotal(text: string): number {
  const [, kib] = /^MemTotal:\s+(\d+) kB$/m.exec(text) ?? [];
  if (kib === undefined) throw new RdError('ERR_DRIVER_FAILED', 'the guest does not report its memory');
  return Number(kib) * 1024;
}
