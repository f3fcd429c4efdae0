import semver from 'semver';
import { RdError } from '../../../errors.ts';
import type {
  ClusterSpec,
  ClusterStep,
  EngineName,
  EngineSpec,
  EngineStep,
  MachineSpec,
  MachineStep,
  Workload,
} from '../../driver.ts';

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
  /** Images of each engine; they survive a stop and a switch. */
  images: string[];
  containers: { name: string; running: boolean }[];
  volumes: string[];
  /** The engine has been started before, so its initial workload exists. */
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
      /** When the cluster starts to respond, in milliseconds since the epoch. */
      readyAt: number;
    };

/** A requested step, in order of request. */
export interface StepRecord {
  at: number;
  part: 'machine' | EngineName | 'cluster';
  do: string;
  outcome: 'done' | 'failed';
}

/** Maximum number of remembered steps. */
const LOG_LENGTH = 500;

/** Returns the initial state. */
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

export function withRecord(model: Model, record: StepRecord): Model {
  return { ...model, log: [...model.log, record].slice(-LOG_LENGTH) };
}

/** Cluster versions that the simulation offers, newest first. Fixed: unrelated to actual releases. */
export const SIMULATED_VERSIONS: readonly string[] = [
  '1.33.4',
  '1.33.3',
  '1.32.8',
  '1.32.7',
  '1.32.1',
  '1.31.12',
  '1.31.5',
  '1.31.2',
  '1.30.14',
  '1.30.2',
  '1.30.1',
  '1.29.15',
  '1.29.4',
  '1.28.15',
];

/** The content of an engine after its first start. */
export interface FirstWorkload {
  images: number;
  containers: number;
}

/** Returns the model after a machine step. Stopping the machine stops everything in it. Throws `ERR_DRIVER_FAILED`. Pure. */
export function machineAfter(model: Model, step: MachineStep): Model {
  switch (step.do) {
    case 'start':
      if (model.machine.state === 'broken') throw refusalError('the machine is broken and has to be stopped first');
      return { ...model, machine: { state: 'on', spec: step.spec } };
    case 'adjust':
      if (model.machine.state !== 'on') throw refusalError('the machine does not run');
      return { ...model, machine: { state: 'on', spec: step.spec } };
    case 'stop':
      return {
        ...model,
        machine: model.machine.state === 'absent' ? model.machine : { state: 'off' },
        engines: { moby: stoppedEngine(model.engines.moby), containerd: stoppedEngine(model.engines.containerd) },
        cluster: stoppedCluster(model.cluster),
      };
  }
}

/**
 * Returns the model after an engine step. Throws `ERR_DRIVER_FAILED` for steps that a real machine could not perform: two engines, an engine without
 * a machine, and stopping the engine of a running cluster. Pure.
 */
export function engineAfter(model: Model, name: EngineName, step: EngineStep, first: FirstWorkload): Model {
  const engine = model.engines[name];
  const other = name === 'moby' ? 'containerd' : 'moby';
  if (step.do === 'stop') {
    if (model.cluster.state === 'running') throw refusalError(`a cluster runs on ${name}`);
    return withEngine(model, name, stoppedEngine(engine));
  }
  if (model.machine.state !== 'on') throw refusalError('the machine does not run');
  if (step.spec.name !== name) throw refusalError(`${name} cannot run as ${step.spec.name}`);
  if (step.do === 'adjust') {
    if (engine.process.state !== 'running') throw refusalError(`${name} does not run`);
    return withEngine(model, name, { ...engine, process: { state: 'running', spec: step.spec } });
  }
  if (model.engines[other].process.state !== 'stopped') throw refusalError(`${other} is still there`);
  if (engine.process.state === 'hung') throw refusalError(`${name} hangs and has to be stopped first`);
  const filled = engine.used ? engine : withWorkload(engine, first);
  return withEngine(model, name, { ...filled, process: { state: 'running', spec: step.spec } });
}

/**
 * Returns the model after a cluster step. Throws `ERR_DRIVER_FAILED` without its engine, `ERR_DRIVER_TERMINAL` for a version that is not offered and
 * for a downgrade. Pure.
 */
export function clusterAfter(model: Model, step: ClusterStep, readyAt: number): Model {
  const { cluster } = model;
  if (step.do === 'stop') return { ...model, cluster: stoppedCluster(cluster) };
  if (step.do === 'reset') {
    if (cluster.state === 'running' || cluster.state === 'hung') throw refusalError('the cluster is still running');
    return { ...model, cluster: { state: 'absent' } };
  }
  const { version, engine } = step.spec;
  if (model.engines[engine].process.state !== 'running') throw refusalError(`${engine} does not run`);
  if (cluster.state === 'hung') throw refusalError('the cluster hangs and has to be stopped first');
  if (!SIMULATED_VERSIONS.includes(version)) {
    throw new RdError('ERR_DRIVER_TERMINAL', `cluster version ${version} is not among the simulated ones.`, {
      advice: `Set kubernetes.version to one of ${SIMULATED_VERSIONS.join(', ')}.`,
    });
  }
  if (cluster.state !== 'absent' && semver.lt(version, cluster.installedVersion)) {
    throw new RdError('ERR_DRIVER_TERMINAL', `version ${version} cannot use the data of ${cluster.installedVersion}.`, {
      advice: 'Reset the cluster first, or set kubernetes.version to the installed version or a later one.',
    });
  }
  const workloads = cluster.state === 'absent' ? ['kube-system/coredns'] : cluster.workloads;
  return { ...model, cluster: { state: 'running', installedVersion: version, workloads, spec: step.spec, readyAt } };
}

function withEngine(model: Model, name: EngineName, engine: EngineModel): Model {
  return { ...model, engines: { ...model.engines, [name]: engine } };
}

function stoppedEngine(engine: EngineModel): EngineModel {
  const containers = engine.containers.map((container) => ({ ...container, running: false }));
  return { ...engine, process: { state: 'stopped' }, containers };
}

function stoppedCluster(cluster: ClusterModel): ClusterModel {
  if (cluster.state === 'absent') return cluster;
  const { installedVersion, workloads } = cluster;
  return { state: 'stopped', installedVersion, workloads };
}

function withWorkload(engine: EngineModel, { images, containers }: FirstWorkload): EngineModel {
  return {
    ...engine,
    used: true,
    images: Array.from({ length: images }, (_, index) => `simulated/image-${index + 1}:latest`),
    containers: Array.from({ length: containers }, (_, index) => ({ name: `simulated-${index + 1}`, running: true })),
  };
}

function refusalError(why: string): RdError {
  return new RdError('ERR_DRIVER_FAILED', `${why}.`);
}
