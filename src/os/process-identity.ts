import { readFile } from 'node:fs/promises';

/** A process: a pid alone does not identify one, because pids are reused. */
export interface ProcessIdentity {
  pid: number;
  /** Its start time in an opaque form for comparison; absent where the system does not provide it. */
  started?: string;
}

/** Queries the operating system about processes; replaced in tests. */
export interface ProcessTable {
  self(): Promise<ProcessIdentity>;
  isAlive(identity: ProcessIdentity): Promise<boolean>;
}

/**
 * Sends SIGTERM to a process if it is certainly the right one: it lives, and its known start time matches. Otherwise returns false and
 * sends nothing.
 */
export async function terminate({ pid, started }: ProcessIdentity): Promise<boolean> {
  // Windows has no such signal: it would kill the process at once.
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
    // A zombie can stay in the table for seconds until its parent reaps it.
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
    // EPERM: it exists and belongs to another user.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

/** Linux: boot id and start tick. Elsewhere only the pid: more would require another program. */
async function startOf(pid: number): Promise<string | undefined> {
  if (process.platform !== 'linux') return undefined;
  try {
    const [stat, boot] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
    ]);
    // The program name is in parentheses and may itself contain blanks and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const state = fields[0];
    if (state === 'Z' || state === 'X') return 'dead';
    return `${boot.trim()}:${fields[19] ?? ''}`;
  } catch {
    return undefined;
  }
}
