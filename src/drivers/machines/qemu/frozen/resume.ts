import { randomBytes } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, RdError } from '../../../../errors.ts';
import { lastLines } from '../../../../os/run.ts';
import type { MachineStart } from '../../../driver.ts';
import type { GuestImage } from '../../../guest-images/image.ts';
import type { QemuArguments } from '../arguments.ts';
import { launchQemu } from '../launch.ts';
import type { MachineParts } from '../parts.ts';
import { qemuFailed } from '../parts.ts';
import type { Phases } from '../record.ts';
import { NO_DATA, WAKE_SCRIPT } from '../setup-scripts.ts';
import { slowness } from '../slowness.ts';
import type { FileDigest, FrozenState } from './state.ts';
import { frozenPlaces, ROOT, STATE } from './state.ts';
import { connectToReceiver, digestFile, sendState, verifyDigest } from './transfer.ts';

/** Memory loads at disk speed. */
const LOAD_MS = 60_000;
/** Short, because the guest's ssh server is already running; longer on a slow computer. */
const CONNECT_MS = 45_000;
/** A file system that was not unmounted is checked first; a large one needs nearly the whole start timeout. */
const WAKE_MS = 480_000;
const POLL_MS = 25;
/** QEMU's errors about a state that it rejects. */
const REFUSAL = /error while loading state|load of migration failed/;
/** e2fsck's message about damage that it does not repair automatically. */
const DAMAGE = /UNEXPECTED INCONSISTENCY/;

/**
 * The end of a resume. `settled`: output of the settle script. `unusable`: the state must be removed; any other failure may be temporary, so the
 * state is kept.
 */
export type Resume = { how: 'resumed'; settled: string } | { how: 'failed'; unusable: boolean; why: string };

/**
 * Restores the guest from a frozen state in a QEMU of the same machine: its memory, over a fresh layer of its root disk. The guest runs only after
 * both digests match, and only then gets the data disk. After a failure QEMU may still be running.
 * @throws RdError for failures that a boot would meet too: `ERR_DRIVER_TERMINAL` when the file system of the data disk is damaged,
 * `ERR_DRIVER_FAILED` when its check times out; `ERR_CANCELLED`.
 */
export async function resumeMachine(
  parts: MachineParts,
  image: GuestImage,
  argv: QemuArguments,
  frozen: FrozenState,
  { phases, before }: { phases: Phases /** The previous start. */; before: MachineStart | undefined },
  signal: AbortSignal,
): Promise<Resume> {
  const { places, guest, monitor, clock, isAlive } = parts;
  const failed = (error: unknown, unusable: boolean): Resume => {
    signal.throwIfAborted();
    return { how: 'failed', unusable, why: messageOf(error) };
  };
  let digests: { memory: FileDigest; root: FileDigest };
  try {
    digests = await loadState(parts, image, argv, signal);
  } catch (error) {
    return failed(error, error instanceof RdError && REFUSAL.test(error.message));
  }
  try {
    verifyDigest('the memory', digests.memory, frozen.state);
    verifyDigest('the root disk', digests.root, frozen.root);
  } catch (error) {
    return failed(error, true);
  }
  phases.end('state');
  let begun = clock.now();
  let woken: { exitCode: number; stdout: string; stderr: string };
  try {
    await monitor.use((qmp) => qmp.execute('cont', undefined, { signal }), signal);
    await guest.connect(Math.round(CONNECT_MS * slowness(before)), isAlive, signal, 'up');
    phases.end('connection');
    const now = (Date.now() / 1000).toFixed(3);
    const hostname = (await readFile(places.hostname, 'utf8')).trim();
    begun = clock.now();
    woken = await guest.run(['sh', '-c', WAKE_SCRIPT, 'wake', now, hostname], {
      input: randomBytes(64),
      timeoutMs: WAKE_MS,
      accept: [0, NO_DATA],
      signal,
    });
  } catch (error) {
    if (!signal.aborted && clock.now() - begun >= WAKE_MS - POLL_MS) throw checkTimedOut(error);
    // A guest with an unexpected response is not the one that was frozen. If QEMU was killed, its state is unknown.
    return failed(error, await isAlive());
  }
  phases.end('data disk and network');
  if (woken.exitCode === 0) return { how: 'resumed', settled: woken.stdout };
  const lines = lastLines(woken.stderr);
  if (lines.some((line) => DAMAGE.test(line))) throw damageError(places.data, lines);
  return failed(new Error(`the guest cannot mount its data disk: ${lines.at(-1) ?? 'no reason given'}`), false);
}

/**
 * Starts QEMU and sends it the state; the guest is then loaded and halted.
 * @returns the digests of the sent files.
 */
async function loadState(
  parts: MachineParts,
  image: GuestImage,
  argv: QemuArguments,
  signal: AbortSignal,
): Promise<{ memory: FileDigest; root: FileDigest }> {
  const { places, logFile, monitor, run, clock, isAlive } = parts;
  const { directory, layer, socket } = frozenPlaces(places);
  const root = join(directory, ROOT);
  await rm(layer, { force: true });
  await rm(socket, { force: true });
  const size = String(image.rootBytes);
  await run(['qemu-img', 'create', '-q', '-u', '-f', 'qcow2', '-b', root, '-F', 'qcow2', layer, size], {
    access: { reads: [root], writes: [layer] },
    signal,
  });
  const backingFiles = [root, join(image.directory, image.files.disk.name)];
  await launchQemu(parts, { ...argv, places: { ...places, disk: layer }, backingFiles }, [
    '-S',
    '-incoming',
    `unix:${socket}`,
  ]);
  // Also limits sending, because QEMU may stop reading.
  const limit = AbortSignal.any([signal, AbortSignal.timeout(LOAD_MS)]);
  const deadline = clock.now() + LOAD_MS;
  const waitFor = async <T>(attempt: () => Promise<T | undefined>, what: string): Promise<T> => {
    for (;;) {
      const found = await attempt();
      if (found !== undefined) return found;
      signal.throwIfAborted();
      if (!(await isAlive())) throw await qemuFailed(logFile);
      if (clock.now() > deadline) throw new RdError('ERR_DRIVER_FAILED', `QEMU does not ${what}`);
      await clock.sleep(POLL_MS, signal);
    }
  };
  const rootSum = digestFile(root, limit);
  rootSum.catch(() => undefined);
  const line = await waitFor(() => connectToReceiver(socket, limit), 'listen for its state');
  const memory = await sendState(join(directory, STATE), line, limit).catch(async (error: unknown) => {
    signal.throwIfAborted();
    // QEMU's own error is more useful than a closed connection.
    throw (await isAlive()) ? error : await qemuFailed(logFile, undefined, error);
  });
  await waitFor(async () => ((await monitor.status(signal)) === 'paused' ? true : undefined), 'take its state');
  return { memory, root: await rootSum };
}

function damageError(data: string, details: readonly string[]): RdError {
  return new RdError('ERR_DRIVER_TERMINAL', `the file system on the data disk ${data} is damaged`, {
    details,
    advice: 'Restore a snapshot, or repair a copy of the disk with e2fsck. The disk was not mounted.',
  });
}

function checkTimedOut(cause: unknown): RdError {
  const limit = `${WAKE_MS / 60_000} minutes`;
  return new RdError('ERR_DRIVER_FAILED', `the guest did not mount its data disk within ${limit}`, {
    cause,
    advice: 'Most likely a check of its file system takes too long, and starts over each time. Restore a snapshot.',
  });
}
