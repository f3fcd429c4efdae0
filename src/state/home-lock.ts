import { closeSync, fsyncSync, openSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { RdError } from '../errors.ts';
import type { FileOperations } from '../os/atomic-file.ts';
import { makeDirectory } from '../os/directory.ts';
import { homeMovedError, placeOf, placeStatus } from '../os/directory-identity.ts';
import { ioError, systemCode } from '../os/io-error.ts';
import type { ProcessIdentity } from '../os/process-list.ts';
import { type ProcessTable, processTable } from '../os/process-table.ts';
import { isThere } from '../os/regular-file.ts';
import { SerialQueue } from '../os/serial-queue.ts';
import { type Entry, type Holder, readableEntry, readEntry } from './lock-entry.ts';
import { isFull, reserveBeside } from './reserve.ts';

export interface Lock {
  /** Adds facts that became known after the lock was taken. */
  update(facts: Pick<Holder, 'port' | 'version' | 'revision' | 'announced' | 'idle' | 'ending'>): Promise<void>;
  /** Releases the lock. Idempotent. */
  release(): Promise<void>;
  /** Releases the lock, recording that the backend did not stop: the next reader sees that, as after a killed service. */
  leave(): Promise<void>;
}

/** Time and processes, replaced in tests. */
export interface LockEnvironment {
  processes: ProcessTable;
  now(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

const REAL: LockEnvironment = {
  processes: processTable,
  now: Date.now,
  async sleep(ms, signal) {
    await delay(ms, undefined, signal ? { signal } : {});
  },
};

const POLL_MS = 100;
/** Rounds in which two concurrent attempts back off for each other. */
const ROUNDS = 50;

/**
 * Takes a lock for a short time, or returns its holder.
 * @throws RdError with the errors of `lockHome`, except for a live holder.
 */
export async function tryLock(directory: string): Promise<{ lock: Lock } | { holder: ProcessIdentity }> {
  return take(directory, REAL);
}

/**
 * Takes the lock that one service per home holds for its lifetime.
 * @throws RdError `ERR_ALREADY_RUNNING` naming pid and port of the holder, `ERR_HOME_MOVED` when a live holder took the lock in a directory
 *   that was moved since.
 */
export async function lockHome(directory: string, home: string, system: LockEnvironment = REAL): Promise<Lock> {
  const outcome = await take(directory, system);
  if ('lock' in outcome) return outcome.lock;
  const { pid, port } = outcome.holder;
  const where = port === undefined ? `pid ${pid}` : `pid ${pid}, port ${port}`;
  throw new RdError('ERR_ALREADY_RUNNING', `a service for ${home} is already running (${where})`, {
    advice: 'Use it, stop it with `rdctl shutdown`, or set RDCTL_HOME to another directory to run a second one.',
  });
}

/** A lock holder, read only. */
export interface LockHolder extends Omit<Holder, 'since' | 'at'> {
  /** When the lock was taken, RFC 3339. */
  startedAt?: string;
  /** False when the process ended without a release, as after kill -9, and when its backend did not stop. */
  alive: boolean;
  /** For a dead holder: the original lock directory, which has been moved since. */
  movedFrom?: string;
}

/**
 * Returns the holder of the lock in `directory`: the live one, else a dead one that left its file, or undefined if the lock is free. Changes nothing
 * on the disk; ignores unrelated files and copies from another lock.
 * @throws RdError `ERR_IO` when the directory cannot be read, `ERR_HOME_MOVED` when the holder took it in another directory that was moved here.
 */
export async function lockHolder(
  directory: string,
  processes: Pick<ProcessTable, 'isAlive'> = processTable,
): Promise<LockHolder | undefined> {
  let dead: LockHolder | undefined;
  for (const name of namesIn(directory).filter((each) => each.endsWith('.json'))) {
    const entry = readableEntry(directory, name);
    if (!entry?.held) continue;
    const { name: _, held: __, since: startedAt, at, ...facts } = entry;
    const place = placeStatus(at, directory);
    if (place === 'copied') continue;
    const holder = { ...facts, startedAt };
    if (!entry.left && (await processes.isAlive(entry))) {
      if (at && place === 'moved') throw homeMovedError(at.path, directory, { pid: entry.pid, alive: true });
      return { ...holder, alive: true };
    }
    dead = { ...holder, alive: false, ...(at && place === 'moved' ? { movedFrom: at.path } : {}) };
  }
  return dead;
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (cause) {
    if (systemCode(cause) === 'ENOENT' || systemCode(cause) === 'ENOTDIR') return [];
    throw ioError('read the lock', directory, cause);
  }
}

export interface WaitOptions {
  timeoutMs: number;
  /** Called once, if another process holds the lock. */
  onWait?: (holder: Holder) => void;
  signal?: AbortSignal;
}

/**
 * Takes the lock that one `apply` holds at a time, and waits for its holder.
 * @throws RdError `ERR_DEADLINE` naming the holder at the timeout, `ERR_CANCELLED` by the signal.
 */
export async function lockApply(
  directory: string,
  options: WaitOptions,
  system: LockEnvironment = REAL,
): Promise<Lock> {
  const deadline = system.now() + options.timeoutMs;
  let isWaiting = false;
  for (;;) {
    const outcome = await take(directory, system);
    if ('lock' in outcome) return outcome.lock;
    const left = deadline - system.now();
    if (left <= 0) {
      const { pid, since } = outcome.holder;
      throw new RdError('ERR_DEADLINE', `another apply (pid ${pid}, since ${since}) did not finish in time`, {
        advice: 'Wait for it, or use a longer --timeout.',
      });
    }
    if (!isWaiting) options.onWait?.(outcome.holder);
    isWaiting = true;
    await system.sleep(Math.min(POLL_MS, left), options.signal).catch((cause: unknown) => {
      if (!options.signal?.aborted) throw cause;
      throw new RdError('ERR_CANCELLED', 'waiting for another apply was canceled', { cause });
    });
  }
}

/**
 * Takes a lock. It is a directory with one file per process that holds or wants it; a process holds it if it finds no other live one after its own
 * file is in place. Names are never reused, so that removing the file of a dead process can never hit that of a live one; a single lock file could
 * not be taken over without that race.
 */
async function take(directory: string, system: LockEnvironment): Promise<{ lock: Lock } | { holder: Holder }> {
  const self = await system.processes.self();
  await makeDirectory(directory);
  const at = placeOf(directory);
  const base = { ...self, since: new Date(system.now()).toISOString(), ...(at ? { at } : {}) };
  for (let round = 0; ; round += 1) {
    const name = `${self.pid}-${unique()}.json`;
    const path = join(directory, name);
    await announce(path, { ...base, held: false });
    const all = await living(directory, system).catch(async (error: unknown) => {
      await remove(path);
      throw error;
    });
    const others = all.filter((entry) => entry.name !== name);
    if (others.length === 0) {
      await announce(path, { ...base, held: true });
      return { lock: lockOf(path, base) };
    }
    await remove(path);
    const holder = others.find((entry) => entry.held) ?? (round >= ROUNDS ? others[0] : undefined);
    if (holder) return { holder };
    // Only other contenders: back off for a random delay.
    await system.sleep(1 + Math.random() * 64);
  }
}

/**
 * Returns 16 hexadecimal digits that neither this process nor an earlier one with the same pid has used: the time, and nanoseconds. They are no
 * secret, and loading the system's generator would take longer than the rest of the lock.
 */
function unique(): string {
  const nanoseconds = (process.hrtime.bigint() & 0xff_ffffn).toString(16).padStart(6, '0');
  return `${Math.floor(Date.now() / 16)
    .toString(16)
    .padStart(10, '0')
    .slice(-10)}${nanoseconds}`;
}

function lockOf(path: string, base: Holder): Lock {
  let released = false;
  let known = base;
  /** Writes are serialized: no older content may come last, nor any content after the release. */
  const writes = new SerialQueue();
  return {
    async update(facts) {
      if (released) return;
      const content = { ...known, ...facts };
      known = content;
      await writes.run(() => announce(path, { ...content, held: true }));
    },
    async release() {
      if (released) return;
      released = true;
      await writes.run(() => remove(path));
    },
    async leave() {
      if (released) return;
      released = true;
      await writes.run(() => announce(path, { ...known, held: true, left: true }));
    },
  };
}

/** Writes the file of this process. Must work on a full disk too: recording a stop, and cleaning up after one, must always succeed. */
async function announce(path: string, content: Omit<Entry, 'name'>): Promise<void> {
  const temporary = `${path}.${unique().slice(-8)}`;
  const operations = reserveBeside(dirname(path));
  try {
    await makeDirectory(dirname(path));
    await writeNew(operations, temporary, `${JSON.stringify(content)}\n`);
    await operations.rename(temporary, path);
  } catch (cause) {
    await operations.unlink(temporary).catch(() => undefined);
    throw ioError('create the lock', path, cause);
  }
}

/**
 * Writes a new file, synchronously if there is room: through the thread pool, taking the lock takes as long as everything else that an apply without
 * changes does.
 */
async function writeNew(reserve: FileOperations, path: string, text: string): Promise<void> {
  try {
    const file = openSync(path, 'wx', 0o600);
    try {
      writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if (!isFull(error)) throw error;
    rmSync(path, { force: true });
    await reserve.writeNew(path, text, 0o600);
  }
}

async function remove(path: string): Promise<void> {
  await reserveBeside(dirname(path))
    .unlink(path)
    .catch((error: unknown) => {
      if (systemCode(error) !== 'ENOENT') throw ioError('remove the lock', path, error);
    });
}

/**
 * Removes the files of dead processes from the lock that one `apply` holds at a time. Holders and waiters are unaffected.
 * @throws RdError `ERR_IO`.
 */
export async function sweepLock(directory: string, system: LockEnvironment = REAL): Promise<void> {
  if (await isThere(directory)) await living(directory, system);
}

/** Name of a temporary file of `announce`, with the pid of its writer. */
const DRAFT = /^(\d+)-[0-9a-f]{16}\.json\.[0-9a-f]{8}$/;

/** Returns the entries of live processes of this home. Removes others on the way: foreign and partial files, and copies from another home. */
async function living(directory: string, system: LockEnvironment): Promise<Entry[]> {
  const names = readdirSync(directory);
  for (const name of names) {
    const writer = Number(DRAFT.exec(name)?.[1] ?? Number.NaN);
    if (writer > 0 && !(await system.processes.isAlive({ pid: writer }))) await remove(join(directory, name));
  }
  const entries: Entry[] = [];
  for (const name of names.filter((each) => each.endsWith('.json'))) {
    const entry = await entryOrDamaged(directory, name, system);
    if (entry === 'damaged') await remove(join(directory, name));
    // The file is gone in the meantime.
    if (!entry || entry === 'damaged') continue;
    const place = placeStatus(entry.at, directory);
    if (place !== 'copied' && !entry.left && (await system.processes.isAlive(entry))) {
      if (entry.at && place === 'moved')
        throw homeMovedError(entry.at.path, directory, { pid: entry.pid, alive: true });
      entries.push(entry);
    } else await remove(join(directory, name));
  }
  return entries;
}

/** Name of an entry, with the pid of its writer. */
const ENTRY = /^(\d+)-[0-9a-f]{16}\.json$/;

/**
 * Reads an entry. Returns `damaged` for one that is ours by its name, cannot be read, and whose process has ended. Throws the errors of `readEntry`
 * for any other.
 */
async function entryOrDamaged(directory: string, name: string, system: LockEnvironment) {
  try {
    return readEntry(directory, name);
  } catch (error) {
    const writer = Number(ENTRY.exec(name)?.[1] ?? Number.NaN);
    if (writer > 0 && !(await system.processes.isAlive({ pid: writer }))) return 'damaged';
    throw error;
  }
}
