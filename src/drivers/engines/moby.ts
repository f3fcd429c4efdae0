import { dirname, join } from 'node:path';
import { RdError } from '../../errors.ts';
import type { EngineDriver, EngineSpec, EngineStatus, Look } from '../driver.ts';
import type { EngineArea, EngineNetwork, PlacedFile, Shell } from '../shell.ts';
import { authzPlugin } from './authz-plugin.ts';
import { type ContainerdDaemon, containerdDaemon, GRPC_HELLO } from './containerd-daemon.ts';
import { engineRecord } from './engine-record.ts';
import { adoptGuard, type EngineProgram, engineSteps, startReady, statusWithoutPrograms } from './engine-steps.ts';
import { EVENTS_HELLO, followedWorkload } from './followed-workload.ts';
import { outboundProxy } from './gateways.ts';
import { getMoby, healthyVersion, mobyWorkload, usesSnapshotter } from './moby-api.ts';
import {
  gatewayEnvironment,
  isolatedConfig,
  type MobyPlaces,
  mobyArguments,
  mobyConfig,
  mobyPlaces,
  NETWORK_STORE,
  SHUTDOWN_SECONDS,
} from './moby-config.ts';
import { mobyCompanions, mobyImages } from './moby-images.ts';
import { type Gateway, pullGuard } from './pull-guard.ts';

/** Start timeout. Containers with a restart policy start before dockerd responds. */
const READY_MS = 120_000;
const CONTAINERD_GRACE_MS = 10_000;
/** Milliseconds that an observation stands: a dockerd that hangs keeps its connections, and only a query shows it. */
const STANDS_MS = 60_000;
/** Milliseconds between checks of the containerd in a guest: reading whether a process runs costs an idle guest something each time. */
const CONTAINERD_STANDS_MS = 20_000;
/** dockerd's own stop timeout for containers, plus a margin for itself. */
const GRACE_MS = (SHUTDOWN_SECONDS + 10) * 1000;

/**
 * Returns moby as the engine: dockerd with a containerd of its own. Containers end with the engine (restart policies apply at the next start);
 * images, volumes and stopped containers stay. `cgroup` is the control group of the containers.
 *
 * With a list of allowed images dockerd queries a plugin here before every request, and a proxy here is its only route to registries. Both
 * end with this process: dockerd then responds to nobody until the next service adopts it.
 */
export function mobyEngine(shell: Shell, cgroup: string): EngineDriver {
  const places = mobyPlaces(shell.places);
  const record = engineRecord(shell, `${shell.places.run}/moby.json`);
  const containerd = containerdDaemon(shell, places.containerd, 'moby-containerd');
  const storedNetwork = defaultNetwork(shell, places, containerd);
  const dockerd: EngineProgram = { name: 'dockerd', argv: mobyArguments(places), readyMs: READY_MS };
  const guard = pullGuard(shell, {
    gateway: outboundProxy,
    authority: async () => (await import('./gateway-authority.ts')).newAuthority(Date.now()),
    plugin: { make: authzPlugin, socket: places.pluginSocket },
  });
  const area: EngineArea = {
    containerd: places.containerd.socket,
    state: places.containerd.state,
    directories: [places.run, places.data, places.containerd.root, places.isolated.run, places.isolated.data],
    cgroup,
  };

  const workload = followedWorkload(
    async (signal) => mobyWorkload(await shell.localSocket(places.socket), signal),
    shell.clock,
  );

  async function observe(signal: AbortSignal, how: Look = 'full'): Promise<EngineStatus> {
    const started = await record.read();
    if (started === undefined) return { state: 'stopped' };
    const ended = await statusWithoutPrograms(shell, [containerd.program, dockerd], area);
    if (ended) return ended;
    if (started === 'unreadable') {
      return { state: 'unresponsive', message: 'the start record of moby is damaged' };
    }
    const unguarded = await adoptGuard(guard, started);
    if (unguarded) return unguarded;
    const socket = await shell.localSocket(places.socket);
    // Before the first query: from then on an exit cannot go unnoticed.
    await Promise.all([
      shell.hold(places.socket, EVENTS_HELLO, workload.follow),
      shell.hold(places.containerd.socket, GRPC_HELLO),
    ]);
    const queriesBefore = guard.queries();
    const version = await healthyVersion(socket, signal);
    if (version === undefined) {
      return { state: 'unresponsive', message: `dockerd does not respond on ${socket}`, silent: true };
    }
    if (started.spec.allowedImages.enabled) {
      if (guard.queries() === queriesBefore) {
        return { state: 'unresponsive', message: 'dockerd responds without checking the list of allowed images' };
      }
      // A service killed during a start may have left the file.
      await shell.remove(places.pluginSpec);
    }
    const endpoint = `unix://${socket}`;
    return { state: 'running', spec: started.spec, endpoint, version, workload: await workload.look(how, signal) };
  }

  async function start(spec: EngineSpec, signal: AbortSignal): Promise<void> {
    const network = await shell.network();
    const gateway = await openGuard(spec);
    const config = `${JSON.stringify(mobyConfig(spec, places, network, cgroup), null, 2)}\n`;
    const recordFile = gateway === undefined ? [record.placed({ spec })] : [];
    const trust = gateway?.authority ? [{ path: places.authority, text: gateway.authority.certificate }] : [];
    const files = [...recordFile, { path: places.config, text: config }, ...trust];
    const own = { absent: [], directories: [places.data], files };
    const mustRemoveNetwork = network.shared && (await storedNetwork.exists());
    if (mustRemoveNetwork) await storedNetwork.remove(network, recordFile, signal);
    const before = mustRemoveNetwork ? own : containerd.arrangement(own);
    const program = gateway === undefined ? dockerd : { ...dockerd, env: gatewayEnvironment(gateway, places) };
    // Started concurrently. Its failure surfaces where it is awaited, so that no start is left dangling.
    const socket = shell.localSocket(places.socket);
    socket.catch(() => undefined);
    const queriesBefore = guard.queries();
    // dockerd waits for its containerd on its own.
    const isReady = async () => (await healthyVersion(await socket, signal, 2_000)) !== undefined;
    await startReady(shell, { before, needs: [containerd.program], program, isReady }, signal);
    if (spec.storageDriver === 'snapshotter' && !(await usesSnapshotter(await socket, signal))) {
      await stop(signal);
      throw new RdError('ERR_DRIVER_TERMINAL', 'dockerd did not take containerEngine.mobyStorageDriver: snapshotter', {
        advice: 'It needs a newer dockerd; or: rdctl set --container-engine.moby-storage-driver=auto',
      });
    }
    if (gateway === undefined) return;
    // dockerd caches its plugin's address. Other dockerds of the machine read the same files and would wait for it.
    await shell.remove(places.pluginSpec);
    if (guard.queries() > queriesBefore) return;
    // Another plugin of that name answers, or dockerd has none: nothing would be denied.
    await stop(signal);
    throw new RdError('ERR_DRIVER_TERMINAL', `dockerd does not query its plugin ${places.plugin} about images`, {
      advice: `Look for another plugin of that name in /run/docker/plugins and /usr/lib/docker/plugins, and move it away.`,
    });
  }

  /** Opens the gateway and records it before dockerd starts, because the next service has to open the same one. */
  async function openGuard(spec: EngineSpec): Promise<Gateway | undefined> {
    if (!spec.allowedImages.enabled) return undefined;
    await record.write({ spec });
    const gateway = await guard.serve(spec.allowedImages.patterns);
    await record.write({ spec, gateway });
    // With the default mode, because the directory stays.
    await shell.run(['mkdir', '-p', '--', dirname(places.pluginSpec)]);
    await shell.write(places.pluginSpec, `unix://${places.pluginSocket}\n`);
    return gateway;
  }

  /** Stops the engine. It also clears what a killed engine left, which the record proves possible. */
  async function stop(signal: AbortSignal): Promise<void> {
    const started = await record.read();
    if (started === undefined) return;
    containerdSeen = Number.NEGATIVE_INFINITY;
    await storedNetwork.stop(signal);
    await shell.stop(dockerd.name, GRACE_MS, signal);
    await shell.stop(containerd.program.name, CONTAINERD_GRACE_MS, signal);
    await shell.clear(area);
    // Last, because dockerd queries the plugin until it has ended.
    await guard.release();
    if (started === 'unreadable' || started.spec.allowedImages.enabled) await shell.remove(places.pluginSpec);
    await record.remove(places.run, places.isolated.run, places.isolated.data);
  }

  let containerdSeen = Number.NEGATIVE_INFINITY;
  /** True if containerd runs. No connection leads from a host to the containerd in its guest, and dockerd outlives it. */
  async function containerdRuns(): Promise<boolean> {
    if (await shell.holds(places.containerd.socket)) return true;
    const now = shell.clock.now();
    if (now - containerdSeen < CONTAINERD_STANDS_MS) return true;
    const runs = (await shell.find(containerd.program.name)).state === 'running';
    containerdSeen = runs ? now : Number.NEGATIVE_INFINITY;
    return runs;
  }
  const isFollowed = async () => workload.isCurrent() && (await shell.holds(places.socket)) && (await containerdRuns());

  return {
    observe,
    standsMs: async () => ((await isFollowed()) ? STANDS_MS : 0),
    perform: engineSteps({ record, guard, observe, start, stop }),
    release: () => guard.release(),
    images: mobyImages(() => shell.localSocket(places.socket)),
    companions: mobyCompanions(() => shell.localSocket(places.socket)),
  };
}

const ISOLATED_READY_MS = 60_000;

/**
 * Removes moby's default network from its store. A dockerd that finds its previous default network in its store and uses an address pool of its own
 * deletes the link `docker0` at its start, whoever owns it (`configureNetworking` in moby's daemon/daemon_unix.go, 19.03 to 29). So the default
 * network must leave the store first. Only dockerd can write the store: one without containers or images does it, on a copy, in a network namespace
 * of its own that has no `docker0`, but has the bridge of that network: without its bridge a network is removed only in part. User networks stay as
 * they are.
 */
function defaultNetwork(shell: Shell, places: MobyPlaces, containerd: ContainerdDaemon) {
  const { isolated, networkStore } = places;
  const copy = join(isolated.data, NETWORK_STORE);
  const program: EngineProgram = {
    name: 'moby-isolated',
    within: ['nsenter', `--net=${isolated.namespace}`, '--'],
    argv: [
      'dockerd',
      '--config-file',
      isolated.config,
      // These namespaces hold none of the engine's own containers.
      '--containerd-namespace',
      'moby-isolated',
      '--containerd-plugins-namespace',
      'plugins.moby-isolated',
    ],
    readyMs: ISOLATED_READY_MS,
  };

  /** True if there is a store. */
  const exists = async () => (await shell.read(networkStore)) !== undefined;
  /** Stops the temporary dockerd that a killed service left. */
  const stop = (signal: AbortSignal) => shell.stop(program.name, CONTAINERD_GRACE_MS, signal);

  /**
   * Starts containerd, once the files in `first` are written, and removes the network. Both dockerd and containerd must be off; containerd is running
   * afterwards.
   * @throws RdError `ERR_DRIVER_FAILED`, `ERR_CANCELLED`. The store is then unchanged.
   */
  async function remove(network: EngineNetwork, first: readonly PlacedFile[], signal: AbortSignal): Promise<void> {
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
    const isReady = async () => (await healthyVersion(socket, signal, 2_000)) !== undefined;
    await startReady(shell, { needs: [containerd.program], program, isReady }, signal);
    const { status } = await getMoby(socket, '/networks/bridge', signal);
    await stop(signal);
    if (status !== 404) throw networkRemains(program.name, status);
    await shell.run(['sync', '--', copy], { signal });
    await shell.run(['mv', '--', copy, networkStore], { signal });
    await shell.run(['umount', '--', isolated.namespace]);
    await shell.arrange({ absent: [isolated.data, isolated.run], directories: [], files: [] });
  }

  return { exists, remove, stop };
}

function networkRemains(name: string, status: number): RdError {
  return new RdError('ERR_DRIVER_FAILED', `dockerd did not remove its old default network (status ${status})`, {
    advice: `moby is not started, because it would delete the docker0 bridge of another Docker. See ${name}.log in the log directory.`,
  });
}
