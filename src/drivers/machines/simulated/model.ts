import type { ClusterSpec, EngineName, EngineSpec, MachineSpec, Workload } from '../../driver.ts';

/** The whole state of a simulated desktop. Plain data, persisted between runs. */
export interface Model {
  format: 1;
  machine:
    | { state: 'absent' }
    | { state: 'off' }
    | { state: 'on'; spec: MachineSpec }
    | { state: 'broken'; reason: string; message: string };
  engines: Record<EngineName, EngineModel>;
  cluster: ClusterModel;
  /** The newest steps, oldest first. */
  log: StepRecord[];
}

export interface EngineModel {
  process: { state: 'stopped' } | { state: 'running'; spec: EngineSpec } | { state: 'hung' };
  /** One per engine; they survive a stop and a switch. */
  images: string[];
  containers: { name: string; running: boolean }[];
  volumes: string[];
  /** It has been started before, so its initial workload exists. */
  used: boolean;
}

export type ClusterModel =
  | { state: 'absent' }
  | { state: 'stopped' | 'hung'; installedVersion: string; workloads: string[] }
  | {
      state: 'running';
      installedVersion: string;
      workloads: string[];
      spec: ClusterSpec;
      /** Milliseconds since the epoch when it starts to respond. */
      readyAt: number;
    };

/** A requested step, in order of request. */
export interface StepRecord {
  at: number;
  part: 'machine' | EngineName | 'cluster';
  do: string;
  outcome: 'done' | 'failed';
}

/** How many steps are remembered. */
const LOG_LENGTH = 500;

/** The initial state. */
export function emptyModel(): Model {
  const engine = (): EngineModel => ({
    process: { state: 'stopped' },
    images: [],
    containers: [],
    volumes: [],
    used: false,
  });
  return {
    format: 1,
    machine: { state: 'absent' },
    engines: { moby: engine(), containerd: engine() },
    cluster: { state: 'absent' },
    log: [],
  };
}

export function workloadOf({ containers, images }: EngineModel): Workload {
  const running = containers.filter((container) => container.running).map(({ name }) => ({ name, returns: false }));
  return {
    runningContainers: running.length,
    containers: containers.length,
    images: images.length,
    running,
  };
}

export function noted(model: Model, record: StepRecord): Model {
  return { ...model, log: [...model.log, record].slice(-LOG_LENGTH) };
}
