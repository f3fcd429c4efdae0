import type { Driver, DriverInfo, EngineStatus } from '../drivers/driver.ts';
import { RdError } from '../errors.ts';
import type { Clock } from '../os/clock.ts';
import type { Observed } from '../plan/observed.ts';
import type { LoopStatus } from './status.ts';
import type { Step } from './step.ts';

/** Observes all parts in parallel. Throws the drivers' errors. */
export async function observe(driver: Driver, signal: AbortSignal): Promise<Observed> {
  const [machine, moby, containerd, cluster] = await Promise.all([
    driver.machine.observe(signal),
    driver.engines.moby.observe(signal),
    driver.engines.containerd.observe(signal),
    driver.cluster ? driver.cluster.observe(signal) : ({ state: 'unsupported' } as const),
  ]);
  return { machine, engines: { moby, containerd }, cluster };
}

/** Limit of an observation. */
export const LOOK_LIMIT_MS = 30_000;

/**
 * `observe` with the limit `LOOK_LIMIT_MS`: a program that accepts a connection and never answers must not block the
 * loop. Throws `ERR_DRIVER_FAILED` then, and when the signal aborts.
 */
export async function observeInTime(driver: Driver, clock: Clock, signal: AbortSignal): Promise<Observed> {
  const stop = new AbortController();
  const done = new AbortController();
  const giveUp = () => stop.abort();
  signal.addEventListener('abort', giveUp, { once: true });
  if (signal.aborted) giveUp();
  clock.sleep(LOOK_LIMIT_MS, done.signal).then(giveUp);
  try {
    return await Promise.race([observe(driver, stop.signal), givenUp(stop.signal)]);
  } finally {
    done.abort();
    signal.removeEventListener('abort', giveUp);
  }
}

function givenUp(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const fail = () => {
      const text = `no answer within ${LOOK_LIMIT_MS / 1000} seconds.`;
      reject(new RdError('ERR_DRIVER_FAILED', text, { advice: 'Look at the logs of the engines; one of them hangs.' }));
    };
    if (signal.aborted) fail();
    else signal.addEventListener('abort', fail, { once: true });
  });
}

/** The status before the first successful observation; the conditions then say `NotObserved` or `ObservationFailed`. */
export function unobservedStatus(driver: DriverInfo): Pick<LoopStatus, 'machine' | 'engines' | 'cluster'> {
  const unknown = { state: 'unknown' } as const;
  return {
    machine: unknown,
    engines: { moby: unknown, containerd: unknown },
    cluster: driver.hasCluster ? unknown : { state: 'unsupported' },
  };
}

/**
 * The state that plans are based on: the observation, with a running start counted as done, so that changing settings
 * during a start shows the restart that it will cost.
 */
export function withStartDone(seen: Observed, underway: Step | undefined): Observed {
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
