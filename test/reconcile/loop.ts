import { onTestFinished } from 'vitest';
import type { Driver, DriverInfo } from '../../src/drivers/driver.ts';
import { emptyModel, type Model } from '../../src/drivers/machines/simulated/model.ts';
import type { Fault, FaultSource } from '../../src/drivers/machines/simulated/options.ts';
import { type ErrorCode, RdError } from '../../src/errors.ts';
import type { Clock } from '../../src/os/clock.ts';
import type { Desired, LoopStatus } from '../../src/reconcile/contract.ts';
import { createControllers } from '../../src/reconcile/controllers.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import type { Settings } from '../../src/settings/settings.gen.ts';
import { memorySimulation } from '../helpers/memory-simulation.ts';
import { createVirtualClock } from './virtual-clock.ts';
import { settingsWith } from './worlds.ts';

/** The defaults without a cluster. */
export const NO_CLUSTER = settingsWith({ 'kubernetes.enabled': false });

interface Setup {
  settings?: Settings;
  power?: Desired['power'];
  model?: Model;
  faults?: FaultSource;
  latency?: number;
  info?: Partial<DriverInfo>;
  clusterReadyMs?: number;
  /** What the loop drives instead of the simulation. */
  around?(driver: Driver, clock: Clock): Driver;
}

/** A loop over a simulation, on a clock that the test advances. */
export function start({
  settings = NO_CLUSTER,
  power = 'started',
  model = emptyModel(),
  latency = 0,
  around = (driver) => driver,
  ...rest
}: Setup = {}) {
  const clock = createVirtualClock();
  const simulation = memorySimulation({
    model,
    now: clock.now,
    sleep: clock.sleep,
    latency: () => latency,
    ...rest,
  });
  const states: string[] = [];
  const log: string[] = [];
  const desired = { settings, ...DEFAULT_BLOCKS, power, generation: 1 };
  const controllers = createControllers({
    driver: around(simulation.driver, clock),
    desired,
    clock,
    random: () => 0.5,
    log: (_level, message) => void log.push(message),
  });
  const note = (status: LoopStatus) => {
    if (states.at(-1) !== status.backendState) states.push(status.backendState);
  };
  note(controllers.status());
  controllers.onChange(note);
  onTestFinished(() => controllers.close());
  let generation = 1;
  return {
    clock,
    simulation,
    controllers,
    states,
    log,
    desire: (next: Partial<Desired>) => {
      generation++;
      Object.assign(desired, next);
      controllers.desire({ ...desired, generation });
    },
    steps: () => simulation.log().map((record) => `${record.part} ${record.do} ${record.outcome}`),
    condition: (type: string) => controllers.status().conditions.find((condition) => condition.type === type),
  };
}

/** Fails the named steps this many times. */
export function failing(times: Record<string, number>, code: ErrorCode = 'ERR_DRIVER_FAILED'): FaultSource {
  const left = new Map(Object.entries(times));
  return (part, step): Fault | undefined => {
    const name = `${part} ${step}`;
    const count = left.get(name) ?? 0;
    if (count <= 0) return undefined;
    left.set(name, count - 1);
    return {
      kind: 'error',
      when: 'before',
      error: new RdError(code, 'the disk is full.', { advice: 'Free some space.' }),
    };
  };
}
