import { randomBytes } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { RdError } from '../../../../errors.ts';
import type { GuestImage } from '../../../../guest-images/image.ts';
import { startDaemon } from '../../../../process/daemon.ts';
import { type QemuArguments, qemuArguments } from '../arguments.ts';
import { qemuFailed } from '../failure.ts';
import type { MachineParts } from '../parts.ts';
import type { Phases } from '../phases.ts';
import type { FrozenState } from './manifest.ts';
import { frozenPlaces, ROOT, STATE } from './places.ts';
import { WAKE_SCRIPT } from './scripts.ts';
import { reachState, refuseOther, sendState, sumOf } from './transfer.ts';

/** Memory comes as fast as the disk gives it. */
const LOAD_MS = 60_000;
/** Nothing has to start in the guest; what it answers with is there. */
const ANSWER_MS = 45_000;
/** A file system that was not unmounted is checked first, and a large one takes its time. */
const WAKE_MS = 240_000;
const POLL_MS = 25;

/**
 * Brings the guest of a frozen state back, in a QEMU of the same machine: its memory, over a fresh layer of its root disk. The guest
 * goes on only when every byte of both is the one that was written, and only then does it see the data disk.
 * @throws RdError `ERR_DRIVER_FAILED` when anything is not as it was, with QEMU still there or not; `ERR_CANCELLED`.
 */
export async function resumeMachine(
  parts: MachineParts,
  image: GuestImage,
  argv: QemuArguments,
  frozen: FrozenState,
  phases: Phases,
  signal: AbortSignal,
): Promise<void> {
  const { places, logFile, environment, guest, monitor, run, pace, isAlive } = parts;
  const { directory, layer, socket } = frozenPlaces(places);
  const root = join(directory, ROOT);
  await rm(layer, { force: true });
  await rm(socket, { force: true });
  await run(
    ['qemu-img', 'create', '-q', '-u', '-f', 'qcow2', '-b', root, '-F', 'qcow2', layer, String(image.rootBytes)],
    {
      signal,
    },
  );
  const below = [root, join(image.directory, image.files.disk.name)];
  const words = qemuArguments({ ...argv, places: { ...places, disk: layer }, below });
  await startDaemon({
    argv: [...words, '-S', '-incoming', `unix:${socket}`],
    recordFile: places.qemuRecord,
    logFile,
    env: environment,
  });
  // Also a limit for what hands the state over: QEMU may take no more of it.
  const limit = AbortSignal.any([signal, AbortSignal.timeout(LOAD_MS)]);
  const deadline = pace.now() + LOAD_MS;
  const until = async <T>(look: () => Promise<T | undefined>, what: string): Promise<T> => {
    for (;;) {
      const found = await look();
      if (found !== undefined) return found;
      signal.throwIfAborted();
      if (!(await isAlive())) throw await qemuFailed(logFile);
      if (pace.now() > deadline) throw new RdError('ERR_DRIVER_FAILED', `QEMU does not ${what}`);
      await pace.sleep(POLL_MS, signal);
    }
  };
  const rootSum = sumOf(root, limit);
  rootSum.catch(() => undefined);
  const line = await until(() => reachState(socket, limit), 'listen for its state');
  const sum = await sendState(join(directory, STATE), line, limit).catch(async (error: unknown) => {
    signal.throwIfAborted();
    // What QEMU says when it refuses is better than that it hung up.
    throw (await isAlive()) ? error : await qemuFailed(logFile, error);
  });
  refuseOther('the memory', sum, frozen.state);
  refuseOther('the root disk', await rootSum, frozen.root);
  await until(async () => ((await monitor.status(signal)) === 'paused' ? true : undefined), 'take its state');
  phases.end('state');
  await monitor.use((qmp) => qmp.execute('cont', undefined, { signal }), signal);
  await guest.connect(ANSWER_MS, isAlive, signal);
  phases.end('connection');
  const now = (Date.now() / 1000).toFixed(3);
  const hostname = (await readFile(places.hostname, 'utf8')).trim();
  const input = randomBytes(64);
  await guest.run(['sh', '-c', WAKE_SCRIPT, 'wake', now, hostname], { input, timeoutMs: WAKE_MS, signal });
  phases.end('data disk');
}
