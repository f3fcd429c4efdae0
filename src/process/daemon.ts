import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { RdError } from '../errors.ts';
import { readRecord, removeRecord, writeRecord } from './daemon-record.ts';
import { openLog } from './log-file.ts';
import type { Pace } from './pace.ts';
import type { ProcessEntry } from './proc.ts';
import { readProcess, readProcesses, signalProcess } from './proc.ts';
import { installAdvice } from './program.ts';

/** A long-lived program that outlives this process. Its arguments must name a path of its own: they identify it. */
export interface DaemonSpec {
  argv: readonly string[];
  /** A program with its arguments that becomes this one, as `nsenter` does. */
  within?: readonly string[];
  /** Where it is recorded. */
  recordFile: string;
  /** Gets its output, appended and bounded. */
  logFile: string;
  env: Readonly<Record<string, string | undefined>>;
  maxLogBytes?: number;
  /** A program whose output is the input of this one, and the other way round. It is to end with its streams, and is not recorded. */
  partner?: readonly string[];
}

/** `ended`: it was started and not stopped, and its process is gone. */
export type DaemonState = { state: 'none' } | { state: 'running'; pid: number } | { state: 'ended' };

/**
 * Spawns the program in a session of its own, unless it runs already. Resolves when it has been spawned, which says nothing
 * about its health.
 * @throws RdError `ERR_DRIVER_TERMINAL` when it is missing, with the way to install it, and when the very same runs without a record.
 */
export async function startDaemon(spec: DaemonSpec): Promise<number> {
  const [program = ''] = spec.argv;
  const found = await findDaemon(spec.recordFile);
  if (found.state === 'running') return found.pid;
  if (found.state === 'none') await refuseUnrecorded(spec);

  // First the intent: a kill of this process after the spawn must leave a trace that the program can be found by.
  await writeRecord(spec.recordFile, { argv: spec.argv });
  const log = await openLog(spec.logFile, spec.maxLogBytes);
  try {
    const children = spec.partner === undefined ? spawnAlone(spec, log.fd) : spawnJoined(spec, spec.partner, log.fd);
    // Both at once: what is not listened for in time is not heard.
    await Promise.all(children.map(spawned));
    const pid = children[0].pid ?? 0;
    const entry = await readProcess(pid);
    // One that ended at once keeps the record of the intent, so that it is found as ended. So does one whose process cannot be
    // written down, on a full disk: it runs, and is found by its arguments.
    if (entry) {
      const known = { argv: spec.argv, process: { pid, started: entry.started } };
      await writeRecord(spec.recordFile, known).catch(() => undefined);
    }
    return pid;
  } catch (cause) {
    await removeRecord(spec.recordFile);
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

/** Two of it on the same files would destroy them. Arguments with a path of their own are of no other. */
async function refuseUnrecorded({ argv, recordFile }: DaemonSpec): Promise<void> {
  const entry = (await readProcesses()).find((each) => isProgram(each, argv));
  if (entry) throw unrecorded(entry, recordFile);
}

/** For a program that runs on files of ours without the record that would tell whose it is. */
export function unrecorded({ pid, argv }: ProcessEntry, record: string): RdError {
  return new RdError(
    'ERR_DRIVER_TERMINAL',
    `${argv[0]} (pid ${pid}) runs already on the same files, and ${record}, which would tell whose it is, is gone`,
    {
      advice: `The directory was moved or removed while it ran. If you moved it, move it back; else end the process with \`kill ${pid}\`, and try again.`,
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

/** Resolves once it has been spawned, and lets go of it. */
async function spawned(child: ChildProcess): Promise<void> {
  await once(child, 'spawn');
  // Without a listener a late error, such as a failed signal, would end this process.
  child.on('error', () => undefined);
  child.unref();
}

function spawnAlone(spec: DaemonSpec, log: number): [ChildProcess] {
  return [spawnApart(spec, [...(spec.within ?? []), ...spec.argv], ['ignore', log, log])];
}

/**
 * The two ends that this process has of the partner's streams become those of the program, before anything is read from them here:
 * from then on the two talk to each other, whatever becomes of this process.
 */
function spawnJoined(spec: DaemonSpec, argv: readonly string[], log: number): [ChildProcess, ...ChildProcess[]] {
  const partner = spawnApart(spec, argv, ['pipe', 'pipe', log]);
  const { stdin, stdout } = partner;
  // One that is missing has no process, and tells so by an event; the program is not started then.
  if (partner.pid === undefined || !stdin || !stdout) return [partner];
  const child = spawnApart(spec, spec.argv, [stdout, stdin, log]);
  stdin.destroy();
  stdout.destroy();
  return [child, partner];
}

/** Looks for the recorded program. A process that only has its pid is not it. */
export async function findDaemon(recordFile: string): Promise<DaemonState> {
  const record = await readRecord(recordFile);
  if (!record) return { state: 'none' };
  const entry = await processOf(record);
  return entry ? { state: 'running', pid: entry.pid } : { state: 'ended' };
}

async function processOf(record: { argv: readonly string[]; process?: { pid: number; started: string } }) {
  if (record.process) {
    const entry = await readProcess(record.process.pid);
    if (entry?.started !== record.process.started) return undefined;
    // A process that takes over another program, as a script does its interpreter, has no arguments for a moment.
    return entry.argv.length === 0 || isProgram(entry, record.argv) ? entry : undefined;
  }
  return (await readProcesses()).find((entry) => isProgram(entry, record.argv));
}

/**
 * The program itself may appear as an interpreter and a path; the arguments stay as they were given. One of a path of its own may
 * also write `PATH SUBCOMMAND` over them, as k3s does to hide the rest.
 */
function isProgram(entry: ProcessEntry, argv: readonly string[]): boolean {
  const [program = '', ...args] = argv;
  if (program.startsWith('/') && args.length > 0 && entry.argv[0] === `${program} ${args[0]}`) return true;
  const tail = entry.argv.slice(-args.length);
  return args.length > 0 && tail.length === args.length && args.every((arg, index) => arg === tail[index]);
}

export interface StopOptions {
  /** Time that the program has after SIGTERM before it is killed. */
  graceMs: number;
  pace: Pace;
  signal?: AbortSignal;
}

const POLL_MS = 50;
/** A killed process goes at once, unless the kernel holds it (a dead network file system). */
const KILL_MS = 15_000;

/**
 * SIGTERM, SIGKILL after the grace, and the record removed once the process is gone. Harmless when nothing runs.
 * @returns how it ended.
 * @throws RdError `ERR_DRIVER_FAILED` when even a killed process stays; `ERR_CANCELLED` when the signal aborts.
 */
export async function stopDaemon(recordFile: string, options: StopOptions): Promise<'none' | 'stopped' | 'killed'> {
  const record = await readRecord(recordFile);
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
              'The kernel holds it, most likely in a file system that does not answer; restart the machine if it stays.',
          },
        );
      }
    }
  }
  await removeRecord(recordFile);
  return how;
}

async function gone(entry: ProcessEntry, limitMs: number, { pace, signal }: StopOptions): Promise<boolean> {
  const deadline = pace.now() + limitMs;
  for (;;) {
    if ((await readProcess(entry.pid))?.started !== entry.started) return true;
    if (pace.now() >= deadline) return false;
    if (signal?.aborted) throw new RdError('ERR_CANCELLED', `waiting for pid ${entry.pid} to end was cancelled`);
    await pace.sleep(POLL_MS, signal);
  }
}
