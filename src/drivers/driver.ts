import type { Duplex } from 'node:stream';
import type { BlockPath } from '../settings/blocks.gen.ts';
import type { ManagedPath } from '../settings/field.ts';
import type { MountMode } from '../settings/machine-values.ts';
import type { SettingPath } from '../settings/settings.gen.ts';

/**
 * The interface between the service and any backend. Only plain data crosses it. A driver is a machine with its engines and, where
 * supported, a cluster. `observe` inspects the world each time and never reports from memory (but see `Look`); `perform` must be repeatable, because a crash
 * can happen between the work and the next observation. It is one file, to show everything that crosses the interface in one place.
 */

/** The value of `--driver`, and the name of the folder in `machines/`. */
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
  /** Modes of directories of this host, by absolute path or one that begins with `~`; the home is writable unless it is listed. */
  mounts: Readonly<Record<string, MountMode>>;
  /** Ports of the host's loopback interface that the machine may connect to: `5432` or `3000-3010`, sorted and disjoint. */
  hostPorts: readonly string[];
  /** Minutes without use until the machine is paused; 0: never. */
  pauseAfterMinutes: number;
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

/** The machine's observed status. `spec` is what runs now; it may lag behind the desired spec. */
export type MachineStatus =
  | { state: 'absent' }
  | { state: 'off' }
  /** `repair` names a missing part that `adjust` restores without a stop; `flaw` names a degradation, as a clause. */
  | {
      state: 'on';
      spec: MachineSpec;
      repair?: string;
      /** Nothing in the machine runs or responds until the repair; it can be stopped. */
      halted?: true;
      flaw?: string;
      room?: LiveRoom;
      started?: MachineStart;
      /** The executor of guest instructions: the host processor (KVM), or an emulator. */
      accelerator?: 'kvm' | 'hvf' | 'tcg';
      /** The reason that the machine is emulated and how to change that, as a clause. */
      emulatedBecause?: string;
      /** Absent if the machine is this host. */
      shared?: SharedDirectories;
      /** Absent if the machine is this host, or the ports are unknown. */
      openHostPorts?: OpenHostPorts;
      /** Nobody uses the machine, so its processors are halted until the next connection. Its engines are as last observed. */
      paused?: MachinePause;
    }
  /** The machine's state is unreliable; `stop` must clear it. */
  | { state: 'broken'; reason: string; message: string };

/** Inclusive. */
export type Bounds = { least: number; most: number };

/** Ranges that `adjust` accepts on a running machine; if a member is absent, only the current value. */
export interface LiveRoom {
  memoryGiB?: Bounds;
  cpus?: Bounds;
  diskBytes?: Bounds;
}

/** The way that a running machine came up: booted, or resumed from a frozen state. */
export interface MachineStart {
  how: 'boot' | 'resume';
  /** In order, without gaps; whole milliseconds. */
  phases: readonly { name: string; ms: number }[];
}

export interface MachinePause {
  /** RFC 3339. */
  since: string;
}

/** A host directory and its mount type, or the reason that the machine does not show it, as a clause; `none`: the profile does not share it. */
export type SharedDirectory =
  | { path: string; mode: Exclude<MountMode, 'none'>; by: string }
  | { path: string; missing: string }
  | { path: string; mode: 'none' };

/** The home directory with its mount type, or the reason that the machine does not show it; and all directories, the home first. */
export type SharedDirectories = ({ path: string; by: string } | { missing: string }) & {
  mounts: readonly SharedDirectory[];
};

/** Ports of this host's loopback interface that the machine can connect to: `5432` or `3000-3010`, sorted and disjoint. */
export interface OpenHostPorts {
  tcp: readonly string[];
  udp: readonly string[];
}

/** A port that a program in the machine listens on or that rules of its packet filter publish, and whether it is forwarded to this host. */
export interface PublishedPort {
  protocol: 'tcp' | 'udp';
  /** The port number, the same on both sides. */
  port: number;
  state: 'forwarded' | 'failed';
  /** The publisher, if known: `kube-system/traefik:web`, `container web`. */
  claimedBy?: string;
  /** Addresses of this host on which the port is reachable: 127.0.0.1 or 0.0.0.0, mostly also `::1` or `::`. Absent if forwarding failed. */
  addresses?: readonly string[];
  /** The reason that forwarding failed, as a clause. */
  reason?: string;
}

export type EngineStatus =
  | { state: 'stopped' }
  | {
      state: 'running';
      spec: EngineSpec;
      /** The client endpoint, e.g. `unix:///path/docker.sock`. */
      endpoint: string;
      version: string;
      workload: Workload;
    }
  /** The process runs but does not respond, or the engine runs only partly. `stop` must clear it. */
  | {
      state: 'unresponsive';
      message: string;
      /** Nothing is known but that the engine does not respond: it may be busy. */
      silent?: true;
    };

export type ClusterStatus =
  | { state: 'absent' }
  | { state: 'stopped'; installedVersion: string }
  | {
      state: 'running';
      installedVersion: string;
      spec: ClusterSpec;
      ready: boolean;
      kubeconfig?: string;
      /** The reason that the cluster is not ready, as a clause, if known. */
      message?: string;
    }
  | { state: 'unresponsive'; installedVersion: string; message: string };

/** The images and containers that a stop interrupts and a switch hides; unreadable parts are absent. */
export interface Workload {
  runningContainers?: number;
  containers?: number;
  images?: number;
  /** Running containers, in the order of the engine. */
  running?: readonly RunningContainer[];
}

export interface RunningContainer {
  /** Display name. */
  name: string;
  /** True if the container restarts with the engine; absent if that depends or is unknown. */
  returns?: boolean;
  /** The container belongs to the cluster, which restarts its containers itself. */
  pod?: true;
  /** Ports of the machine that lead to the container; absent if there are none or they are unknown. */
  ports?: readonly { protocol: 'tcp' | 'udp'; port: number }[];
}

export type MachineStep =
  | { do: 'start'; spec: MachineSpec }
  | { do: 'stop' }
  /** Apply the live part of the spec to the running machine, without a restart: `liveFields` and changes within the observed `room`. */
  | { do: 'adjust'; spec: MachineSpec };
export type EngineStep = { do: 'start'; spec: EngineSpec } | { do: 'stop' } | { do: 'adjust'; spec: EngineSpec };
export type ClusterStep =
  | { do: 'start'; spec: ClusterSpec }
  | { do: 'stop' }
  /** Deletes the cluster's workloads and state; images and containers stay. */
  | { do: 'reset' };

export interface MachineDriver {
  observe(signal: AbortSignal): Promise<MachineStatus>;
  /** Performs a step. `progress` is called on progress of a step that may exceed its limit. */
  perform(step: MachineStep, signal: AbortSignal, progress?: () => void): Promise<void>;
}
/**
 * The depth of an observation of an engine or a cluster. `routine`: expensive parts may be as last read, if a change would have been noticed, and
 * otherwise for less than a minute. `full`: everything is read now, as for a plan.
 */
export type Look = 'full' | 'routine';
export interface EngineDriver {
  /** Observes the engine. `how`: `full` if absent. */
  observe(signal: AbortSignal, how?: Look): Promise<EngineStatus>;
  /**
   * Milliseconds for which an observation that found the engine running may stand for `routine` ones. 0 as soon as the end of a program, or another
   * change reported since, would make it false.
   */
  standsMs?(): Promise<number>;
  perform(step: EngineStep, signal: AbortSignal): Promise<void>;
  /** Stops serving the engine's running programs; see `Driver.release`. */
  release?(): Promise<void>;
  /** Absent if images cannot be read without running them. Requires a running engine. */
  readonly images?: ImageStore;
  /** Absent if the engine cannot keep containers running. Requires a running engine. */
  readonly companions?: CompanionContainers;
}

/** A port of a cluster service: its number or its name. */
export interface ServicePort {
  namespace: string;
  service: string;
  port: number | string;
}
export interface ClusterDriver {
  /** Returns the exact versions that can be installed, newest first; `''` selects the first. */
  versions(signal: AbortSignal): Promise<readonly string[]>;
  /** Observes the cluster. `how`: `full` if absent. */
  observe(signal: AbortSignal, how?: Look): Promise<ClusterStatus>;
  /** Performs a step. `onWait` is called with the reason for a wait, as a clause; repetitions are allowed. */
  perform(step: ClusterStep, signal: AbortSignal, onWait?: (what: string) => void): Promise<void>;
  /**
   * Optional: connects to the endpoint that currently serves the port, resolved on every call. Supports half-close; the signal applies until the
   * connection is open. Throws `ERR_NOT_READY` while the cluster does not respond or nothing serves the port, `ERR_NOT_FOUND` for an unknown service
   * or port, `ERR_CANCELLED`.
   */
  connect?(target: ServicePort, signal: AbortSignal): Promise<Duplex>;
}

/**
 * A driver's support of a setting. `enforced`: a change takes effect on running parts; values in `except`, numbers above `most` and sizes of more
 * bytes are refused (see `reason`), and so are entries of a map of directories at, above or below one in `reserved`; `partlyLive`: some changes need
 * no restart, as the machine's `room` shows. `stored`: saved, without effect in this driver. `unsupported`: an explicit change is refused, except to
 * a value in `accepts` (a value that requests nothing).
 */
export type Support =
  | {
      level: 'enforced';
      except?: readonly string[];
      reserved?: readonly string[];
      most?: number;
      partlyLive?: true;
      reason?: string;
    }
  | { level: 'stored'; reason?: string }
  | { level: 'unsupported'; reason: string; accepts?: readonly (boolean | number | string)[] };
/** Support by path: every setting, and those fields of blocks that the driver knows; it refuses the others. */
export type SupportMatrix = Readonly<Record<SettingPath, Support> & Partial<Record<BlockPath, Support>>>;

/** The facts about a driver that are known without starting anything. */
export interface DriverInfo {
  readonly name: DriverName;
  readonly simulated: boolean;
  /** One sentence for `info`, plans and docs. */
  readonly summary: string;
  readonly support: SupportMatrix;
  /** Settings that the driver applies live although the schema's default effect is `restart`. */
  readonly liveFields: readonly ManagedPath[];
  readonly hasCluster: boolean;
  /** Milliseconds that a backend must run as desired to be proven; 3000 if absent. */
  readonly provingMs?: number;
}

/** An opened driver. */
export interface Driver extends DriverInfo {
  readonly machine: MachineDriver;
  readonly engines: Readonly<Record<EngineName, EngineDriver>>;
  readonly cluster?: ClusterDriver;
  /**
   * Absolute paths of files and directories that hold all persistent data: images, containers, volumes, cluster. Any may be missing. They
   * are unused while the machine is off, so they can be copied, replaced and deleted.
   */
  readonly keeps: readonly string[];
  /** The kind of all paths in `keeps`. */
  readonly keptKind: 'file' | 'directory';
  /**
   * Copies `keeps` while the machine is on, all from one point in time with consistent file systems. Targets must not exist; missing sources are
   * skipped. `progress` gets the completed share, from 0 to 1. Absent if only a stopped machine can be copied. Throws `ERR_NOT_READY` while the
   * machine is off. Leaves no target behind when it throws.
   */
  copyLive?(
    copies: readonly { from: string; to: string }[],
    signal: AbortSignal,
    progress?: (share: number) => void,
  ): Promise<void>;
  /** Verifies an unused copy of something in `keeps`, as far as its format allows. Throws `ERR_DRIVER_FAILED` with the findings. */
  checkKept?(copy: { of: string; at: string }, signal: AbortSignal): Promise<void>;
  /** Returns the size of the data disk in bytes as last observed, 0 without one; undefined when unknown. */
  diskBytes?(): number | undefined;
  /** Returns the ports of programs in the machine as last observed. Absent if the machine is this host. */
  published?(): readonly PublishedPort[];
  /** Returns the confinement of the programs that run a guest; absent if the machine is this host or there is none. */
  confinement?(): Promise<MachineConfinement>;
  /** Returns the access of a user's program to a running machine; absent if the machine is this host or there is none. */
  access?(): MachineAccess;
  /**
   * Calls back as soon as a part observed running ends, without waiting for the next observation; spurious calls are possible. Returns the function
   * that stops watching.
   */
  watch(changed: () => void): () => void;
  /** Stops serving running programs from this process, such as the list of allowed images; the programs continue. An observation resumes it. */
  release?(): Promise<void>;
}

/** The mechanism that keeps a program taken over by a guest from the files of the user; `because` is a clause. */
export type Confinement = { by: 'bubblewrap' | 'landlock' } | { by: 'nothing'; because: string };

/** `next`: the confinement of programs that start now. `running`: true if the running machine is confined; absent while it is off. */
export interface MachineConfinement {
  next: Confinement;
  running?: boolean;
}

/** SSH access to a machine, for programs of the user. */
export interface MachineAccess {
  /** The program and its options; the caller may append options, the target and a shell command line. */
  ssh: string[];
  target: string;
  /** Prefix of every command in the machine. */
  before: string[];
}

/**
 * The verdict whether a driver can run here, with the reason. `fix` is one line; if it is `copyable`, it is a command line for a shell, after which
 * the driver can run, and which calls this tool `rdctl`.
 */
export type Probe = { usable: true; detail: string } | { usable: false; reason: string; fix: string; copyable?: true };

/** Dependencies that the composition root passes to a driver. */
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
/** The facts about a driver on this computer while nothing runs. */
export interface DriverAtRest {
  support: SupportMatrix;
  /** Version of the cluster whose data is on disk, `''` if that is unknown; absent without data. */
  installedCluster?: string;
}

export interface DriverFactory extends DriverInfo {
  /** True if the driver may be chosen automatically. Never true for the simulated driver. */
  readonly automatic: boolean;
  probe(env: DriverContext['env']): Promise<Probe>;
  /** Looks up the facts without opening the driver. `support` of the factory itself is that of a computer with every dependency. */
  atRest(context: Pick<DriverContext, 'env' | 'directory'>): Promise<DriverAtRest>;
  open(context: DriverContext): Promise<Driver>;
}

/**
 * Reads images of a running engine; never runs anything in them. References are fully qualified: `registry/name:tag`, and
 * `docker.io/name:tag` for the default registry. Every method throws `ERR_DRIVER_FAILED` when the engine fails and `ERR_CANCELLED` when the signal aborts.
 */
export interface ImageStore {
  /** True if the engine has the image. */
  has(reference: string, signal: AbortSignal): Promise<boolean>;
  /**
   * Pulls the image. Throws `ERR_NOT_FOUND` when the registry has no such image and `ERR_FORBIDDEN` when a rule of the engine or the registry denies
   * it.
   */
  pull(reference: string, signal: AbortSignal): Promise<void>;
  /** Lists the local tags of the image of that name, `registry/name`. */
  tags(name: string, signal: AbortSignal): Promise<string[]>;
  /** Lists the tags in registries, if the engine includes its registries, as in a simulation. */
  offeredTags?(name: string): Promise<string[]>;
  /** Passes the opened image to `work` and always closes it afterwards. Throws `ERR_NOT_FOUND` when the engine does not have it. */
  open<T>(reference: string, signal: AbortSignal, work: (image: OpenImage) => Promise<T>): Promise<T>;
}

/** An image that is open for reading. */
export interface OpenImage {
  readonly labels: Readonly<Record<string, string>>;
  /**
   * Returns a file or a directory tree as a tar archive whose names share their first part, or undefined if there is none. Links are followed within
   * the image, which is their root.
   */
  archive(path: string): Promise<AsyncIterable<Uint8Array> | undefined>;
}

/** A container that the engine keeps running for the service. */
export interface Companion {
  /** Identifier and name of the container; letters, digits, `_` and `-`. */
  id: string;
  image: string;
}

/** Containers managed by the service; they restart with the engine until they are removed. */
export interface CompanionContainers {
  /** Creates and starts the container, or recreates it from another image. The image must be present. */
  ensure(companion: Companion, signal: AbortSignal): Promise<void>;
  /** Lists the existing containers. */
  list(signal: AbortSignal): Promise<Companion[]>;
  /** Stops and removes the container. Idempotent. */
  remove(id: string, signal: AbortSignal): Promise<void>;
}
