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
import { parseByteSize } from '../settings/canonical.ts';
import type { MachineOptions } from '../settings/machine-options.gen.ts';
import type { Settings } from '../settings/settings.gen.ts';

/** The drivers' last observation. */
export interface Observed {
  /** Why this was not observed but assumed, as a clause; absent for an observation. */
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

/** The machine's part of the settings, and its own options. Throws `ERR_SETTINGS_INVALID` for an invalid disk size. */
export function machineSpec(settings: Settings, options: MachineOptions): MachineSpec {
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
    mounts: options.mounts,
    hostPorts: options.hostPorts.map(String),
    pauseAfterMinutes: options.pauseAfterMinutes,
  };
}

/** The container engine's part of the settings. */
export function engineSpec(settings: Settings): EngineSpec {
  const { name, mobyStorageDriver, allowedImages } = settings.containerEngine;
  return {
    name,
    storageDriver: mobyStorageDriver,
    webAssembly: settings.experimental.containerEngine.webAssembly.enabled,
    allowedImages: { enabled: allowedImages.enabled, patterns: [...allowedImages.patterns] },
  };
}

/** The cluster's part of the settings, whether or not it is enabled. */
export function clusterSpec(settings: Settings): ClusterSpec {
  const { version, port, options, ingress } = settings.kubernetes;
  return {
    version,
    port,
    traefik: options.traefik,
    flannel: options.flannel,
    spinkube: settings.experimental.kubernetes.options.spinkube,
    localhostOnly: ingress.localhostOnly,
    engine: settings.containerEngine.name,
  };
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

/** The desired state that the controllers converge to. */
export interface DesiredBackend {
  settings: Settings;
  /** Of the machine, beside the settings. */
  machine: MachineOptions;
  power: 'started' | 'stopped';
}

/** The goal that a desired state describes on this driver. */
export function goalOf({ settings, machine, power }: DesiredBackend, driver: DriverInfo): Goal {
  const goal: Goal = { on: power === 'started', machine: machineSpec(settings, machine), engine: engineSpec(settings) };
  return driver.hasCluster && settings.kubernetes.enabled ? { ...goal, cluster: clusterSpec(settings) } : goal;
}
