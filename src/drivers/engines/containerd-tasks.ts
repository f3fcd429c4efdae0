import { RdError } from '../../errors.ts';
import type { Workload } from '../driver.ts';
import type { Shell } from '../shell.ts';
import type { ContainerdDaemon } from './containerd-daemon.ts';

/** Time that tasks have after SIGTERM; what then still runs is killed with its shim. */
const TASK_GRACE_MS = 10_000;
const POLL_MS = 100;

/** Lines of a quiet listing. */
function names(output: string): string[] {
  return output.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]));
}

/** Ids of running tasks in the table of `ctr tasks ls` (columns TASK, PID, STATUS). */
export function runningTasks(table: string): string[] {
  const rows = names(table).map((line) => line.split(/\s+/));
  return rows.flatMap(([id, , status]) => (id !== undefined && status === 'RUNNING' ? [id] : []));
}

/** Counts over all namespaces; empty when they cannot be read, because an engine that answers is not to be called dead. */
export async function containerdWorkload(daemon: ContainerdDaemon, signal: AbortSignal): Promise<Workload> {
  try {
    const counts = { runningContainers: 0, containers: 0, images: 0 };
    for (const namespace of names(await daemon.ctr(['namespaces', 'ls', '-q'], signal))) {
      const inside = (args: string[]) => daemon.ctr(['--namespace', namespace, ...args], signal);
      const [tasks, containers, images] = await Promise.all([
        inside(['tasks', 'ls']),
        inside(['containers', 'ls', '-q']),
        inside(['images', 'ls', '-q']),
      ]);
      counts.runningContainers += runningTasks(tasks).length;
      counts.containers += names(containers).length;
      counts.images += names(images).length;
    }
    return counts;
  } catch (error) {
    if (error instanceof RdError && error.code === 'ERR_DRIVER_FAILED') return {};
    throw error;
  }
}

/** Asks every running task to end and waits for it within the grace. What is left then, the caller clears. */
export async function endTasks(shell: Shell, daemon: ContainerdDaemon, signal: AbortSignal): Promise<void> {
  const deadline = shell.pace.now() + TASK_GRACE_MS;
  const ctr = async (namespace: string, args: string[]) => {
    try {
      return await daemon.ctr(['--namespace', namespace, ...args], signal);
    } catch (error) {
      // A task can end between the listing and the call.
      if (error instanceof RdError && error.code === 'ERR_DRIVER_FAILED') return '';
      throw error;
    }
  };
  const namespaces = names(await daemon.ctr(['namespaces', 'ls', '-q'], signal));
  for (const namespace of namespaces) {
    for (const task of runningTasks(await ctr(namespace, ['tasks', 'ls']))) {
      await ctr(namespace, ['tasks', 'kill', '--signal', 'SIGTERM', task]);
    }
  }
  for (const namespace of namespaces) {
    while (runningTasks(await ctr(namespace, ['tasks', 'ls'])).length > 0 && shell.pace.now() < deadline) {
      if (signal.aborted) throw new RdError('ERR_CANCELLED', 'waiting for containers to end was cancelled');
      await shell.pace.sleep(POLL_MS, signal);
    }
    for (const task of names(await ctr(namespace, ['tasks', 'ls', '-q']))) {
      await ctr(namespace, ['tasks', 'delete', '--force', task]);
    }
  }
}
