import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { RdError } from '../errors.ts';
import type { Clock } from './clock.ts';
import { systemCode } from './io-error.ts';
import type { ProcessEntry, ProcessIdentity, ProcessKey } from './process-list.ts';

/** Queries the operating system about processes; replaced in tests. */
export interface ProcessTable {
  self(): Promise<ProcessIdentity>;
  isAlive(identity: ProcessIdentity): Promise<boolean>;
}

export const processTable: ProcessTable = {
  async self() {
    const facts = factsOf(process.pid);
    return { pid: process.pid, ...(facts?.started === undefined ? {} : { started: facts.started }) };
  },
  async isAlive({ pid, started }) {
    if (!signalReaches(pid)) return false;
    const facts = factsOf(pid);
    if (facts?.dead) return false;
    return facts === undefined || started === undefined || facts.started === started;
  },
};

/**
 * Sends SIGTERM to a process if it is certainly the right one: it lives, and its known start time matches. Otherwise returns false and
 * sends nothing.
 */
export async function terminate({ pid, started }: ProcessIdentity): Promise<boolean> {
  // Windows has no such signal: it would kill the process at once.
  if (process.platform === 'win32' || started === undefined) return false;
  return signalProcess({ pid, started }, 'SIGTERM');
}

function signalReaches(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it exists and belongs to another user.
    return systemCode(error) === 'EPERM';
  }
}

interface ProcessFacts {
  started: string;
  parent: number;
  group: number;
  /** Clock ticks of all its threads, in programs and in the kernel. */
  ticks: number;
  /** The process has ended, and stays in the table until its parent reaps it. It holds no files, sockets or mounts. */
  dead: boolean;
}

/**
 * Returns the facts of a process, or undefined if it is missing or unreadable. Only on Linux: elsewhere it would take another program. Read
 * synchronously, from memory: through the thread pool it takes ten times as long.
 */
function factsOf(pid: number): ProcessFacts | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The program name is in parentheses and may itself contain blanks and parentheses.
    const [state, parent, group, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return {
      started: `${bootId()}:${rest[16] ?? ''}`,
      parent: Number(parent),
      group: Number(group),
      ticks: Number(rest[8]) + Number(rest[9]),
      dead: state === 'Z' || state === 'X',
    };
  } catch {
    return undefined;
  }
}

/** Reads one process. Undefined if there is none, or it has ended. */
export async function readProcess(pid: number): Promise<ProcessEntry | undefined> {
  if (process.platform === 'darwin') return (await listTable(pid))[0];
  const facts = factsOf(pid);
  const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => undefined);
  if (!facts || facts.dead || commandLine === undefined) return undefined;
  const { started, parent } = facts;
  return { pid, started, parent, argv: commandLine.split('\0').slice(0, -1) };
}

/** Clock ticks per second (USER_HZ). */
const TICKS_PER_S = 100;

/** Returns the processor time that a process has used, in milliseconds, or undefined if it has ended or the system does not show it. */
export async function processorTime(pid: number): Promise<number | undefined> {
  const facts = factsOf(pid);
  return facts === undefined || facts.dead ? undefined : (facts.ticks * 1000) / TICKS_PER_S;
}

/** Returns every readable process. */
export async function readProcesses(): Promise<ProcessEntry[]> {
  if (process.platform === 'darwin') return listTable();
  const names = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const entries = await Promise.all(names.map((name) => readProcess(Number(name))));
  return entries.filter((entry) => entry !== undefined);
}

/** Lists processes with a module loaded on demand: starting a program takes modules that this one does without. */
async function listTable(pid?: number): Promise<ProcessEntry[]> {
  const { listProcesses } = await import('./process-list.ts');
  return listProcesses(pid);
}

/** Signals that this program sends. */
export type ProcessSignal = 'SIGTERM' | 'SIGKILL' | 'SIGSTOP' | 'SIGCONT';

/** Sends a signal to that exact process. Returns false if it is gone. */
export async function signalProcess({ pid, started }: ProcessKey, signal: ProcessSignal): Promise<boolean> {
  const facts = process.platform === 'darwin' ? await readProcess(pid) : factsOf(pid);
  if (!facts || ('dead' in facts && facts.dead) || facts.started !== started) return false;
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

let boot: string | undefined;

/** Returns an id that changes with every boot. Only on Linux. */
export function bootId(): string {
  boot ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return boot;
}

const POLL_MS = 200;

/**
 * Waits until a process has ended, without a timeout, then sends SIGTERM to the group that it led. Does nothing for a process without a
 * group.
 * A group with the number of an ended process was led by it: the kernel does not reuse the number while the group lives.
 * @throws RdError `ERR_CANCELLED` when the signal aborts.
 */
export async function endGroupAfter(pid: number, clock: Clock, signal: AbortSignal): Promise<void> {
  const known = await readProcess(pid);
  // An ended one no longer reveals its group, but may have led one.
  const group = factsOf(pid)?.group;
  if (known && group !== undefined && group !== pid) return;
  // A later process with the same number has another start time.
  while (known && (await readProcess(pid))?.started === known.started) {
    if (signal.aborted) throw new RdError('ERR_CANCELLED', `Interrupted while waiting for the process ${pid}.`);
    await clock.sleep(POLL_MS, signal);
  }
  try {
    process.kill(-pid, 'SIGTERM');
  } catch {
    // The group is empty.
  }
}
