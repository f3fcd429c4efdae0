import { readdir, readFile } from 'node:fs/promises';

/** A process of this boot: a pid alone does not identify one, because pids are reused. */
export interface ProcessKey {
  pid: number;
  /** Boot id and start tick, from `/proc`. */
  started: string;
}

export interface ProcessEntry extends ProcessKey {
  parent: number;
  argv: readonly string[];
}

/** Reads one process from `/proc`. Undefined when there is none, and for a zombie, which holds no files, sockets or mounts. */
export async function readProcess(pid: number): Promise<ProcessEntry | undefined> {
  try {
    const [stat, cmdline] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile(`/proc/${pid}/cmdline`, 'utf8'),
    ]);
    // The program name is in parentheses and may itself contain blanks and parentheses.
    const [state, parent, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z' || state === 'X') return undefined;
    const started = `${await bootId()}:${rest[17] ?? ''}`;
    return { pid, started, parent: Number(parent), argv: cmdline.split('\0').slice(0, -1) };
  } catch {
    return undefined;
  }
}

/** Every readable process. */
export async function readProcesses(): Promise<ProcessEntry[]> {
  const names = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const entries = await Promise.all(names.map((name) => readProcess(Number(name))));
  return entries.filter((entry) => entry !== undefined);
}

/** True while that exact process runs. */
async function isAlive(key: ProcessKey): Promise<boolean> {
  return (await readProcess(key.pid))?.started === key.started;
}

/** Sends a signal to that exact process. Returns false when it is gone. */
export async function signalProcess(key: ProcessKey, signal: 'SIGTERM' | 'SIGKILL'): Promise<boolean> {
  if (!(await isAlive(key))) return false;
  try {
    return process.kill(key.pid, signal);
  } catch {
    return false;
  }
}

let boot: Promise<string> | undefined;

/** Changes with every boot. */
export function bootId(): Promise<string> {
  boot ??= readFile('/proc/sys/kernel/random/boot_id', 'utf8').then((text) => text.trim());
  return boot;
}
