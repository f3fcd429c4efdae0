import { readFile } from 'node:fs/promises';
import { RdError } from '../errors.ts';
import type { Pace } from './pace.ts';
import { readProcess } from './proc.ts';

const POLL_MS = 200;

/**
 * Waits until a process has ended, however long that takes, then sends SIGTERM to the group that it led. One that leads none
 * leaves nothing to do. A group with the number of a process that is not there any more was led by it: the number is not
 * given to another while the group lives.
 * @throws RdError `ERR_CANCELLED` when the signal aborts.
 */
export async function endGroupAfter(pid: number, pace: Pace, signal: AbortSignal): Promise<void> {
  const known = await readProcess(pid);
  // One that has ended since then tells no group any more, and may have led one all the same.
  const group = await groupOf(pid);
  if (known && group !== undefined && group !== pid) return;
  // Another process may get the number later, and has another start.
  while (known && (await readProcess(pid))?.started === known.started) {
    if (signal.aborted) throw new RdError('ERR_CANCELLED', `Interrupted while waiting for the process ${pid}.`);
    await pace.sleep(POLL_MS, signal);
  }
  try {
    process.kill(-pid, 'SIGTERM');
  } catch {
    // Nobody is left in the group.
  }
}

async function groupOf(pid: number): Promise<number | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  if (stat === undefined) return undefined;
  const [, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(group);
}
