import { join } from 'node:path';
import type { EngineDriver, EngineSpec, EngineStatus } from '../driver.ts';
import type { EngineArea, Shell } from '../shell.ts';
import { containerdPlaces } from './containerd-config.ts';
import { containerdDaemon } from './containerd-daemon.ts';
import { containerdWorkload, endTasks } from './containerd-tasks.ts';
import { endedPrograms } from './ended.ts';
import { engineRecord, sameSpec } from './engine-record.ts';
import { refuseUnsupported } from './refusal.ts';

const GRACE_MS = 10_000;

/**
 * containerd as the engine. Tasks end with the engine; images and container records stay, in every namespace (clients such
 * as nerdctl use `default`). It brings no network of its own: containers join the host's network or a client's.
 */
export function containerdEngine(shell: Shell): EngineDriver {
  const run = join(shell.places.run, 'containerd');
  const places = containerdPlaces(join(shell.places.data, 'containerd'), run);
  const record = engineRecord(shell, `${shell.places.run}/containerd.json`);
  const daemon = containerdDaemon(shell, places, 'containerd');
  const area: EngineArea = { containerd: places.socket, state: places.state, directories: [run, places.root] };

  async function observe(signal: AbortSignal): Promise<EngineStatus> {
    const spec = await record.read();
    if (spec === undefined) return { state: 'stopped' };
    const ended = await endedPrograms(shell, [daemon.program], area);
    if (ended) return ended;
    const version = await daemon.version(signal);
    if (version === undefined) {
      return { state: 'unresponsive', message: `containerd does not answer on ${places.socket}` };
    }
    if (spec === 'unreadable') {
      return { state: 'unresponsive', message: 'the record of how containerd was started is damaged' };
    }
    const endpoint = `unix://${await shell.localSocket(places.socket)}`;
    return { state: 'running', spec, endpoint, version, workload: await containerdWorkload(daemon, signal) };
  }

  async function start(spec: EngineSpec, signal: AbortSignal): Promise<void> {
    refuseUnsupported(spec);
    const found = await observe(signal);
    if (found.state === 'running' && sameSpec(found.spec, spec)) return;
    // Also where it is called stopped: a crash may have left a record and files of half an engine.
    await stop(signal);
    await record.write(spec);
    await daemon.start(signal);
  }

  async function stop(signal: AbortSignal): Promise<void> {
    if ((await record.read()) === undefined) return;
    if ((await daemon.version(signal)) !== undefined) await endTasks(shell, daemon, signal);
    await shell.stop('containerd', GRACE_MS, signal);
    await shell.clear(area);
    await shell.remove(run);
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
