import type { Driver, EngineStatus } from '../drivers/driver.ts';
import type { Observed } from '../plan/observed.ts';
import type { Step } from './step.ts';

/** Looks at everything, at the same time. Throws what a driver throws. */
export async function observe(driver: Driver, signal: AbortSignal): Promise<Observed> {
  const [machine, moby, containerd, cluster] = await Promise.all([
    driver.machine.observe(signal),
    driver.engines.moby.observe(signal),
    driver.engines.containerd.observe(signal),
    driver.cluster ? driver.cluster.observe(signal) : ({ state: 'unsupported' } as const),
  ]);
  return { machine, engines: { moby, containerd }, cluster };
}

/** What a status shows before the first look; the conditions then say `NotObserved`. */
export function unseen(driver: Driver): Observed {
  return {
    machine: { state: 'off' },
    engines: { moby: { state: 'stopped' }, containerd: { state: 'stopped' } },
    cluster: driver.cluster ? { state: 'absent' } : { state: 'unsupported' },
  };
}

/**
 * What a plan has to reckon with: what was seen, and a start that is under way as if it had succeeded. A change of settings
 * during a start then shows the restart that it will cost.
 */
export function reckoned(seen: Observed, underway: Step | undefined): Observed {
  if (underway?.step.do !== 'start') return seen;
  switch (underway.part) {
    case 'machine':
      return { ...seen, machine: { state: 'on', spec: underway.step.spec } };
    case 'engine': {
      const starting: EngineStatus = {
        state: 'running',
        spec: underway.step.spec,
        endpoint: '',
        version: '',
        workload: { runningContainers: 0 },
      };
      return { ...seen, engines: { ...seen.engines, [underway.engine]: starting } };
    }
    case 'cluster': {
      const { spec } = underway.step;
      const known = 'installedVersion' in seen.cluster ? seen.cluster.installedVersion : spec.version;
      return { ...seen, cluster: { state: 'running', installedVersion: spec.version || known, spec, ready: false } };
    }
  }
}
