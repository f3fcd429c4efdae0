import { readFile } from 'node:fs/promises';

/** A process that a pid alone does not name, because pids are used again. */
export interface ProcessIdentity {
  pid: number;
  /** When it started, in a form that only equality is asked of; absent where the system does not tell. */
  started?: string;
}

/** Asks the operating system about processes; replaced in tests. */
export interface ProcessTable {
  self(): Promise<ProcessIdentity>;
  isAlive(identity: ProcessIdentity): Promise<boolean>;
}

/**
 * Asks a process to end (SIGTERM) when it is certain to be the one that is meant: it lives, and its start is known and the same.
 * Returns false, and sends nothing, otherwise.
 */
export async function askToEnd({ pid, started }: ProcessIdentity): Promise<boolean> {
  // Windows has no such signal: it would end the process at once.
  if (process.platform === 'win32' || started === undefined || (await startOf(pid)) !== started) return false;
  try {
    return process.kill(pid, 'SIGTERM');
  } catch {
    return false;
  }
}

export const processTable: ProcessTable = {
  async self() {
    return identify(process.pid);
  },
  async isAlive({ pid, started }) {
    if (!signalReaches(pid)) return false;
    const now = await startOf(pid);
    // One that has ended can stay in the table for seconds, until its parent takes notice.
    if (now === 'dead') return false;
    return now === undefined || started === undefined || now === started;
  },
};

async function identify(pid: number): Promise<ProcessIdentity> {
  const started = await startOf(pid);
  return started === undefined || started === 'dead' ? { pid } : { pid, started };
}

function signalReaches(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it is there and belongs to somebody else.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

/** Linux: boot and start tick. Elsewhere the pid has to do: asking would need another program. */
async function startOf(pid: number): Promise<string | undefined> {
  if (process.platform !== 'linux') return undefined;
  try {
    const [stat, boot] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
    ]);
    // The program name is in parentheses and may hold blanks and parentheses itself.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const state = fields[0];
    if (state === 'Z' || state === 'X') return 'dead';
    return `${boot.trim()}:${fields[19] ?? ''}`;
  } catch {
    return undefined;
  }
}
