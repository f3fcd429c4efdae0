import { RdError } from '../../../../errors.ts';
import type { JsonObject } from '../../../../json.ts';
import type { MachineSpec } from '../../../driver.ts';
import { degradationOf, growDisk } from './disk-growth.ts';
import { type CpuSlot, type MachineFacts, readFacts } from './facts.ts';
import type { LiveParts } from './live-parts.ts';
import { setMemory } from './memory.ts';
import { GIB, roomOf } from './room.ts';
import { pollUntilSettled } from './settled.ts';

export interface AdjustParts extends LiveParts {
  /** The latest record. */
  recorded: MachineSpec;
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
  checkRoom(facts, desired);
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
function checkRoom(facts: MachineFacts, desired: MachineSpec): void {
  const { memoryGiB, cpus } = roomOf(facts, Date.now() / 1000);
  if (desired.memoryGiB * GIB !== facts.memory.bytes) within('GiB of memory', desired.memoryGiB, memoryGiB);
  within('processors', desired.cpus, cpus);
}

function within(what: string, value: number, { least, most }: { least: number; most: number }): void {
  if (value >= least && value <= most) return;
  throw new RdError('ERR_DRIVER_FAILED', `the running machine takes ${least} to ${most} ${what} and not ${value}`, {
    advice: 'Stop and start the machine, or choose another size.',
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
    throw new RdError('ERR_DRIVER_FAILED', `a running machine keeps its ${before.count} processors`);
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
    advice: 'It is tried again. When that does not help, stop and start the machine.',
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
