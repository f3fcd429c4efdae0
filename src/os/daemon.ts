import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rename, rm, writeFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import { RdError } from '../errors.ts';
import type { Clock } from './clock.ts';
import { makeDirectory } from './directory.ts';
import { parsePlace, placeOf, placeStatus } from './directory-identity.ts';
import type { ProcessEntry, ProcessKey } from './process-list.ts';
import { readProcess, readProcesses, signalProcess } from './process-table.ts';
import { installAdvice } from './program.ts';
import { openLog } from './program-log.ts';
import { readableRecord } from './record.ts';
import { socketPair } from './socket-pair.ts';

/** A long-lived program that outlives this process. Its arguments must include a path of its own, which identifies it. */
export interface DaemonSpec {
  argv: readonly string[];
  /** A wrapper with arguments that executes the program, such as `nsenter`. */
  within?: readonly string[];
  /**
   * `within` stays as the parent of the program, and writes `{"child-pid": NUMBER` to descriptor 3 once that has started, as
   * `bwrap --info-fd 3` does. The program outlives it.
   */
  reportsPid?: true;
  /** Path of its record. */
  recordFile: string;
  /** Receives its output, appended and bounded. */
  logFile: string;
  env: Readonly<Record<string, string | undefined>>;
  maxLogBytes?: number;
  /** A program piped to this one in both directions. It ends with its streams, and is not recorded. */
  partner?: readonly string[];
}

/** The state of a recorded program. `ended`: it was started and not stopped, and its process is gone. */
export type DaemonState = { state: 'none' } | { state: 'running'; pid: number } | { state: 'ended' };

/**
 * Spawns the program in a session of its own, unless it runs already. Resolves once it has been spawned, without checking its health.
 * @throws RdError `ERR_DRIVER_TERMINAL` when it is missing, with an install hint, and when the same program runs without a record.
 */
export async function startDaemon(spec: DaemonSpec): Promise<number> {
  const [program = ''] = spec.argv;
  const existing = await findDaemon(spec.recordFile);
  if (existing.state === 'running') return existing.pid;
  if (existing.state === 'none') await refuseUnrecorded(spec);

  // Record the intent first: if this process is killed after the spawn, the program can still be found.
  await writeDaemonRecord(spec.recordFile, { argv: spec.argv });
  const log = await openLog(spec.logFile, spec.maxLogBytes);
  try {
    const { partner } = spec;
    const joint = partner && (await socketPair());
    const children = partner && joint ? spawnJoined(spec, partner, log.fd, joint) : spawnAlone(spec, log.fd);
    // Concurrently, because an event without a listener in time is missed.
    await Promise.all(children.map(waitForSpawn));
    const pid = spec.reportsPid ? await readPid(children[0]) : children[0].pid;
    const entry = pid === undefined ? undefined : await readProcess(pid);
    // A program that exited at once keeps the record of the intent, so that it is found as ended. A program whose process is unknown, or cannot be
    // recorded on a full disk, keeps it too: if it runs, it is found by its arguments.
    if (entry) {
      const known = { argv: spec.argv, process: { pid: entry.pid, started: entry.started } };
      await writeDaemonRecord(spec.recordFile, known).catch(() => undefined);
    }
    return pid ?? 0;
  } catch (cause) {
    await removeDaemonRecord(spec.recordFile);
    const missing = cause instanceof Error && 'code' in cause && cause.code === 'ENOENT';
    const which = missing && 'path' in cause && typeof cause.path === 'string' ? cause.path : program;
    throw new RdError(missing ? 'ERR_DRIVER_TERMINAL' : 'ERR_DRIVER_FAILED', `${which} could not be started`, {
      cause,
      ...(missing ? { advice: installAdvice(which) } : {}),
    });
  } finally {
    await log.close();
  }
}

/**
 * Refuses to start a program that runs without a record, because two instances on the same files would corrupt them. Arguments with a path of its own
 * identify a program.
 */
async function refuseUnrecorded({ argv, recordFile }: DaemonSpec): Promise<void> {
  const entry = await programNow(argv);
  if (entry) throw unrecordedError(entry, recordFile);
}

/** Returns the error for a program that runs on our files without a record of its owner. */
export function unrecordedError({ pid, argv }: ProcessEntry, record: string): RdError {
  return new RdError(
    'ERR_DRIVER_TERMINAL',
    `${argv[0]} (pid ${pid}) is already using the same files, and ${record}, which identifies it, is missing`,
    {
      advice: `The directory was moved or removed while it ran. If you moved it, move it back; otherwise, end the process with \`kill ${pid}\`, and try again.`,
    },
  );
}

function spawnApart(
  { env }: DaemonSpec,
  [program = '', ...args]: readonly string[],
  stdio: StdioOptions,
): ChildProcess {
  return spawn(program, args, { detached: true, cwd: '/', env: { ...env }, stdio });
}

/** Resolves once the program has been spawned, and detaches from it. */
async function waitForSpawn(child: ChildProcess): Promise<void> {
  await once(child, 'spawn');
  // Without a listener a late error, such as a failed signal, would crash this process.
  child.on('error', () => undefined);
  child.unref();
}

function spawnAlone(spec: DaemonSpec, log: number): [ChildProcess] {
  const report = spec.reportsPid ? (['pipe'] as const) : [];
  return [spawnApart(spec, [...(spec.within ?? []), ...spec.argv], ['ignore', log, log, ...report])];
}

/**
 * Returns the process that a wrapper has started, or undefined if the wrapper failed before. All output of the wrapper is read, because closing the
 * pipe early would end it.
 */
async function readPid(wrapper: ChildProcess): Promise<number | undefined> {
  const report = wrapper.stdio[3];
  let text = '';
  if (report instanceof Readable) for await (const chunk of report) text += String(chunk);
  const [, pid] = /"child-pid":\s*(\d+)/.exec(text) ?? [];
  return pid === undefined ? undefined : Number(pid);
}

/** Spawns a program and its partner. Their streams are connected before either runs, so they talk directly, independent of this process. */
function spawnJoined(
  spec: DaemonSpec,
  argv: readonly string[],
  log: number,
  [end, otherEnd]: readonly [Socket, Socket],
): [ChildProcess, ...ChildProcess[]] {
  const partner = spawnApart(spec, argv, [end, end, log]);
  // A missing partner has no process and emits an error; the program is not started then.
  const children: [ChildProcess, ...ChildProcess[]] =
    partner.pid === undefined ? [partner] : [spawnApart(spec, spec.argv, [otherEnd, otherEnd, log]), partner];
  end.destroy();
  otherEnd.destroy();
  return children;
}

/** Looks for the recorded program. A process with only the same pid does not match. */
export async function findDaemon(recordFile: string): Promise<DaemonState> {
  const record = await readDaemonRecord(recordFile);
  if (!record) return { state: 'none' };
  const entry = await processOf(record);
  return entry ? { state: 'running', pid: entry.pid } : { state: 'ended' };
}

async function processOf(record: { argv: readonly string[]; process?: { pid: number; started: string } }) {
  if (record.process) {
    const entry = await readProcess(record.process.pid);
    if (entry?.started !== record.process.started) return undefined;
    // During an exec, as of a script's interpreter, a process briefly has no arguments.
    return entry.argv.length === 0 || isProgram(entry, record.argv) ? entry : undefined;
  }
  return programNow(record.argv);
}

/**
 * Returns the process that runs with these arguments. A wrapper that stays has the arguments of its program at its end, so the program is the one
 * with the fewest.
 */
async function programNow(argv: readonly string[]): Promise<ProcessEntry | undefined> {
  const found = (await readProcesses()).filter((entry) => isProgram(entry, argv));
  return found.sort((one, other) => one.argv.length - other.argv.length)[0];
}

/**
 * True if the process runs the program. It may appear as an interpreter and a path; the arguments stay as given. A program at a path of its own may
 * also overwrite them with `PATH SUBCOMMAND`, as k3s does to hide the rest.
 */
function isProgram(entry: ProcessEntry, argv: readonly string[]): boolean {
  const [program = '', ...args] = argv;
  if (program.startsWith('/') && args.length > 0 && entry.argv[0] === `${program} ${args[0]}`) return true;
  // Not every system shows where an argument ends.
  const [known, own] = [entry.argv, args].map((words) => words.flatMap((word) => word.split(' '))) as [
    string[],
    string[],
  ];
  const tail = known.slice(-own.length);
  return own.length > 0 && tail.length === own.length && own.every((word, index) => word === tail[index]);
}

/** Halts the recorded program (SIGSTOP), or continues it. Returns whether it runs. */
export async function signalDaemon(recordFile: string, signal: 'SIGSTOP' | 'SIGCONT'): Promise<boolean> {
  const record = await readDaemonRecord(recordFile);
  const entry = record && (await processOf(record));
  return entry !== undefined && signalProcess(entry, signal);
}

export interface StopOptions {
  /** Time after SIGTERM until the program is killed. */
  graceMs: number;
  clock: Clock;
  signal?: AbortSignal;
}

const POLL_MS = 50;
/** A killed process ends at once, unless the kernel blocks it (a dead network file system). */
const KILL_MS = 15_000;
/** A wrapper that stays ends on its own, a moment after its program. */
const WRAPPER_MS = 5_000;

/**
 * Stops the recorded program: SIGTERM, SIGKILL after the grace period. The record is removed once the process and its wrapper are gone. Idempotent.
 * @returns the way that it ended.
 * @throws RdError `ERR_DRIVER_FAILED` when it survives a kill; `ERR_CANCELLED` when the signal aborts.
 */
export async function stopDaemon(recordFile: string, options: StopOptions): Promise<'none' | 'stopped' | 'killed'> {
  const record = await readDaemonRecord(recordFile);
  const entry = record && (await processOf(record));
  let how: 'none' | 'stopped' | 'killed' = 'none';
  if (entry) {
    how = 'stopped';
    await signalProcess(entry, 'SIGTERM');
    if (!(await gone(entry, options.graceMs, options))) {
      how = 'killed';
      await signalProcess(entry, 'SIGKILL');
      if (!(await gone(entry, KILL_MS, options))) {
        throw new RdError(
          'ERR_DRIVER_FAILED',
          `${record?.argv[0] ?? 'the program'} (pid ${entry.pid}) cannot be ended`,
          {
            advice:
              'It is stuck in the kernel, most likely in a file system that does not respond; if it stays, restart the machine.',
          },
        );
      }
    }
  }
  const wrapper = record && (await programNow(record.argv));
  if (wrapper) await gone(wrapper, WRAPPER_MS, options);
  await removeDaemonRecord(recordFile);
  return how;
}

async function gone(entry: ProcessEntry, limitMs: number, { clock, signal }: StopOptions): Promise<boolean> {
  const deadline = clock.now() + limitMs;
  for (;;) {
    if ((await readProcess(entry.pid))?.started !== entry.started) return true;
    if (clock.now() >= deadline) return false;
    if (signal?.aborted) throw new RdError('ERR_CANCELLED', `waiting for pid ${entry.pid} to end was canceled`);
    await clock.sleep(POLL_MS, signal);
  }
}

/**
 * The record of a long-lived program: written before it is spawned without a process, then with it. A record without a process means that
 * its writer was killed in between, so the program may or may not run.
 */
export interface DaemonRecord {
  argv: readonly string[];
  process?: ProcessKey;
}

/**
 * Reads a record. Undefined when there is no valid one (a power failure can leave an empty file), or only the copy of one in another directory, to
 * which the program belongs.
 */
async function readDaemonRecord(file: string): Promise<DaemonRecord | undefined> {
  const { argv, pid, started, at } = (await readableRecord(file)) ?? {};
  if (!Array.isArray(argv) || placeStatus(parsePlace(at), dirname(file)) === 'copied') return undefined;
  const record = { argv: argv.filter((part) => typeof part === 'string') };
  return typeof pid === 'number' && typeof started === 'string' ? { ...record, process: { pid, started } } : record;
}

/** Replaces the record atomically. */
export async function writeDaemonRecord(file: string, record: DaemonRecord): Promise<void> {
  await makeDirectory(dirname(file));
  const temporary = `${file}.new`;
  // Leftovers at this path are replaced, never written to.
  await rm(temporary, { force: true });
  await writeFile(
    temporary,
    `${JSON.stringify({ argv: record.argv, ...record.process, at: placeOf(dirname(file)) })}\n`,
    {
      mode: 0o600,
      flag: 'wx',
    },
  );
  await rename(temporary, file);
}

export async function removeDaemonRecord(file: string): Promise<void> {
  await rm(file, { force: true });
}
