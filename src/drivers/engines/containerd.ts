import { join } from 'node:path';
import { RdError } from '../../errors.ts';
import type { EngineDriver, EngineSpec, EngineStatus, RunningContainer, Workload } from '../driver.ts';
import type { EngineArea, Shell } from '../shell.ts';
import {
  type ContainerdDaemon,
  containerdDaemon,
  containerdPlaces,
  GRPC_HELLO,
  hostsConfig,
  hostsFile,
  linesOf,
  type PodNetwork,
} from './containerd-daemon.ts';
import { containerdImages, PODS } from './containerd-images.ts';
import { engineRecord } from './engine-record.ts';
import { adoptGuard, engineSteps, statusWithoutPrograms } from './engine-steps.ts';
import { registryGateway } from './gateways.ts';
import { pullGuard } from './pull-guard.ts';

const GRACE_MS = 10_000;
/** Milliseconds that an observation stands. The end of containerd is noticed at once, but not changes of its containers. */
const STANDS_MS = 30_000;

/**
 * Returns containerd as the engine. Tasks end with the engine; images and container records stay, in every namespace (clients such as nerdctl use
 * `default`). It has no network of its own: containers join the host's network or a client's.
 *
 * Its clients pull images themselves. With a list of allowed images a host configuration directory leads them to a gateway in this process;
 * it ends with this process, and pulls fail until the next service adopts the engine.
 *
 * `pods`: a cluster runs on it. It then serves the CRI as well.
 */
export function containerdEngine(shell: Shell, pods?: PodNetwork): EngineDriver {
  const run = join(shell.places.run, 'containerd');
  const places = containerdPlaces(join(shell.places.data, 'containerd'), run);
  const record = engineRecord(shell, `${shell.places.run}/containerd.json`);
  const daemon = containerdDaemon(shell, places, 'containerd', pods);
  const guard = pullGuard(shell, { gateway: registryGateway });
  const area: EngineArea = { containerd: places.socket, state: places.state, directories: [run, places.root] };

  async function observe(signal: AbortSignal): Promise<EngineStatus> {
    const started = await record.read();
    if (started === undefined) return { state: 'stopped' };
    const ended = await statusWithoutPrograms(shell, [daemon.program], area);
    if (ended) return ended;
    if (started === 'unreadable') {
      return { state: 'unresponsive', message: 'the start record of containerd is damaged' };
    }
    const unguarded = await adoptGuard(guard, started);
    if (unguarded) return unguarded;
    const endpoint = `unix://${await shell.localSocket(places.socket)}`;
    await shell.hold(places.socket, GRPC_HELLO);
    const version = await daemon.version(signal);
    if (version === undefined) {
      return { state: 'unresponsive', message: `containerd does not respond on ${places.socket}`, silent: true };
    }
    const workload = await containerdWorkload(daemon, signal);
    return { state: 'running', spec: started.spec, endpoint, version, workload };
  }

  async function start(spec: EngineSpec, signal: AbortSignal): Promise<void> {
    const files = [record.placed({ spec })];
    if (spec.allowedImages.enabled) {
      await record.write({ spec });
      const gateway = await guard.serve(spec.allowedImages.patterns);
      files[0] = record.placed({ spec, gateway });
      files.push({ path: hostsFile(places), text: hostsConfig(gateway) });
      shell.log('info', 'pulls are restricted to the allowed images', { hostsDirectory: places.hosts });
    }
    await daemon.start({ absent: [], directories: [], files }, signal);
  }

  async function stop(signal: AbortSignal): Promise<void> {
    if ((await record.read()) === undefined) return;
    if ((await daemon.version(signal)) !== undefined) await endTasks(shell, daemon, signal);
    await shell.stop('containerd', GRACE_MS, signal);
    await shell.clear(area);
    await guard.release();
    await record.remove(run);
  }

  return {
    observe,
    standsMs: async () => ((await shell.holds(places.socket)) ? STANDS_MS : 0),
    perform: engineSteps({ record, guard, observe, start, stop }),
    release: () => guard.release(),
    images: containerdImages({
      shell,
      socket: places.socket,
      hostsDirectory: async () => ((await shell.read(hostsFile(places))) === undefined ? undefined : places.hosts),
    }),
  };
}

/** Time that tasks have after SIGTERM; then they are killed with their shim. */
const TASK_GRACE_MS = 10_000;
const POLL_MS = 100;
/** Labels by which clients such as nerdctl make containerd itself keep a container running. */
const KEPT_RUNNING = 'labels."containerd.io/restart.status"==running';
const LONG_ID = /^[0-9a-f]{64}$/;

/** Returns the ids of running tasks in the table of `ctr tasks ls` (columns TASK, PID, STATUS). */
export function runningTasks(table: string): string[] {
  const rows = linesOf(table).map((line) => line.split(/\s+/));
  return rows.flatMap(([id, , status]) => (id !== undefined && status === 'RUNNING' ? [id] : []));
}

/** Returns counts and running containers of all namespaces; empty when unreadable, because an engine that responds must not be called dead. */
async function containerdWorkload(daemon: ContainerdDaemon, signal: AbortSignal): Promise<Workload> {
  try {
    const counts = { runningContainers: 0, containers: 0, images: 0 };
    const running: RunningContainer[] = [];
    for (const namespace of linesOf(await daemon.ctr(['namespaces', 'ls', '-q'], signal))) {
      const inside = (args: string[]) => daemon.ctr(['--namespace', namespace, ...args], signal);
      const [tasks, containers, images] = await Promise.all([
        inside(['tasks', 'ls']),
        inside(['containers', 'ls', '-q']),
        inside(['images', 'ls', '-q']),
      ]);
      const ids = runningTasks(tasks);
      const kept =
        ids.length > 0 && namespace !== PODS ? linesOf(await inside(['containers', 'ls', '-q', KEPT_RUNNING])) : [];
      running.push(...ids.map((id) => runningContainer(id, namespace, kept)));
      counts.runningContainers += ids.length;
      counts.containers += linesOf(containers).length;
      counts.images += linesOf(images).length;
    }
    return { ...counts, running };
  } catch (error) {
    if (error instanceof RdError && error.code === 'ERR_DRIVER_FAILED') return {};
    throw error;
  }
}

/**
 * Describes a running container. Whether it restarts depends on the policy, on how the container ends, and on whether the client is there to set it
 * up.
 */
function runningContainer(id: string, namespace: string, kept: readonly string[]): RunningContainer {
  const name = LONG_ID.test(id) ? id.slice(0, 12) : id;
  if (namespace === PODS) return { name, pod: true };
  return kept.includes(id) ? { name } : { name, returns: false };
}

/** Stops every running task and waits for it within the grace period. The caller clears what is left. */
async function endTasks(shell: Shell, daemon: ContainerdDaemon, signal: AbortSignal): Promise<void> {
  const deadline = shell.clock.now() + TASK_GRACE_MS;
  const ctr = async (namespace: string, args: string[]) => {
    try {
      return await daemon.ctr(['--namespace', namespace, ...args], signal);
    } catch (error) {
      // A task can end between the listing and the call.
      if (error instanceof RdError && error.code === 'ERR_DRIVER_FAILED') return '';
      throw error;
    }
  };
  const namespaces = linesOf(await daemon.ctr(['namespaces', 'ls', '-q'], signal));
  for (const namespace of namespaces) {
    for (const task of runningTasks(await ctr(namespace, ['tasks', 'ls']))) {
      await ctr(namespace, ['tasks', 'kill', '--signal', 'SIGTERM', task]);
    }
  }
  for (const namespace of namespaces) {
    while (runningTasks(await ctr(namespace, ['tasks', 'ls'])).length > 0 && shell.clock.now() < deadline) {
      if (signal.aborted) throw new RdError('ERR_CANCELLED', 'waiting for containers to end was canceled');
      await shell.clock.sleep(POLL_MS, signal);
    }
    for (const task of linesOf(await ctr(namespace, ['tasks', 'ls', '-q']))) {
      await ctr(namespace, ['tasks', 'delete', '--force', task]);
    }
  }
}
