import { RdError } from '../../../../errors.ts';
import type { JsonObject } from '../../../../json.ts';
import type { CpuSlot, MachineFacts } from './facts.ts';
import type { LiveParts } from './live-parts.ts';
import { settled } from './settled.ts';

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
export async function setProcessors(
  parts: LiveParts,
  before: MachineFacts['cpus'],
  count: number,
  signal: AbortSignal,
) {
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
