import { join } from 'node:path';
import type { EngineDriver, EngineSpec, EngineStatus } from '../driver.ts';
import type { EngineArea, Shell } from '../shell.ts';
import { adoptGuard } from './adoption.ts';
import { containerdPlaces, hostsConfig, hostsDirectory, hostsFile, type PodNetwork } from './containerd-config.ts';
import { containerdDaemon, GRPC_HELLO } from './containerd-daemon.ts';
import { containerdImages } from './containerd-images.ts';
import { containerdWorkload, endTasks } from './containerd-tasks.ts';
import { endedPrograms } from './ended.ts';
import { engineRecord } from './engine-record.ts';
import { engineSteps } from './engine-steps.ts';
import { pullGuard } from './pull-guard.ts';
import { registryGateway } from './registry-gateway.ts';

const GRACE_MS = 10_000;

/**
 * containerd as the engine. Tasks end with the engine; images and container records stay, in every namespace (clients such
 * as nerdctl use `default`). It brings no network of its own: containers join the host's network or a client's.
 *
 * Its clients fetch images themselves. With a list of allowed images there is a directory that leads those who use it to a
 * gateway in this process; it ends with this process, and they get nothing until the next one has looked at the engine.
 *
 * `pods`: a cluster is to run on it. It then answers Kubernetes as well.
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
    const ended = await endedPrograms(shell, [daemon.program], area);
    if (ended) return ended;
    if (started === 'unreadable') {
      return { state: 'unresponsive', message: 'the record of how containerd was started is damaged' };
    }
    const unguarded = await adoptGuard(guard, started);
    if (unguarded) return unguarded;
    const endpoint = `unix://${await shell.localSocket(places.socket)}`;
    await shell.hold(places.socket, GRPC_HELLO);
    const version = await daemon.version(signal);
    if (version === undefined) {
      return { state: 'unresponsive', message: `containerd does not answer on ${places.socket}` };
    }
    const workload = await containerdWorkload(daemon, signal);
    return { state: 'running', spec: started.spec, endpoint, version, workload };
  }

  async function start(spec: EngineSpec, signal: AbortSignal): Promise<void> {
    const files = [record.placed({ spec })];
    if (spec.allowedImages.enabled) {
      await record.write({ spec });
      const gateway = await guard.hold(spec.allowedImages.patterns);
      files[0] = record.placed({ spec, gateway });
      files.push({ path: hostsFile(places), text: hostsConfig(gateway) });
      shell.log('info', 'pulls are kept to the allowed images', { hostsDirectory: hostsDirectory(places) });
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
    perform: engineSteps({ record, guard, observe, start, stop }),
    release: () => guard.release(),
    images: containerdImages({
      shell,
      socket: places.socket,
      hostsDirectory: async () =>
        (await shell.read(hostsFile(places))) === undefined ? undefined : hostsDirectory(places),
    }),
  };
}
