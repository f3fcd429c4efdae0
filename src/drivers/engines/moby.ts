import { RdError } from '../../errors.ts';
import { isObject } from '../../json.ts';
import { PRODUCT } from '../../product.ts';
import type { Companion, CompanionContainers, EngineDriver, EngineSpec, EngineStatus } from '../driver.ts';
import type { EngineArea, Shell } from '../shell.ts';
import { adoptGuard } from './adoption.ts';
import { authzPlugin } from './authz-plugin.ts';
import { containerdDaemon, GRPC_HELLO } from './containerd-daemon.ts';
import { defaultNetwork } from './default-network.ts';
import { endedPrograms } from './ended.ts';
import { engineRecord } from './engine-record.ts';
import { engineSteps } from './engine-steps.ts';
import type { Gateway } from './gateway-secret.ts';
import { gatewayEnvironment, mobyArguments, mobyConfig, mobyPlaces, SHUTDOWN_SECONDS } from './moby-config.ts';
import { answersPing, HTTP_HELLO, mobyFacts } from './moby-health.ts';
import { askMoby } from './moby-http.ts';
import { mobyImages } from './moby-images.ts';
import { outboundProxy } from './outbound-proxy.ts';
import { pullGuard } from './pull-guard.ts';
import { type EngineProgram, startReady } from './ready.ts';

/** Containers with a restart policy start before dockerd responds. */
const READY_MS = 120_000;
const CONTAINERD_GRACE_MS = 10_000;
/** dockerd's own stop timeout for containers, plus a margin for itself. */
const GRACE_MS = (SHUTDOWN_SECONDS + 10) * 1000;

/**
 * dockerd with a containerd of its own. Containers end with the engine (restart policies apply at the next start); images, volumes and
 * stopped containers stay. `cgroup` is the control group of the containers.
 *
 * With a list of allowed images dockerd queries a plugin here before every request, and a proxy here is its only route to registries. Both
 * end with this process: dockerd then responds to nobody until the next service adopts it.
 */
export function mobyEngine(shell: Shell, cgroup: string): EngineDriver {
  const places = mobyPlaces(shell.places);
  const record = engineRecord(shell, `${shell.places.run}/moby.json`);
  const containerd = containerdDaemon(shell, places.containerd, 'moby-containerd');
  const stored = defaultNetwork(shell, places, containerd);
  const dockerd: EngineProgram = { name: 'dockerd', argv: mobyArguments(places), readyMs: READY_MS };
  const guard = pullGuard(shell, {
    gateway: outboundProxy,
    plugin: { make: authzPlugin, socket: places.pluginSocket },
  });
  const area: EngineArea = {
    containerd: places.containerd.socket,
    state: places.containerd.state,
    directories: [places.run, places.data, places.containerd.root, places.isolated.run, places.isolated.data],
    cgroup,
  };

  async function observe(signal: AbortSignal): Promise<EngineStatus> {
    const started = await record.read();
    if (started === undefined) return { state: 'stopped' };
    const ended = await endedPrograms(shell, [containerd.program, dockerd], area);
    if (ended) return ended;
    if (started === 'unreadable') {
      return { state: 'unresponsive', message: 'the record of how moby was started is damaged' };
    }
    const unguarded = await adoptGuard(guard, started);
    if (unguarded) return unguarded;
    const socket = await shell.localSocket(places.socket);
    // Before the first query: from then on an exit cannot go unnoticed.
    await Promise.all([shell.hold(places.socket, HTTP_HELLO), shell.hold(places.containerd.socket, GRPC_HELLO)]);
    const before = guard.questions();
    if (!(await answersPing(socket, signal))) {
      return { state: 'unresponsive', message: `dockerd does not answer on ${socket}` };
    }
    if (started.spec.allowedImages.enabled) {
      if (guard.questions() === before) {
        return { state: 'unresponsive', message: 'dockerd answers without asking the list of allowed images' };
      }
      // A service that was killed during a start may have left it.
      await withdrawSpec();
    }
    const endpoint = `unix://${socket}`;
    return { state: 'running', spec: started.spec, endpoint, ...(await mobyFacts(socket, signal)) };
  }

  async function start(spec: EngineSpec, signal: AbortSignal): Promise<void> {
    const network = await shell.network();
    const gateway = await openGuard(spec);
    const config = `${JSON.stringify(mobyConfig(spec, places, network, cgroup), null, 2)}\n`;
    const first = gateway === undefined ? [record.placed({ spec })] : [];
    const files = [...first, { path: places.config, text: config }];
    const wanted = { absent: [], directories: [places.data], files };
    const mustForget = network.shared && (await stored.isThere());
    if (mustForget) await stored.forget(network, first, signal);
    const before = mustForget ? wanted : containerd.arrangement(wanted);
    const daemon = gateway === undefined ? dockerd : { ...dockerd, env: gatewayEnvironment(gateway) };
    // Started concurrently. Its failure surfaces where it is awaited, so that no start is left dangling.
    const socket = shell.localSocket(places.socket);
    socket.catch(() => undefined);
    const asked = guard.questions();
    // dockerd waits for its containerd by itself.
    const answers = async () => answersPing(await socket, signal, 2_000);
    await startReady(shell, { before, needs: [containerd.program], program: daemon, answers }, signal);
    if (gateway === undefined) return;
    // dockerd caches its plugin's address. Other dockerds of the machine read the same files and would wait for it.
    await withdrawSpec();
    if (guard.questions() === asked) throw await unasked(signal);
  }

  /** Another plugin of that name, or a dockerd without one: nothing would be denied. */
  async function unasked(signal: AbortSignal): Promise<RdError> {
    await stop(signal);
    return new RdError('ERR_DRIVER_TERMINAL', `dockerd does not ask its plugin ${places.plugin} about images`, {
      advice: `Look for another plugin of that name in /run/docker/plugins and /usr/lib/docker/plugins, and move it away.`,
    });
  }

  /** Recorded before dockerd starts: the next service has to open the same one. */
  async function openGuard(spec: EngineSpec): Promise<Gateway | undefined> {
    if (!spec.allowedImages.enabled) return undefined;
    await record.write({ spec });
    const gateway = await guard.hold(spec.allowedImages.patterns);
    const made = await shell.makeParents(places.pluginSpec);
    await record.write({ spec, gateway, ...(made === undefined ? {} : { made }) });
    await shell.write(places.pluginSpec, `unix://${places.pluginSocket}\n`);
    return gateway;
  }

  /** With the directories created for it; non-empty ones stay. */
  async function withdrawSpec(): Promise<void> {
    await shell.remove(places.pluginSpec);
    const started = await record.read();
    if (started === undefined || started === 'unreadable' || started.made === undefined) return;
    const { made, ...rest } = started;
    // Best effort: another attempt finds the directories gone.
    if (await shell.removeWay(places.pluginSpec, made)) await record.write(rest).catch(() => undefined);
  }

  /** Also clears what a killed engine left: the record proves that there may be something. */
  async function stop(signal: AbortSignal): Promise<void> {
    const started = await record.read();
    if (started === undefined) return;
    await stored.stop(signal);
    await shell.stop(dockerd.name, GRACE_MS, signal);
    await shell.stop(containerd.program.name, CONTAINERD_GRACE_MS, signal);
    await shell.clear(area);
    // Not before: dockerd queries the plugin until it has ended.
    await guard.release();
    if (started === 'unreadable' || started.spec.allowedImages.enabled) await withdrawSpec();
    await record.remove(places.run, places.isolated.run, places.isolated.data);
  }

  return {
    observe,
    perform: engineSteps({ record, guard, observe, start, stop }),
    release: () => guard.release(),
    images: mobyImages(() => shell.localSocket(places.socket)),
    companions: mobyCompanions(() => shell.localSocket(places.socket)),
  };
}

/** Stop timeout of a container in seconds. */
const GRACE_SECONDS = 10;
const ID = `${PRODUCT.name}.companion`;
const IMAGE = `${PRODUCT.name}.companion.image`;

interface Found extends Companion {
  container: string;
  running: boolean;
}

/** Containers with a dockerd restart policy, so that they restart with it; found by their labels. */
function mobyCompanions(socket: () => Promise<string>): CompanionContainers {
  async function find(signal: AbortSignal): Promise<Found[]> {
    const filters = encodeURIComponent(JSON.stringify({ label: [ID] }));
    const list = await askMoby(
      await socket(),
      { method: 'GET', path: `/containers/json?all=1&filters=${filters}` },
      signal,
    );
    return (Array.isArray(list) ? list : []).flatMap((container) => {
      if (!isObject(container) || typeof container.Id !== 'string' || !isObject(container.Labels)) return [];
      const { [ID]: id, [IMAGE]: image } = container.Labels;
      if (typeof id !== 'string' || typeof image !== 'string') return [];
      return [
        {
          id,
          image,
          container: container.Id,
          running: container.State === 'running' || container.State === 'restarting',
        },
      ];
    });
  }

  async function remove(id: string, signal: AbortSignal): Promise<void> {
    const at = await socket();
    for (const { container } of (await find(signal)).filter((found) => found.id === id)) {
      const stop = `/containers/${container}/stop?t=${GRACE_SECONDS}`;
      await askMoby(at, { method: 'POST', path: stop }, signal);
      await askMoby(at, { method: 'DELETE', path: `/containers/${container}?force=1&v=1` }, signal);
    }
  }

  return {
    async list(signal) {
      return (await find(signal)).map(({ id, image }) => ({ id, image }));
    },
    remove,
    async ensure({ id, image }, signal) {
      const at = await socket();
      const there = (await find(signal)).filter((found) => found.id === id);
      const [only] = there;
      if (only && there.length === 1 && only.image === image) {
        if (!only.running) await askMoby(at, { method: 'POST', path: `/containers/${only.container}/start` }, signal);
        return;
      }
      await remove(id, signal);
      const body = {
        Image: image,
        Labels: { [ID]: id, [IMAGE]: image },
        HostConfig: { RestartPolicy: { Name: 'always' }, Init: true },
      };
      const made = await askMoby(at, { method: 'POST', path: '/containers/create', body }, signal);
      const container = isObject(made) ? made.Id : undefined;
      if (typeof container !== 'string') throw new RdError('ERR_NOT_FOUND', `moby has no image ${image}`);
      try {
        await askMoby(at, { method: 'POST', path: `/containers/${container}/start` }, signal);
      } catch (error) {
        await remove(id, signal);
        throw error;
      }
    },
  };
}
