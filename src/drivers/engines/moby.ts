import type { EngineDriver, EngineSpec, EngineStatus } from '../driver.ts';
import type { EngineArea, Program, Shell } from '../shell.ts';
import { containerdDaemon } from './containerd-daemon.ts';
import { endedPrograms } from './ended.ts';
import { engineRecord, sameSpec } from './engine-record.ts';
import { mobyArguments, mobyConfig, mobyPlaces, SHUTDOWN_SECONDS } from './moby-config.ts';
import { answersPing, mobyFacts } from './moby-health.ts';
import { untilReady } from './ready.ts';
import { refuseUnsupported } from './refusal.ts';

/** Containers that restart by themselves come up before dockerd answers. */
const READY_MS = 120_000;
const CONTAINERD_GRACE_MS = 10_000;
/** dockerd's own limit for its containers and some time for itself. */
const GRACE_MS = (SHUTDOWN_SECONDS + 10) * 1000;

/**
 * dockerd with a containerd of its own. Containers end with the engine (restart policies apply at the next start); images,
 * volumes and stopped containers stay. `cgroup` is the control group that holds the containers.
 */
export function mobyEngine(shell: Shell, cgroup: string): EngineDriver {
  const places = mobyPlaces(shell.places);
  const record = engineRecord(shell, `${shell.places.run}/moby.json`);
  const containerd = containerdDaemon(shell, places.containerd, 'moby-containerd');
  const dockerd: Program = { name: 'dockerd', argv: mobyArguments(places) };
  const area: EngineArea = {
    containerd: places.containerd.socket,
    state: places.containerd.state,
    directories: [places.run, places.data, places.containerd.root],
    cgroup,
  };

  async function observe(signal: AbortSignal): Promise<EngineStatus> {
    const spec = await record.read();
    if (spec === undefined) return { state: 'stopped' };
    const ended = await endedPrograms(shell, [containerd.program, dockerd], area);
    if (ended) return ended;
    const socket = await shell.localSocket(places.socket);
    if (!(await answersPing(socket, signal))) {
      return { state: 'unresponsive', message: `dockerd does not answer on ${socket}` };
    }
    if (spec === 'unreadable')
      return { state: 'unresponsive', message: 'the record of how moby was started is damaged' };
    return { state: 'running', spec, endpoint: `unix://${socket}`, ...(await mobyFacts(socket, signal)) };
  }

  async function start(spec: EngineSpec, signal: AbortSignal): Promise<void> {
    refuseUnsupported(spec);
    const found = await observe(signal);
    if (found.state === 'running' && sameSpec(found.spec, spec)) return;
    // Also where it is called stopped: a crash may have left a record and files of half an engine.
    await stop(signal);

    const network = await shell.network();
    await record.write(spec);
    await shell.makeDirectory(places.data);
    await shell.write(places.config, `${JSON.stringify(mobyConfig(spec, places, network, cgroup), null, 2)}\n`);
    await containerd.start(signal);
    await shell.start(dockerd);
    const socket = await shell.localSocket(places.socket);
    await untilReady(shell, dockerd, () => answersPing(socket, signal, 2_000), READY_MS, signal);
  }

  /** Also clears what a killed engine left: the record tells that there may be something. */
  async function stop(signal: AbortSignal): Promise<void> {
    if ((await record.read()) === undefined) return;
    await shell.stop(dockerd.name, GRACE_MS, signal);
    await shell.stop(containerd.program.name, CONTAINERD_GRACE_MS, signal);
    await shell.clear(area);
    await shell.remove(places.run);
    await record.remove();
  }

  return {
    observe,
    async perform(step, signal) {
      if (step.do === 'stop') await stop(signal);
      // Nothing of an engine here can be changed while it runs, so adjusting means being what was asked for.
      else await start(step.spec, signal);
    },
  };
}
