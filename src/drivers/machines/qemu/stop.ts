import { rm } from 'node:fs/promises';
import { RdError } from '../../../errors.ts';
import { stopDaemon } from '../../../process/daemon.ts';
import type { MachineParts } from './parts.ts';
import { readQemuRecord, writeQemuRecord } from './record.ts';
import { removeRuntime } from './runtime.ts';

const POWER_DOWN_MS = 45_000;
const QUIT_MS = 10_000;
const POLL_MS = 100;

/** Ends the guest as gently as it lets us: by its power button, then by QEMU's own end, then by a kill. Harmless when nothing is there. */
export async function stopMachine(parts: MachineParts, signal: AbortSignal): Promise<void> {
  const { places, guest, monitor, ports, pace, isAlive } = parts;
  const known = await readQemuRecord(places.record);
  const record = known === 'damaged' ? undefined : known;
  await ports.forget();
  if (await isAlive()) {
    // A guest that does not run would not see the button.
    if (record?.booted && (await monitor.status(signal)) === 'running') await powerDown(parts, signal);
    // QEMU flushes its disks; it may end before it has answered.
    if (await isAlive()) {
      await monitor.use((qmp) => qmp.execute('quit', undefined, { signal }), signal).catch(() => undefined);
    }
  }
  await stopDaemon(places.qemuRecord, { graceMs: QUIT_MS, pace, signal });
  await guest.close();
  await removeRuntime(places);
  if (record) await writeQemuRecord(places.record, { ...record, power: 'off', booted: false });
  else await rm(places.record, { force: true });
}

/** Asks the guest to end as a power button does, and waits. */
async function powerDown({ monitor, pace, log, isAlive }: MachineParts, signal: AbortSignal): Promise<void> {
  const asked = await monitor
    .use((qmp) => qmp.execute('system_powerdown', undefined, { signal }), signal)
    .then(
      () => true,
      (error: unknown) => {
        if (signal.aborted) throw error;
        return false;
      },
    );
  if (!asked) return;
  const deadline = pace.now() + POWER_DOWN_MS;
  while ((await isAlive()) && pace.now() < deadline) {
    if (signal.aborted) throw new RdError('ERR_CANCELLED', 'stopping the guest was cancelled');
    await pace.sleep(POLL_MS, signal);
  }
  if (await isAlive()) log('warn', 'the guest does not power down, and is ended', {});
}
