import { RdError } from '../../../../errors.ts';
import type { JsonObject } from '../../../../json.ts';
import type { MachineSpec } from '../../../driver.ts';
import { growDisk, lackOf } from './disk-growth.ts';
import { type CpuSlot, type MachineFacts, readFacts } from './facts.ts';
import type { LiveParts } from './live-parts.ts';
import { setMemory } from './memory.ts';
import { GIB, roomOf } from './room.ts';
import { settled } from './settled.ts';

export interface AdjustParts extends LiveParts {
  /** What was written down last. */
  recorded: MachineSpec;
  /**
   * Writes down what the machine runs with from now on, and that it is not as it was started any more. `growing`: what it lacks until
   * its file system has grown.
   */
  record(change: Partial<MachineSpec>, adjusted: true, growing?: string): Promise<unknown>;
}

/**
 * Gives the running guest the memory, the processors and the disk of `desired`, one after the other; each is written down once the
 * guest was seen to use it, a large disk once its file system is on its way. One that fails does not keep the others from being done.
 * Done again it finishes what was begun.
 * @throws RdError `ERR_DRIVER_FAILED` for what is not possible without a restart and for what QEMU or the guest did not do,
 *   `ERR_CANCELLED`.
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
      // First the word that something was done: whoever is killed in between leaves another machine.
      await parts.record({}, true);
      const growing = await work();
      await parts.record({ [member]: wanted }, true, growing);
    } catch (error) {
      if (signal.aborted || !(error instanceof RdError)) throw error;
      failures.push(error);
    }
  };
  const { cpus, memoryGiB } = desired;
  // A disk that is larger already suffices.
  const diskBytes = Math.max(desired.diskBytes, facts.diskBytes);
  await attempt('diskBytes', facts.diskBytes, diskBytes, async () =>
    lackOf(await growDisk(parts, facts.diskBytes, diskBytes, signal), diskBytes),
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

/** The guest may use more than at the look that the plan was made by; then nothing is done by halves. */
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

/** The image has a rule that does it; the guest may be slow to follow it, or of an image without it. */
const ONLINE = `for switch in /sys/devices/system/cpu/cpu[0-9]*/online; do
  [ "$(cat "$switch")" != 0 ] || echo 1 >"$switch"
done
getconf _NPROCESSORS_ONLN
`;

/**
 * Plugs in processors until there are `count`, and waits until the guest uses them. There is no way back: QEMU hangs for good some
 * time after a processor was taken away (real components, 3.5).
 * @throws RdError `ERR_DRIVER_FAILED` for fewer than there are, when QEMU refuses or the guest does not use them, `ERR_CANCELLED`.
 */
async function setProcessors(parts: LiveParts, before: MachineFacts['cpus'], count: number, signal: AbortSignal) {
  const { monitor, guest, pace } = parts;
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
  const used = await settled(pace, look, (value) => value >= count, signal);
  if (used >= count) return;
  throw new RdError('ERR_DRIVER_FAILED', `the guest uses ${used} of ${count} processors`, {
    advice: 'It is tried again. When that does not help, stop and start the machine.',
  });
}

function idOf(place: JsonObject): string {
  return `cpu-${numbers(place).join('-')}`;
}

/** From the first socket to the last, so that the guest numbers them as it would have at its start. */
function byPlace(one: CpuSlot, other: CpuSlot): number {
  const [a, b] = [numbers(one.place), numbers(other.place)];
  const index = a.findIndex((value, at) => value !== b[at]);
  return index === -1 ? 0 : (a[index] ?? 0) - (b[index] ?? 0);
}

function numbers(place: JsonObject): number[] {
  return ['socket-id', 'die-id', 'core-id', 'thread-id'].map((name) => Number(place[name] ?? 0));
}
