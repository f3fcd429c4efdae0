import { RdError } from '../../../../errors.ts';
import type { JsonObject } from '../../../../json.ts';
import type { LiveRoom, MachineSpec } from '../../../driver.ts';
import { STATS_S } from '../arguments.ts';
import { type LiveParts, pollUntilSettled } from './change.ts';
import { degradationOf, growDisk } from './disk-growth.ts';
import { BALLOON_PATH, type CpuSlot, GIB, gibText, type MachineFacts, readFacts, roomOf } from './facts.ts';

export interface AdjustParts extends LiveParts {
  /** The latest record. */
  recorded: MachineSpec;
  /** As in the record of the machine. */
  possibleCpus?: number | undefined;
  /** Records what the machine runs with, and that it differs from its start. `growing`: what is missing until its file system has grown. */
  record(change: Partial<MachineSpec>, adjusted: true, growing?: string): Promise<unknown>;
}

/**
 * Applies memory, processors and disk size of `desired` to the running guest, one after the other. Each is recorded once the guest uses it;
 * a large disk once its file system is growing. A failure does not prevent the others. Idempotent: repeating it finishes what was begun.
 * @throws RdError `ERR_DRIVER_FAILED` for what requires a restart and for what QEMU or the guest did not do, `ERR_CANCELLED`.
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
      // Record first that something changes: a kill in between leaves a different machine.
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

/** The guest may use more than when the plan was made; then refuse without a partial change. */
function checkRoom({ memoryGiB, cpus }: Required<LiveRoom>, facts: MachineFacts, desired: MachineSpec): void {
  if (desired.memoryGiB * GIB !== facts.memory.bytes) within('GiB of memory', desired.memoryGiB, memoryGiB);
  within('processors', desired.cpus, cpus);
}

function within(what: string, value: number, { least, most }: { least: number; most: number }): void {
  if (value >= least && value <= most) return;
  throw new RdError('ERR_DRIVER_FAILED', `the running machine can have ${least} to ${most} ${what}, not ${value}`, {
    advice: 'Restart the machine, or choose another size.',
  });
}

/** A udev rule in the image onlines it; the guest may be slow, or its image may lack the rule. */
const ONLINE = `for switch in /sys/devices/system/cpu/cpu[0-9]*/online; do
  [ "$(cat "$switch")" != 0 ] || echo 1 >"$switch"
done
getconf _NPROCESSORS_ONLN
`;

/**
 * Plugs in processors until there are `count`, and waits until the guest uses them. Never removes one: QEMU hangs some time after a
 * processor was unplugged.
 * @throws RdError `ERR_DRIVER_FAILED` for fewer than there are, when QEMU refuses or the guest does not use them, `ERR_CANCELLED`.
 */
async function setProcessors(parts: LiveParts, before: MachineFacts['cpus'], count: number, signal: AbortSignal) {
  const { monitor, guest, clock } = parts;
  if (count < before.count) {
    throw new RdError(
      'ERR_DRIVER_FAILED',
      `processors of a running machine cannot be removed (it has ${before.count})`,
    );
  }
  const chosen = [...before.free].sort(byPlace).slice(0, count - before.count);
  await monitor.use(async (qmp) => {
    for (const { type, place } of chosen) {
      await qmp.execute('device_add', { driver: type, id: idOf(place), ...place }, { signal });
    }
  }, signal);
  const look = async () => Number((await guest.run(['sh', '-s'], { input: ONLINE, signal })).stdout.trim());
  const used = await pollUntilSettled(clock, look, (value) => value >= count, signal);
  if (used >= count) return;
  throw new RdError('ERR_DRIVER_FAILED', `the guest uses ${used} of ${count} processors`, {
    advice: 'This is retried automatically. If that does not help, restart the machine.',
  });
}

function idOf(place: JsonObject): string {
  return `cpu-${numbers(place).join('-')}`;
}

/** In socket order, so that the guest numbers them as at boot. */
function byPlace(one: CpuSlot, other: CpuSlot): number {
  const [a, b] = [numbers(one.place), numbers(other.place)];
  const index = a.findIndex((value, at) => value !== b[at]);
  return index === -1 ? 0 : (a[index] ?? 0) - (b[index] ?? 0);
}

function numbers(place: JsonObject): number[] {
  return ['socket-id', 'die-id', 'core-id', 'thread-id'].map((name) => Number(place[name] ?? 0));
}

/** The guest kernel reserves some memory for itself: a fixed part, and tables that grow with it. */
const KEPT_BYTES = 256 * 2 ** 20;
const KEPT_PART = 1 / 32;

/** The guest kernel onlines it automatically where configured at boot; repeating it is harmless. */
const USE = `for block in /sys/devices/system/memory/memory[0-9]*/state; do
  read -r state <"$block"
  [ "$state" != offline ] || echo online_movable >"$block"
done
grep '^MemTotal:' /proc/meminfo
`;

/**
 * Resizes the memory of the running guest: plugs in what is missing, takes back the surplus with the balloon. If the guest does not release
 * that much, it gets everything back. Idempotent: when repeated it only checks.
 * @param bytes whole GiB.
 * @throws RdError `ERR_DRIVER_FAILED` when QEMU refuses or the guest does not accept or release it, `ERR_CANCELLED`.
 */
async function setMemory(parts: LiveParts, before: MachineFacts['memory'], bytes: number, signal: AbortSignal) {
  const { guest, clock } = parts;
  const look = async () => totalIn((await guest.run(['sh', '-s'], { input: USE, signal })).stdout);
  const total = await look();
  const missing = bytes - before.whole;
  if (missing > 0) await hotPlug(parts, missing, signal);
  const actual = await balloon(parts, bytes, signal);
  if (actual > bytes) {
    const again = await balloon(parts, before.bytes, signal);
    throw new RdError(
      'ERR_DRIVER_FAILED',
      `the guest releases memory down to ${gibText(actual)} only, not to ${gibText(bytes)}`,
      {
        advice: `It has ${gibText(again)} now. Stop containers that use memory, or restart the machine.`,
      },
    );
  }
  const gained = bytes - before.bytes;
  const kept = KEPT_BYTES + Math.max(before.whole, bytes) * KEPT_PART;
  const least = Math.max(bytes - kept, total + gained - Math.abs(gained) * KEPT_PART);
  const seen = await pollUntilSettled(clock, look, (value) => value >= least, signal);
  if (seen >= least) return awaitStatistics(parts, signal);
  throw new RdError(
    'ERR_DRIVER_FAILED',
    `the guest uses ${gibText(seen)} of the ${gibText(bytes)} that it was assigned`,
    {
      advice: 'This is retried automatically. If that does not help, restart the machine.',
    },
  );
}

/**
 * Waits for fresh memory statistics from the guest, so that the next plan is current. Setting the interval makes QEMU poll at once. A
 * silent guest blocks nothing.
 */
async function awaitStatistics({ monitor, clock }: LiveParts, signal: AbortSignal): Promise<void> {
  const look = (ask: boolean) =>
    monitor.use(async (qmp) => {
      for (const value of ask ? [0, STATS_S] : []) {
        await qmp.execute(
          'qom-set',
          { path: BALLOON_PATH, property: 'guest-stats-polling-interval', value },
          { signal },
        );
      }
      return (await readFacts(qmp, signal)).memory.needed?.at ?? 0;
    }, signal);
  const before = await look(false);
  await pollUntilSettled(
    clock,
    () => look(true),
    (at) => at > before,
    signal,
  );
}

/** Named after its slot, as the devices are, so that names are unique. */
async function hotPlug({ monitor }: LiveParts, bytes: number, signal: AbortSignal): Promise<void> {
  await monitor.use(async (qmp) => {
    const ask = (command: string, args?: JsonObject) => qmp.execute(command, args, { signal });
    const devices = await ask('query-memory-devices');
    const id = `memory${Array.isArray(devices) ? devices.length : 0}`;
    // A backend without a device, left by a crash, blocks the name and holds no memory.
    await ask('object-del', { id: `${id}-host` }).catch(() => undefined);
    // Shared, for host programs such as virtiofsd that access guest memory.
    await ask('object-add', { 'qom-type': 'memory-backend-memfd', id: `${id}-host`, size: bytes, share: true });
    await ask('device_add', { driver: 'pc-dimm', id, memdev: `${id}-host` });
  }, signal);
}

/**
 * Sets the balloon and waits until it stops moving. Returns the guest's memory then.
 * @throws RdError `ERR_CANCELLED` with the progress: the balloon continues, and a large change takes minutes.
 */
async function balloon({ monitor, clock, progress }: LiveParts, bytes: number, signal: AbortSignal): Promise<number> {
  await monitor.use((qmp) => qmp.execute('balloon', { value: bytes }, { signal }), signal);
  let seen: number | undefined;
  let nearest = Number.POSITIVE_INFINITY;
  const look = async () => {
    seen = await monitor.use(async (qmp) => (await readFacts(qmp, signal)).memory.bytes, signal);
    const distance = Math.abs(seen - bytes);
    if (distance < nearest && nearest !== Number.POSITIVE_INFINITY) progress?.();
    nearest = Math.min(nearest, distance);
    return seen;
  };
  return pollUntilSettled(clock, look, (value) => value === bytes, signal).catch((cause: unknown) => {
    if (!signal.aborted || seen === undefined) throw cause;
    const text = `the memory of the guest is still changing: ${gibText(seen)} now, ${gibText(bytes)} requested`;
    throw new RdError('ERR_CANCELLED', text, {
      cause,
      advice: 'The guest continues. Wait a while and run `rdctl apply` again, or restart the machine.',
    });
  });
}

/** All shared memory (shmem) of the guest, in bytes. */
function totalIn(text: string): number {
  const [, kib] = /^MemTotal:\s+(\d+) kB$/m.exec(text) ?? [];
  if (kib === undefined) throw new RdError('ERR_DRIVER_FAILED', 'the guest does not report its memory');
  return Number(kib) * 1024;
}
