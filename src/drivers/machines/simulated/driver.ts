import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type Duplex, duplexPair } from 'node:stream';
import { RdError } from '../../../errors.ts';
import type {
  ClusterDriver,
  ClusterStatus,
  Driver,
  DriverInfo,
  EngineDriver,
  EngineName,
  EngineStatus,
  MachineDriver,
  ServicePort,
} from '../../driver.ts';
import { simulatedCompanions, simulatedImages } from './images.ts';
import {
  clusterAfter,
  engineAfter,
  type FirstWorkload,
  type Model,
  machineAfter,
  SIMULATED_VERSIONS,
  type StepRecord,
  withRecord,
  workloadOf,
} from './model.ts';
import type { FaultSource } from './options.ts';
import type { ModelStore } from './store.ts';

/** The parts of a simulation, injected for tests. */
export interface Simulation {
  info: DriverInfo;
  store: ModelStore;
  now: () => number;
  /** Rejects when the signal aborts. */
  sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  latency: (part: StepRecord['part'], step: string) => number;
  faults: FaultSource;
  firstWorkload: FirstWorkload;
  /** Milliseconds between the start of the cluster and its first response. */
  clusterReadyMs: number;
}

/** Creates a driver over a model. Each step takes its time, may fail, and then changes the model atomically. */
export function simulatedDriver(simulation: Simulation): Driver {
  const { info, store, now } = simulation;
  const machine: MachineDriver = {
    observe: (signal) => look('machine', signal, ({ machine }) => machine),
    perform: (step, signal) => act('machine', step.do, signal, (model) => machineAfter(model, step)),
  };
  const engine = (name: EngineName): EngineDriver => ({
    observe: (signal) => look(name, signal, (model) => engineStatus(name, model)),
    perform: (step, signal) =>
      act(name, step.do, signal, (model) => engineAfter(model, name, step, simulation.firstWorkload)),
    images: simulatedImages(name, store),
    ...(name === 'moby' ? { companions: simulatedCompanions(name, store) } : {}),
  });
  const cluster: ClusterDriver = {
    versions: async () => SIMULATED_VERSIONS,
    observe: (signal) => look('cluster', signal, (model) => clusterStatus(model, now())),
    perform: (step, signal) =>
      act('cluster', step.do, signal, (model) => clusterAfter(model, step, now() + simulation.clusterReadyMs)),
    async connect(target, signal) {
      const status = await look('cluster', signal, (model) => clusterStatus(model, now()));
      if (signal.aborted) throw cancelledError('cluster', 'connect');
      if (status.state === 'running' && status.ready) return serviceConnection(target);
      throw new RdError('ERR_NOT_READY', 'the simulated cluster does not run');
    },
  };
  return {
    ...info,
    machine,
    engines: { moby: engine('moby'), containerd: engine('containerd') },
    ...(info.hasCluster ? { cluster } : {}),
    watch: store.watch,
    keeps: store.file === undefined ? [] : [store.file],
    keptKind: 'file',
  };

  async function look<T>(part: StepRecord['part'], signal: AbortSignal, read: (model: Model) => T): Promise<T> {
    await injectFault(part, 'observe', 'before', simulation.faults(part, 'observe'), signal);
    return read(store.load());
  }

  async function act(
    part: StepRecord['part'],
    step: string,
    signal: AbortSignal,
    change: (model: Model) => Model,
  ): Promise<void> {
    const fault = simulation.faults(part, step);
    try {
      await injectFault(part, step, 'before', fault, signal);
      const ms = simulation.latency(part, step);
      if (ms > 0) await simulation.sleep(ms, signal);
      if (signal.aborted) throw cancelledError(part, step);
      store.save(change(store.load()));
      await injectFault(part, step, 'after', fault, signal);
    } catch (error) {
      note(part, step, 'failed');
      throw signal.aborted ? cancelledError(part, step) : error;
    }
    note(part, step, 'done');
  }

  function note(part: StepRecord['part'], step: string, outcome: StepRecord['outcome']): void {
    store.save(withRecord(store.load(), { at: now(), part, do: step, outcome }));
  }
}

async function injectFault(
  part: string,
  step: string,
  when: 'before' | 'after',
  fault: ReturnType<FaultSource>,
  signal: AbortSignal,
): Promise<void> {
  if (fault?.kind === 'error' && fault.when === when) throw fault.error;
  if (fault?.kind !== 'hang' || when !== 'before') return;
  await new Promise<never>((_resolve, reject) => {
    const cancel = () => reject(cancelledError(part, step));
    if (signal.aborted) cancel();
    else signal.addEventListener('abort', cancel, { once: true });
  });
}

function cancelledError(part: string, step: string): RdError {
  return new RdError('ERR_CANCELLED', `${part} ${step} was canceled.`);
}

function engineStatus(name: EngineName, { engines }: Model): EngineStatus {
  const { process } = engines[name];
  switch (process.state) {
    case 'stopped':
      return { state: 'stopped' };
    case 'hung':
      return { state: 'unresponsive', message: `the simulated ${name} does not respond` };
    case 'running':
      return {
        state: 'running',
        spec: process.spec,
        endpoint: `simulated:${name}`,
        version: 'simulated',
        workload: workloadOf(engines[name]),
      };
  }
}

function clusterStatus({ cluster }: Model, now: number): ClusterStatus {
  switch (cluster.state) {
    case 'absent':
      return { state: 'absent' };
    case 'stopped':
      return { state: 'stopped', installedVersion: cluster.installedVersion };
    case 'hung':
      return {
        state: 'unresponsive',
        installedVersion: cluster.installedVersion,
        message: 'the simulated cluster does not respond',
      };
    case 'running': {
      const { installedVersion, spec, readyAt } = cluster;
      return { state: 'running', installedVersion, spec, ready: now >= readyAt, kubeconfig: 'simulated:kubeconfig' };
    }
  }
}

/** A service of the simulated cluster. Its ports have a number and a name, like those of a real one. */
interface SimulatedService {
  id: string;
  ports: readonly { number: number; name: string; server: Server }[];
}

/** The servers never listen: they serve HTTP on connections passed to them. */
const SERVICES: readonly SimulatedService[] = [
  { id: 'default/kubernetes', ports: [{ number: 443, name: 'https', server: createServer(noApiServer) }] },
  { id: 'default/web', ports: [{ number: 80, name: 'http', server: createServer(hello) }] },
];

/** Returns the near end of a connection to a service. Throws `ERR_NOT_FOUND` for an unknown service. */
function serviceConnection({ namespace, service, port }: ServicePort): Duplex {
  const id = `${namespace}/${service}`;
  const match = SERVICES.find((each) => each.id === id);
  if (!match) throw new RdError('ERR_NOT_FOUND', `the simulated cluster has no service ${id}`);
  const open = match.ports.find(({ number, name }) => number === port || name === port);
  if (!open) throw new RdError('ERR_NOT_FOUND', `the service ${id} has no port ${port}`);
  const [near, far] = duplexPair();
  // A client that disconnects early must not crash the process; a stream pair does not propagate resets.
  far.on('error', () => undefined);
  near.once('close', () => far.destroy());
  far.once('close', () => {
    if (!far.writableFinished) near.destroy();
  });
  open.server.emit('connection', far);
  return near;
}

function hello(request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' });
  response.end(`simulated web: ${request.method} ${request.url}\n`);
}

/** Answers requests to the API of the cluster, which the simulation does not have. */
function noApiServer(_request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(400, { 'content-type': 'text/plain; charset=utf-8' });
  response.end('simulated: there is no API server, and no TLS\n');
}
