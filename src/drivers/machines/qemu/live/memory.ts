import { RdError } from '../../../../errors.ts';
import type { JsonObject } from '../../../../json.ts';
import { STATS_S } from '../arguments.ts';
import { BALLOON_PATH, type MachineFacts, readFacts } from './facts.ts';
import type { LiveParts } from './live-parts.ts';
import { gibText } from './room.ts';
import { pollUntilSettled } from './settled.ts';

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
export async function setMemory(parts: LiveParts, before: MachineFacts['memory'], bytes: number, signal: AbortSignal) {
  const { guest, clock } = parts;
  const look = async () => totalIn((await guest.run(['sh', '-s'], { input: USE, signal })).stdout);
  const total = await look();
  const lack = bytes - before.whole;
  if (lack > 0) await hotPlug(parts, lack, signal);
  const actual = await balloon(parts, bytes, signal);
  if (actual > bytes) {
    const again = await balloon(parts, before.bytes, signal);
    throw new RdError(
      'ERR_DRIVER_FAILED',
      `the guest gives up memory down to ${gibText(actual)} and not to ${gibText(bytes)}`,
      {
        advice: `It has ${gibText(again)} now. End containers that use memory, or stop and start the machine.`,
      },
    );
  }
  const gained = bytes - before.bytes;
  const kept = KEPT_BYTES + Math.max(before.whole, bytes) * KEPT_PART;
  const least = Math.max(bytes - kept, total + gained - Math.abs(gained) * KEPT_PART);
  const seen = await pollUntilSettled(clock, look, (value) => value >= least, signal);
  if (seen >= least) return awaitStatistics(parts, signal);
  throw new RdError('ERR_DRIVER_FAILED', `the guest uses ${gibText(seen)} of the ${gibText(bytes)} that it was given`, {
    advice: 'It is tried again. When that does not help, stop and start the machine.',
  });
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
    const text = `the memory of the guest is still changing, has come to ${gibText(seen)} and is to be ${gibText(bytes)}`;
    throw new RdError('ERR_CANCELLED', text, {
      cause,
      advice: 'The guest goes on with it. Wait a while and run `rdctl apply` again, or stop and start the machine.',
    });
  });
}

/** All shared memory (shmem) of the guest, in bytes. */
function totalIn(text: string): number {
  const [, kib] = /^MemTotal:\s+(\d+) kB$/m.exec(text) ?? [];
  if (kib === undefined) throw new RdError('ERR_DRIVER_FAILED', 'the guest does not tell how much memory it has');
  return Number(kib) * 1024;
}
