import { chmod, mkdir, rename, rm, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { messageOf, RdError } from '../../../../errors.ts';
import { isObject, type JsonValue } from '../../../../json.ts';
import { findDaemon } from '../../../../os/daemon.ts';
import type { MachineParts } from '../parts.ts';
import { CANNOT, END_SESSIONS_SCRIPT, GIVE_BACK_SCRIPT, SHARES } from '../setup-scripts.ts';
import { type FileDigest, type FrozenPlaces, frozenPlaces, ROOT, STATE, writeFrozen } from './state.ts';
import { digestFile, receiveState } from './transfer.ts';

type FreezeParts = Pick<MachineParts, 'places' | 'guest' | 'monitor' | 'clock' | 'log'>;

/** Includes flushing a full guest cache to disk. */
const RELEASE_MS = 30_000;
const SESSIONS_MS = 5_000;
const SAVE_MS = 45_000;
const POLL_MS = 50;
/** QEMU limits migration to 128 MiB a second by default; nothing else uses this channel. */
const BYTES_PER_SECOND = 2 ** 40;

/**
 * Makes the guest release the data disk and end all sessions, including this connection.
 * @returns the reason that it refuses, as a clause.
 * @throws RdError `ERR_CANCELLED`.
 */
export async function releaseData(parts: FreezeParts, signal: AbortSignal): Promise<string | undefined> {
  const { guest, places, clock } = parts;
  try {
    const { exitCode, stderr } = await guest.run(['sh', '-s'], {
      input: GIVE_BACK_SCRIPT,
      timeoutMs: RELEASE_MS,
      accept: Array.from({ length: 128 }, (_, status) => status),
      signal,
    });
    if (exitCode === CANNOT) return 'its image does not support it';
    if (exitCode === SHARES) return 'host directories are mounted in it';
    if (exitCode !== 0) return `the data disk is in use: ${stderr.trim()}`;
    // The script ends its own connection, which is expected.
    await guest.run(['sh', '-s'], { input: END_SESSIONS_SCRIPT, signal }).catch((error: unknown) => {
      if (signal.aborted) throw error;
    });
    const deadline = clock.now() + SESSIONS_MS;
    while ((await findDaemon(places.sshRecord)).state === 'running') {
      if (clock.now() > deadline) return 'the connection to it does not close';
      await clock.sleep(POLL_MS, signal);
    }
  } catch (error) {
    if (signal.aborted) throw error;
    return messageOf(error);
  }
}

/** A state being written to its file. */
export interface FrozenDraft {
  /** Resolves once QEMU has sent everything and closed its end. */
  received: Promise<FileDigest>;
  discard(): Promise<void>;
}

/**
 * Halts the guest and makes QEMU save its memory and devices. The caller then ends QEMU.
 * @throws RdError `ERR_DRIVER_FAILED` on failure; the guest then continues and no files remain. `ERR_CANCELLED`.
 */
export async function saveState(
  { places, monitor, clock }: FreezeParts,
  memoryGiB: number,
  signal: AbortSignal,
): Promise<FrozenDraft> {
  const { draft, socket } = frozenPlaces(places);
  // A partial state left by a kill takes up space.
  await rm(draft, { recursive: true, force: true });
  await refuseFullDisk(dirname(draft), memoryGiB * 2 ** 30);
  await mkdir(draft, { mode: 0o700 });
  const receiver = await receiveState(socket, join(draft, STATE));
  const discard = async () => {
    await receiver.close();
    await rm(draft, { recursive: true, force: true });
  };
  try {
    await monitor.use(async (qmp) => {
      const before = await qmp.execute('query-migrate', undefined, { signal });
      const [blocker] = isObject(before) && Array.isArray(before['blocked-reasons']) ? before['blocked-reasons'] : [];
      if (blocker !== undefined) throw new RdError('ERR_DRIVER_FAILED', `QEMU cannot save it: ${String(blocker)}`);
      await qmp.execute('stop', undefined, { signal });
      try {
        await qmp.execute('migrate-set-parameters', { 'max-bandwidth': BYTES_PER_SECOND }, { signal });
        await qmp.execute('migrate', { uri: `unix:${socket}` }, { signal });
        const deadline = clock.now() + SAVE_MS;
        for (;;) {
          const progress = progressOf(await qmp.execute('query-migrate', undefined, { signal }));
          if (progress === 'completed') return;
          if (progress !== 'going on' || clock.now() > deadline) {
            const why = progress === 'going on' ? `it takes more than ${SAVE_MS / 1000} s` : progress;
            throw new RdError('ERR_DRIVER_FAILED', `QEMU did not save its state: ${why}`);
          }
          await clock.sleep(POLL_MS, signal);
        }
      } catch (error) {
        await qmp.execute('migrate_cancel').catch(() => undefined);
        await qmp.execute('cont').catch(() => undefined);
        throw error;
      }
    }, signal);
  } catch (error) {
    await discard();
    throw error;
  }
  return { received: receiver.received, discard };
}

/**
 * Throws if the directory has less than `bytes` of free space. Most states are much smaller than the memory, but the size is not known in advance,
 * and other files need the disk too.
 */
async function refuseFullDisk(directory: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  if (bavail * bsize >= bytes) return;
  throw new RdError('ERR_DRIVER_FAILED', `${directory} has less free space than the machine's memory may need`);
}

/**
 * Replaces the frozen state with the draft and the matching root disk. QEMU has ended.
 * @throws on failure; nothing is left then, and the root disk must be recreated.
 */
export async function keepFrozen(parts: Pick<FreezeParts, 'places'>, saved: FrozenDraft, key: string): Promise<void> {
  const { places } = parts;
  const { directory, draft } = frozenPlaces(places);
  try {
    const state = await saved.received;
    const root = join(draft, ROOT);
    // The next boot creates another one.
    await rename(places.disk, root);
    await chmod(root, 0o600);
    await writeFrozen(draft, { key, state, root: await digestFile(root) });
    await rm(directory, { recursive: true, force: true });
    await rename(draft, directory);
  } catch (error) {
    await saved.discard();
    throw error;
  }
}

/** Removes a frozen state and partial ones after a kill. */
export async function removeFrozen(places: FrozenPlaces): Promise<void> {
  for (const path of [places.directory, places.draft]) await rm(path, { recursive: true, force: true });
}

function progressOf(answer: JsonValue): string {
  if (!isObject(answer)) return 'it does not report its progress';
  const { status } = answer;
  if (status === 'failed' || status === 'cancelled') return String(answer['error-desc'] ?? status);
  return status === 'completed' ? 'completed' : 'going on';
}
