import type { Driver, DriverInfo } from '../../src/drivers/driver.ts';
import { type Simulation, simulatedDriver } from '../../src/drivers/machines/simulated/driver.ts';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import { emptyModel, type Model, type StepRecord } from '../../src/drivers/machines/simulated/model.ts';
import { hasEnded, type ModelStore } from '../../src/drivers/machines/simulated/store.ts';

/** An in-memory simulation with direct access to its model. */
export interface MemorySimulation {
  driver: Driver;
  model(): Model;
  /** Changes the model outside the driver, to simulate drift. */
  meddle(change: (model: Model) => Model): void;
  log(): readonly StepRecord[];
}

/** For tests: no file, no latency and no faults unless given. */
export function memorySimulation(
  options: Partial<Omit<Simulation, 'store' | 'info'>> & { model?: Model; info?: Partial<DriverInfo> } = {},
): MemorySimulation {
  const { model = emptyModel(), info, ...rest } = options;
  const store = memoryStore(model);
  const driver = simulatedDriver({
    now: () => 0,
    sleep: () => Promise.resolve(),
    latency: () => 0,
    faults: () => undefined,
    firstWorkload: { images: 0, containers: 0 },
    clusterReadyMs: 0,
    ...rest,
    info: { ...SIMULATED_INFO, ...info },
    store,
  });
  return {
    driver,
    model: store.load,
    meddle: (change) => store.save(change(store.load())),
    log: () => store.load().log,
  };
}

/** Keeps the model for the lifetime of the process. */
function memoryStore(model: Model): ModelStore {
  let kept = structuredClone(model);
  const watchers = new Set<() => void>();
  return {
    load: () => structuredClone(kept),
    save(next) {
      const before = kept;
      kept = structuredClone(next);
      if (hasEnded(before, kept)) for (const ended of [...watchers]) ended();
    },
    watch(ended) {
      watchers.add(ended);
      return () => watchers.delete(ended);
    },
  };
}
