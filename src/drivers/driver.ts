import type { Duplex } from 'node:stream';
import type { SettingPath } from '../settings/settings.gen.ts';
import type { CompanionContainers, ImageStore } from './engine-powers.ts';

export type { Companion, CompanionContainers, ImageStore, OpenImage } from './engine-powers.ts';

/**
 * What the service may ask of any backend. Only plain data crosses this interface. A driver is a machine with the engines
 * and, where it has one, the cluster that run in it. `observe` looks at the world each time and never reports from memory;
 * `perform` must tolerate repetition, because a crash can land between the work and the next observation.
 */
export type DriverName = 'simulated' | 'host' | 'qemu';
export type EngineName = 'moby' | 'containerd';

/** The machine's part of the desired state. Sizes in GiB and bytes. */
export interface MachineSpec {
  memoryGiB: number;
  cpus: number;
  diskBytes: number;
  type: string;
  useRosetta: boolean;
  mount: { type: string; securityModel: string; protocolVersion: string; msizeInKib: number; cacheMode: string };
  sshPortForwarder: boolean;
  adminAccess: boolean;
}

/** The engine's part of the desired state. */
export interface EngineSpec {
  name: EngineName;
  storageDriver: 'classic' | 'snapshotter' | 'auto';
  webAssembly: boolean;
  allowedImages: { enabled: boolean; patterns: readonly string[] };
}

/** The cluster's part of the desired state. `version` is `''` while the service may choose. */
export interface ClusterSpec {
  version: string;
  port: number;
  traefik: boolean;
  flannel: boolean;
  spinkube: boolean;
  localhostOnly: boolean;
  engine: EngineName;
}

/** `spec` is what the running thing has now; it may lag behind the desired spec. */
export type MachineStatus =
  | { state: 'absent' }
  | { state: 'off' }
  /** `repair` names what is missing and comes back by `adjust`, without a stop; `flaw` what it lacks and works without, as a clause. */
  | {
      state: 'on';
      spec: MachineSpec;
      repair?: string;
      /** Nothing in it runs or answers until that is repaired; it can be stopped as it is. */
      halted?: true;
      flaw?: string;
      room?: LiveRoom;
      started?: MachineStart;
      /** What runs the instructions of a virtual machine: the processor of this host, or a program. */
      accelerator?: 'kvm' | 'tcg';
      /** Why it is a program, and what would change that, as a clause. */
      emulatedBecause?: string;
      /** Absent where the machine is this host. */
      shared?: SharedDirectory;
    }
  /** Nothing in it can be relied on; `stop` must clear it. */
  | { state: 'broken'; reason: string; message: string };

/** Both ends are included. */
export type Bounds = { least: number; most: number };

/** Values that a running machine takes by `adjust`; where a member is absent, it takes none but the one that it has. */
export interface LiveRoom {
  memoryGiB?: Bounds;
  cpus?: Bounds;
  diskBytes?: Bounds;
}

/** How a running machine came up: by a boot of its system, or out of a state that had been frozen. */
export interface MachineStart {
  how: 'boot' | 'resume';
  /** In their order, without gaps; whole milliseconds. */
  phases: readonly { name: string; ms: number }[];
}

/** A directory of this host that the machine shows at the same path, and by which way; or why it shows none, as a clause. */
export type SharedDirectory = { path: string; by: string } | { missing: string };

/** A port that a program in the machine listens on, and whether this host leads to it. */
export interface PublishedPort {
  /** The same here and there; here it is one of 127.0.0.1. */
  port: number;
  state: 'forwarded' | 'failed';
  /** Why it failed, as a clause. */
  reason?: string;
}

export type EngineStatus =
  | { state: 'stopped' }
  | {
      state: 'running';
      spec: EngineSpec;
      /** How a client reaches it, e.g. `unix:///path/docker.sock`. */
      endpoint: string;
      version: string;
      workload: Workload;
    }
  /** The process is there but does not answer, or half of it is. `stop` must clear it. */
  | { state: 'unresponsive'; message: string };

export type ClusterStatus =
  | { state: 'absent' }
  | { state: 'stopped'; installedVersion: string }
  | { state: 'running'; installedVersion: string; spec: ClusterSpec; ready: boolean; kubeconfig?: string }
  | { state: 'unresponsive'; installedVersion: string; message: string };

/** What a stop would interrupt and a switch would hide; absent is what could not be read. */
export interface Workload {
  runningContainers?: number;
  containers?: number;
  images?: number;
  /** The running ones, in the order of the engine. */
  running?: readonly RunningContainer[];
}

export interface RunningContainer {
  /** What people call it by. */
  name: string;
  /** Whether it starts by itself after a stop and a start of the engine; absent where that depends, or could not be read. */
  returns?: boolean;
  /** Of the cluster, which starts its containers itself. */
  pod?: true;
}

export type MachineStep =
  | { do: 'start'; spec: MachineSpec }
  | { do: 'stop' }
  /** Apply to the running machine what `liveFields` and the `room` that it told say can be applied without a restart. */
  | { do: 'adjust'; spec: MachineSpec };
export type EngineStep = { do: 'start'; spec: EngineSpec } | { do: 'stop' } | { do: 'adjust'; spec: EngineSpec };
export type ClusterStep =
  | { do: 'start'; spec: ClusterSpec }
  | { do: 'stop' }
  /** Deletes the cluster's workloads and state; images and containers stay. */
  | { do: 'reset' };

export interface MachineDriver {
  observe(signal: AbortSignal): Promise<MachineStatus>;
  /** `progress` hears each time that a step comes nearer to its end which may take longer than its limit. */
  perform(step: MachineStep, signal: AbortSignal, progress?: () => void): Promise<void>;
}
export interface EngineDriver {
  observe(signal: AbortSignal): Promise<EngineStatus>;
  perform(step: EngineStep, signal: AbortSignal): Promise<void>;
  /** As the driver's. */
  release?(): Promise<void>;
  /** Absent where images cannot be read without running them. Needs a running engine. */
  readonly images?: ImageStore;
  /** Absent where the engine itself does not keep containers running. Needs a running engine. */
  readonly companions?: CompanionContainers;
}

/** A port of a service of the cluster: its number or its name. */
export interface ServicePort {
  namespace: string;
  service: string;
  port: number | string;
}
export interface ClusterDriver {
  /** Exact versions that can be installed, newest first; the first is chosen for `''`. */
  versions(signal: AbortSignal): Promise<readonly string[]>;
  observe(signal: AbortSignal): Promise<ClusterStatus>;
  perform(step: ClusterStep, signal: AbortSignal): Promise<void>;
  /**
   * Optional power: a connection to whatever serves the port now, looked up anew by every call. Half-closes pass through; the
   * signal counts until it is open. Throws `ERR_NOT_READY` while the cluster does not answer or nothing serves the port,
   * `ERR_NOT_FOUND` for a service or a port that is not there, `ERR_CANCELLED`.
   */
  connect?(target: ServicePort, signal: AbortSignal): Promise<Duplex>;
}

/**
 * What a driver does with a setting. `enforced`: a change takes effect on what runs; values in `except`, numbers above `most` and sizes of
 * more bytes are refused (see `reason`); `partlyLive`: some changes need no restart, as `room` of the machine tells. `stored`: kept, with
 * no effect in this driver. `unsupported`: an explicit change is refused, except to a value in `accepts` (a value that asks for nothing).
 */
export type Support =
  | { level: 'enforced'; except?: readonly string[]; most?: number; partlyLive?: true; reason?: string }
  | { level: 'stored'; reason?: string }
  | { level: 'unsupported'; reason: string; accepts?: readonly (boolean | number | string)[] };
export type SupportMatrix = Readonly<Record<SettingPath, Support>>;

/** What is known about a driver without starting anything. */
export interface DriverInfo {
  readonly name: DriverName;
  readonly simulated: boolean;
  /** One sentence for `info`, plans and docs. */
  readonly summary: string;
  readonly support: SupportMatrix;
  /** Settings that the driver applies to a running backend where the schema's default effect says `restart`. */
  readonly liveFields: readonly SettingPath[];
  readonly hasCluster: boolean;
}

/** An opened driver. */
export interface Driver extends DriverInfo {
  readonly machine: MachineDriver;
  readonly engines: Readonly<Record<EngineName, EngineDriver>>;
  readonly cluster?: ClusterDriver;
  /**
   * Files and directories, absolute, that hold everything that outlives a stop: images, containers, volumes, cluster. Any of them may
   * be missing. While the machine is off nothing uses them, so they can be copied, replaced and deleted as they are.
   */
  readonly keeps: readonly string[];
  /**
   * Copies of `keeps` while the machine is on, all as they were at one moment, at which the file systems in them were whole. Targets
   * must not exist; of what is missing there is no copy. `progress` hears the share that is done, from 0 to 1. Absent where only what
   * is off can be copied. Throws `ERR_NOT_READY` while the machine is off. When it throws, no target is there.
   */
  copyLive?(
    copies: readonly { from: string; to: string }[],
    signal: AbortSignal,
    progress?: (share: number) => void,
  ): Promise<void>;
  /**
   * Looks whether a copy of something in `keeps` is whole in itself, as far as its format tells; nothing uses it. Throws
   * `ERR_DRIVER_FAILED` with what was found wrong.
   */
  checkKept?(copy: { of: string; at: string }, signal: AbortSignal): Promise<void>;
  /** Size of the disk that holds what outlives a stop, as of the last look, and 0 while there is none; undefined where it is not known. */
  diskBytes?(): number | undefined;
  /** Ports of programs in the machine, as of the last look. Absent where the machine is this host. */
  published?(): readonly PublishedPort[];
  /** How a program of the user gets into a machine that is on; absent where the machine is this host or none at all. */
  access?(): MachineAccess;
  /**
   * Calls back at the moment when something ends that the last look found running, so that nobody has to wait for the next look; also
   * now and then without a reason. Returns the function that ends it.
   */
  watch(changed: () => void): () => void;
  /** Ends what this process serves to programs that run, such as the list of allowed images; they go on. A look begins it again. */
  release?(): Promise<void>;
}

/** A way into a machine by ssh, for programs of the user. */
export interface MachineAccess {
  /** The program and its options; more options, the target and a command line for a shell may follow. */
  ssh: string[];
  target: string;
  /** Words to begin a command with, in the machine. */
  before: string[];
}

/** Why a driver can or cannot run here. */
export type Probe = { usable: true; detail: string } | { usable: false; reason: string; fix: string };

/** What a driver gets from the composition root. */
export interface DriverContext {
  /** Private directory of this driver in the state directory; exists. */
  directory: string;
  /** Directory for engine logs; exists. */
  logs: string;
  log: (level: 'debug' | 'info' | 'warn', message: string, values?: Record<string, unknown>) => void;
  now: () => number;
  env: Readonly<Record<string, string | undefined>>;
}

/** One line of the driver list in `index.ts`. */
export interface DriverFactory extends DriverInfo {
  /** Chosen by itself when usable? Never true for the simulated driver. */
  readonly automatic: boolean;
  probe(env: DriverContext['env']): Promise<Probe>;
  open(context: DriverContext): Promise<Driver>;
}
