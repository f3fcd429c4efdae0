import { readFile } from 'node:fs/promises';
import { RdError } from '../errors.ts';
import type { Clock } from './clock.ts';
import { readProcess } from './proc.ts';

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
  const group = await groupOf(pid);
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

async function groupOf(pid: number): Promise<number | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  if (stat === undefined) return undefined;
  const [, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(group);
}
