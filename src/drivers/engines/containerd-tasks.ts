import { RdError } from '../../errors.ts';
import type { RunningContainer, Workload } from '../driver.ts';
import type { Shell } from '../shell.ts';
import type { ContainerdDaemon } from './containerd-daemon.ts';

/** Time that tasks have after SIGTERM; what then still runs is killed with its shim. */
const TASK_GRACE_MS = 10_000;
const POLL_MS = 100;
/** Where a cluster has its containers. */
const PODS = 'k8s.io';
/** Labels by which clients such as nerdctl ask containerd itself to keep a container running. */
const KEPT_RUNNING = 'labels."containerd.io/restart.status"==running';
const LONG_ID = /^[0-9a-f]{64}$/;

/** Lines of a quiet listing. */
function names(output: string): string[] {
  return output.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]));
}

/** Ids of running tasks in the table of `ctr tasks ls` (columns TASK, PID, STATUS). */
export function runningTasks(table: string): string[] {
  const rows = names(table).map((line) => line.split(/\s+/));
  return rows.flatMap(([id, , status]) => (id !== undefined && status === 'RUNNING' ? [id] : []));
}

/** Counts and what runs over all namespaces; empty when they cannot be read, because an engine that answers is not to be called dead. */
export async function containerdWorkload(daemon: ContainerdDaemon, signal: AbortSignal): Promise<Workload> {
  try {
    const counts = { runningContainers: 0, containers: 0, images: 0 };
    const running: RunningContainer[] = [];
    for (const namespace of names(await daemon.ctr(['namespaces', 'ls', '-q'], signal))) {
      const inside = (args: string[]) => daemon.ctr(['--namespace', namespace, ...args], signal);
      const [tasks, containers, images] = await Promise.all([
        inside(['tasks', 'ls']),
        inside(['containers', 'ls', '-q']),
        inside(['images', 'ls', '-q']),
      ]);
      const ids = runningTasks(tasks);
      const kept =
        ids.length > 0 && namespace !== PODS ? names(await inside(['containers', 'ls', '-q', KEPT_RUNNING])) : [];
      running.push(...ids.map((id) => runningContainer(id, namespace, kept)));
      counts.runningContainers += ids.length;
      counts.containers += names(containers).length;
      counts.images += names(images).length;
    }
    return { ...counts, running };
  } catch (error) {
    if (error instanceof RdError && error.code === 'ERR_DRIVER_FAILED') return {};
    throw error;
  }
}

/** With a policy of containerd it depends: on the policy, on how the container ends, and on the client being there to set it up. */
function runningContainer(id: string, namespace: string, kept: readonly string[]): RunningContainer {
  const name = LONG_ID.test(id) ? id.slice(0, 12) : id;
  if (namespace === PODS) return { name, pod: true };
  return kept.includes(id) ? { name } : { name, returns: false };
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
