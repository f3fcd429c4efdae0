import type {
  ClusterSpec,
  ClusterStatus,
  DriverInfo,
  EngineName,
  EngineSpec,
  EngineStatus,
  MachineSpec,
  MachineStatus,
} from '../drivers/driver.ts';
import { RdError } from '../errors.ts';
import type { Blocks, CarriedOptions } from '../settings/blocks.gen.ts';
import { blocksOf } from '../settings/blocks.ts';
import { parseByteSize } from '../settings/canonical.ts';
import type { Part } from '../settings/field.ts';
import { BLOCK_FIELDS } from '../settings/fields.gen.ts';
import type { Settings } from '../settings/settings.gen.ts';

/** The drivers' last observation. */
export interface Observed {
  /** The reason that this state is assumed, as a clause; absent for an observation. */
  assumed?: string;
  machine: MachineStatus;
  engines: Record<EngineName, EngineStatus>;
  cluster: ClusterStatus | { state: 'unsupported' };
}

export const ENGINE_NAMES: readonly EngineName[] = ['moby', 'containerd'];

/** The engines with a process, including unresponsive ones. */
export function busyEngines(observed: Observed): EngineName[] {
  return ENGINE_NAMES.filter((name) => observed.engines[name].state !== 'stopped');
}

/** True while an engine or the cluster has a process, so that a change can interrupt it. */
export function isUp(observed: Observed): boolean {
  return busyEngines(observed).length > 0 || clusterHasProcess(observed);
}

export function clusterHasProcess(observed: Observed): boolean {
  return observed.cluster.state === 'running' || observed.cluster.state === 'unresponsive';
}

/** Version of the cluster whose data is on disk, running or not; undefined where there is none. */
export function installedVersion(observed: Observed): string | undefined {
  return 'installedVersion' in observed.cluster ? observed.cluster.installedVersion : undefined;
}

/** The machine's part of the settings and blocks. Throws `ERR_SETTINGS_INVALID` for an invalid disk size. */
export function machineSpec(settings: Settings, blocks: Blocks): MachineSpec {
  const { virtualMachine, experimental, application } = settings;
  const diskSize = experimental.virtualMachine.diskSize;
  const diskBytes = parseByteSize(diskSize);
  if (diskBytes === undefined) {
    throw new RdError('ERR_SETTINGS_INVALID', `experimental.virtualMachine.diskSize "${diskSize}" is not a size.`, {
      advice: 'Write a number with a unit, such as 100GiB.',
    });
  }
  return {
    memoryGiB: virtualMachine.memoryInGB,
    cpus: virtualMachine.numberCPUs,
    diskBytes,
    type: virtualMachine.type,
    useRosetta: virtualMachine.useRosetta,
    mount: { type: virtualMachine.mount.type, ...experimental.virtualMachine.mount['9p'] },
    sshPortForwarder: experimental.virtualMachine.sshPortForwarder,
    adminAccess: application.adminAccess,
    ...carriedOptions('machine', blocks),
    hostPorts: blocks.machine.hostPorts.map(String),
  };
}

/** The container engine's part of the settings and blocks. */
export function engineSpec(settings: Settings, blocks: Blocks): EngineSpec {
  const { name, mobyStorageDriver, allowedImages } = settings.containerEngine;
  return {
    name,
    storageDriver: mobyStorageDriver,
    webAssembly: settings.experimental.containerEngine.webAssembly.enabled,
    allowedImages: { enabled: allowedImages.enabled, patterns: [...allowedImages.patterns] },
    ...carriedOptions('engine', blocks),
  };
}

/** The cluster's part of the settings and blocks, whether or not it is enabled. */
export function clusterSpec(settings: Settings, blocks: Blocks): ClusterSpec {
  const { version, port, options, ingress } = settings.kubernetes;
  return {
    version,
    port,
    traefik: options.traefik,
    flannel: options.flannel,
    spinkube: settings.experimental.kubernetes.options.spinkube,
    localhostOnly: ingress.localhostOnly,
    engine: settings.containerEngine.name,
    ...carriedOptions('cluster', blocks),
  };
}

/** Picks the members of the blocks that the specification of a part carries. */
function carriedOptions<P extends Part>(part: P, blocks: Blocks): CarriedOptions[P] {
  const names = new Set(BLOCK_FIELDS.filter((field) => field.part === part).map(({ path }) => path.split('.')[0]));
  return Object.assign({}, ...Object.entries(blocks).map(([name, block]) => (names.has(name) ? block : {})));
}

/** The desired machine, engine and cluster. */
export interface Goal {
  on: boolean;
  machine: MachineSpec;
  engine: EngineSpec;
  /** Absent where the cluster is disabled or the driver has none. */
  cluster?: ClusterSpec;
  /** Delete the cluster's data; `cluster` is then absent. */
  resetCluster?: true;
}

/** The desired state that the controllers converge to: settings, blocks and power. */
export interface DesiredBackend extends Blocks {
  settings: Settings;
  power: 'started' | 'stopped';
}

/** Picks settings, blocks and power, leaving out any other members. */
export function backendOf(state: DesiredBackend): DesiredBackend {
  return { settings: state.settings, ...blocksOf(state), power: state.power };
}

/** Returns the goal that a desired state describes on this driver. */
export function goalOf({ settings, power, ...blocks }: DesiredBackend, driver: DriverInfo): Goal {
  const goal: Goal = {
    on: power === 'started',
    machine: machineSpec(settings, blocks),
    engine: engineSpec(settings, blocks),
  };
  return driver.hasCluster && settings.kubernetes.enabled ? { ...goal, cluster: clusterSpec(settings, blocks) } : goal;
}
