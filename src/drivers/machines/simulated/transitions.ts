import semver from 'semver';
import { RdError } from '../../../errors.ts';
import type { ClusterStep, EngineName, EngineStep, MachineStep } from '../../driver.ts';
import type { ClusterModel, EngineModel, Model } from './model.ts';
import { SIMULATED_VERSIONS } from './versions.ts';

/** The content of an engine after its first start. */
export interface FirstWorkload {
  images: number;
  containers: number;
}

/** Pure: the model after a machine step. Stopping the machine stops everything in it. Throws `ERR_DRIVER_FAILED`. */
export function machineAfter(model: Model, step: MachineStep): Model {
  switch (step.do) {
    case 'start':
      if (model.machine.state === 'broken') throw refused('the machine is broken and has to be stopped first');
      return { ...model, machine: { state: 'on', spec: step.spec } };
    case 'adjust':
      if (model.machine.state !== 'on') throw refused('the machine does not run');
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
 * Pure: the model after an engine step. Refuses, with `ERR_DRIVER_FAILED`, what a real machine could not do: two engines, an engine without
 * a machine, and stopping the engine of a running cluster.
 */
export function engineAfter(model: Model, name: EngineName, step: EngineStep, first: FirstWorkload): Model {
  const engine = model.engines[name];
  const other = name === 'moby' ? 'containerd' : 'moby';
  if (step.do === 'stop') {
    if (model.cluster.state === 'running') throw refused(`a cluster runs on ${name}`);
    return withEngine(model, name, stoppedEngine(engine));
  }
  if (model.machine.state !== 'on') throw refused('the machine does not run');
  if (step.spec.name !== name) throw refused(`${name} cannot run as ${step.spec.name}`);
  if (step.do === 'adjust') {
    if (engine.process.state !== 'running') throw refused(`${name} does not run`);
    return withEngine(model, name, { ...engine, process: { state: 'running', spec: step.spec } });
  }
  if (model.engines[other].process.state !== 'stopped') throw refused(`${other} is still there`);
  if (engine.process.state === 'hung') throw refused(`${name} hangs and has to be stopped first`);
  const filled = engine.used ? engine : withWorkload(engine, first);
  return withEngine(model, name, { ...filled, process: { state: 'running', spec: step.spec } });
}

/**
 * Pure: the model after a cluster step. Throws `ERR_DRIVER_FAILED` without its engine, `ERR_DRIVER_TERMINAL` for a version that is not
 * offered and for a downgrade.
 */
export function clusterAfter(model: Model, step: ClusterStep, readyAt: number): Model {
  const { cluster } = model;
  if (step.do === 'stop') return { ...model, cluster: stoppedCluster(cluster) };
  if (step.do === 'reset') {
    if (cluster.state === 'running' || cluster.state === 'hung') throw refused('the cluster still runs');
    return { ...model, cluster: { state: 'absent' } };
  }
  const { version, engine } = step.spec;
  if (model.engines[engine].process.state !== 'running') throw refused(`${engine} does not run`);
  if (cluster.state === 'hung') throw refused('the cluster hangs and has to be stopped first');
  if (!SIMULATED_VERSIONS.includes(version)) {
    throw new RdError('ERR_DRIVER_TERMINAL', `cluster version ${version} is not among the simulated ones.`, {
      advice: `Set kubernetes.version to one of ${SIMULATED_VERSIONS.join(', ')}.`,
    });
  }
  if (cluster.state !== 'absent' && semver.lt(version, cluster.installedVersion)) {
    throw new RdError('ERR_DRIVER_TERMINAL', `version ${version} cannot use the data of ${cluster.installedVersion}.`, {
      advice: 'Reset the cluster first, or ask for the installed version or a later one.',
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

function refused(why: string): RdError {
  return new RdError('ERR_DRIVER_FAILED', `${why}.`);
}
