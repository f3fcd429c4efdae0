import { dirname, join } from 'node:path';
import { RdError } from '../../errors.ts';
import type { EngineNetwork, PlacedFile, Shell } from '../shell.ts';
import type { ContainerdDaemon } from './containerd-daemon.ts';
import { getOverSocket } from './engine-socket.ts';
import type { MobyPlaces } from './moby-config.ts';
import { isolatedConfig, NETWORK_STORE } from './moby-config.ts';
import { answersPing } from './moby-health.ts';
import { type EngineProgram, startReady } from './ready.ts';

const READY_MS = 60_000;
const GRACE_MS = 10_000;
const ANSWER_MS = 10_000;

/**
 * A dockerd that finds its previous default network in its store and uses an address pool of its own deletes the link `docker0` at its
 * start, whoever owns it (`configureNetworking` in moby's daemon/daemon_unix.go, 19.03 to 29). So the default network must leave the store
 * first. Only dockerd can write the store: one without containers or images does it, on a copy, in a network namespace of its own that has
 * no
 * `docker0` but the bridge of that network, because a network without its bridge is removed only in part. User networks stay as they are.
 */
export interface DefaultNetwork {
  /** Whether there is a store. */
  isThere(): Promise<boolean>;
  /**
   * Starts containerd, once those files are written, and removes the network. Both dockerd and containerd must be off; containerd is
   * running afterwards.
   * @throws RdError `ERR_DRIVER_FAILED`, `ERR_CANCELLED`. The store is unchanged.
   */
  forget(network: EngineNetwork, first: readonly PlacedFile[], signal: AbortSignal): Promise<void>;
  /** Ends what a killed service left of it. */
  stop(signal: AbortSignal): Promise<void>;
}

export function defaultNetwork(shell: Shell, places: MobyPlaces, containerd: ContainerdDaemon): DefaultNetwork {
  const { isolated, networkStore } = places;
  const copy = join(isolated.data, NETWORK_STORE);
  const program: EngineProgram = {
    name: 'moby-isolated',
    within: ['nsenter', `--net=${isolated.namespace}`, '--'],
    argv: [
      'dockerd',
      '--config-file',
      isolated.config,
      // These hold none of the engine's own containers.
      '--containerd-namespace',
      'moby-isolated',
      '--containerd-plugins-namespace',
      'plugins.moby-isolated',
    ],
    readyMs: READY_MS,
  };

  const isThere = async () => (await shell.read(networkStore)) !== undefined;
  const stop = (signal: AbortSignal) => shell.stop(program.name, GRACE_MS, signal);

  async function forget(network: EngineNetwork, first: readonly PlacedFile[], signal: AbortSignal): Promise<void> {
    const before = containerd.arrangement({
      absent: [isolated.data, isolated.run],
      directories: [dirname(copy), isolated.run],
      files: [
        ...first,
        { path: isolated.config, text: `${JSON.stringify(isolatedConfig(places), null, 2)}\n` },
        { path: isolated.namespace, text: '' },
      ],
    });
    await shell.arrange(before);
    await shell.run(['cp', '--', networkStore, copy], { signal });
    const bridge = ['ip', 'link', 'add', network.bridge, 'type', 'bridge'];
    await shell.run(['unshare', `--net=${isolated.namespace}`, '--', ...bridge], { signal });
    const socket = await shell.localSocket(isolated.socket);
    const answers = () => answersPing(socket, signal, 2_000);
    await startReady(shell, { needs: [containerd.program], program, answers }, signal);
    const { status } = await getOverSocket(socket, '/networks/bridge', { timeoutMs: ANSWER_MS, signal });
    await stop(signal);
    if (status !== 404) throw networkRemains(program.name, status);
    await shell.run(['sync', '--', copy], { signal });
    await shell.run(['mv', '--', copy, networkStore], { signal });
    await shell.run(['umount', '--', isolated.namespace]);
    await shell.arrange({ absent: [isolated.data, isolated.run], directories: [], files: [] });
  }

  return { isThere, forget, stop };
}

function networkRemains(name: string, status: number): RdError {
  return new RdError('ERR_DRIVER_FAILED', `dockerd did not give up its old default network (it answers ${status})`, {
    advice: `moby is not started, because it would delete the bridge docker0 of another docker. See ${name}.log in the log directory.`,
  });
}
