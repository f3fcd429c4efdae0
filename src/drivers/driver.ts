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

/** `spec` is what runs now; it may lag behind the desired spec. */
export type MachineStatus =
  | { state: 'absent' }
  | { state: 'off' }
  /** `repair` names what is missing and `adjust` restores without a stop; `flaw` names a degradation, as a clause. */
  | {
      state: 'on';
      spec: MachineSpec;
      repair?: string;
      /** Nothing in it runs or responds until that is repaired; it can be stopped. */
      halted?: true;
      flaw?: string;
      room?: LiveRoom;
      started?: MachineStart;
      /** What runs guest instructions: the host processor (KVM), or an emulator. */
      accelerator?: 'kvm' | 'hvf' | 'tcg';
      /** Why it is emulated and how to change that, as a clause. */
      emulatedBecause?: string;
      /** Absent where the machine is this host. */
      shared?: SharedDirectories;
      /** Absent where the machine is this host, and while they are unknown. */
      openHostPorts?: OpenHostPorts;
      /** Nobody uses it, so its processors are halted until the next connection. Its engines are as last observed. */
      paused?: MachinePause;
    }
  /** Its state is unreliable; `stop` must clear it. */
  | { state: 'broken'; reason: string; message: string };

/** Inclusive. */
export type Bounds = { least: number; most: number };

/** Ranges that `adjust` accepts on a running machine; where a member is absent, only the current value. */
export interface LiveRoom {
  memoryGiB?: Bounds;
  cpus?: Bounds;
  diskBytes?: Bounds;
}

/** How a running machine came up: booted, or resumed from a frozen state. */
export interface MachineStart {
  how: 'boot' | 'resume';
  /** In order, without gaps; whole milliseconds. */
  phases: readonly { name: string; ms: number }[];
}

export interface MachinePause {
  /** RFC 3339. */
  since: string;
}

/** A host directory and its mount type, or why the machine does not show it, as a clause; `none`: the profile does not share it. */
export type SharedDirectory =
  | { path: string; mode: Exclude<MountMode, 'none'>; by: string }
  | { path: string; missing: string }
  | { path: string; mode: 'none' };

/** The home directory with its mount type, or why the machine does not show it; and all directories, the home first. */
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
  /** The same number on both sides. */
  port: number;
  state: 'forwarded' | 'failed';
  /** What publishes it, where known: `kube-system/traefik:web`, `container web`. */
  claimedBy?: string;
  /** Where it is reachable on this host: 127.0.0.1 or 0.0.0.0, mostly also `::1` or `::`. Absent where forwarding failed. */
  addresses?: readonly string[];
  /** Why forwarding failed, as a clause. */
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
      /** All that is known is that it does not respond: it may be busy. */
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
      /** Why it is not ready, as a clause, where known. */
      message?: string;
    }
  | { state: 'unresponsive'; installedVersion: string; message: string };

/** What a stop would interrupt and a switch would hide; unreadable parts are absent. */
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
  /** Whether it restarts with the engine; absent when that depends or is unknown. */
  returns?: boolean;
  /** Belongs to the cluster, which restarts its containers itself. */
  pod?: true;
  /** Ports of the machine that lead to it; absent where there are none or they are unknown. */
  ports?: readonly { protocol: 'tcp' | 'udp'; port: number }[];
}

export type MachineStep =
  | { do: 'start'; spec: MachineSpec }
  | { do: 'stop' }
  /** Apply to the running machine what `liveFields` and the observed `room` allow without a restart. */
  | { do: 'adjust'; spec: MachineSpec };
export type EngineStep = { do: 'start'; spec: EngineSpec } | { do: 'stop' } | { do: 'adjust'; spec: EngineSpec };
export type ClusterStep =
  | { do: 'start'; spec: ClusterSpec }
  | { do: 'stop' }
  /** Deletes the cluster's workloads and state; images and containers stay. */
  | { do: 'reset' };

export interface MachineDriver {
  observe(signal: AbortSignal): Promise<MachineStatus>;
  /** `progress` is called on progress of a step that may exceed its limit. */
  perform(step: MachineStep, signal: AbortSignal, progress?: () => void): Promise<void>;
}
/**
 * How closely an engine or a cluster is observed. `routine`: what is expensive to read may be as last read, where a change would have been
 * noticed, and otherwise for less than a minute. `full`: everything is read now, as for a plan.
 */
export type Look = 'full' | 'routine';
export interface EngineDriver {
  /** `how`: `full` where absent. */
  observe(signal: AbortSignal, how?: Look): Promise<EngineStatus>;
  /**
   * How many milliseconds an observation that found it running may stand for `routine` ones. 0 as soon as the end of a program, or another
   * change that was reported since, would make it false.
   */
  standsMs?(): Promise<number>;
  perform(step: EngineStep, signal: AbortSignal): Promise<void>;
  /** As the driver's. */
  release?(): Promise<void>;
  /** Absent where images cannot be read without running them. Requires a running engine. */
  readonly images?: ImageStore;
  /** Absent where the engine cannot keep containers running. Requires a running engine. */
  readonly companions?: CompanionContainers;
}

/** A port of a cluster service: its number or its name. */
export interface ServicePort {
  namespace: string;
  service: string;
  port: number | string;
}
export interface ClusterDriver {
  /** Exact versions that can be installed, newest first; `''` selects the first. */
  versions(signal: AbortSignal): Promise<readonly string[]>;
  /** `how`: `full` where absent. */
  observe(signal: AbortSignal, how?: Look): Promise<ClusterStatus>;
  /** `onWait` is called with what the step waits for, as a clause; repetitions are allowed. */
  perform(step: ClusterStep, signal: AbortSignal, onWait?: (what: string) => void): Promise<void>;
  /**
   * Optional power: a connection to the endpoint that currently serves the port, resolved on every call. Supports half-close; the signal
   * applies until it is open. Throws `ERR_NOT_READY` while the cluster does not respond or nothing serves the port, `ERR_NOT_FOUND` for an
   * unknown service or port, `ERR_CANCELLED`.
   */
  connect?(target: ServicePort, signal: AbortSignal): Promise<Duplex>;
}

/**
 * How a driver supports a setting. `enforced`: a change takes effect on what runs; values in `except`, numbers above `most` and sizes of
 * more bytes are refused (see `reason`), and so are entries of a map of directories at, above or below one in `reserved`; `partlyLive`: some changes need no restart, as the machine's `room` shows. `stored`: saved,
 * without effect in this driver. `unsupported`: an explicit change is refused, except to a value in `accepts` (a value that requests
 * nothing).
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
/** By path: every setting, and those fields of blocks that the driver knows; it refuses the others. */
export type SupportMatrix = Readonly<Record<SettingPath, Support> & Partial<Record<BlockPath, Support>>>;

/** What is known about a driver without starting anything. */
export interface DriverInfo {
  readonly name: DriverName;
  readonly simulated: boolean;
  /** One sentence for `info`, plans and docs. */
  readonly summary: string;
  readonly support: SupportMatrix;
  /** Settings that the driver applies live although the schema's default effect is `restart`. */
  readonly liveFields: readonly ManagedPath[];
  readonly hasCluster: boolean;
  /** How long a backend must run as desired until that is proven, in milliseconds; 3000 where absent. */
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
  /** What each of them is. */
  readonly keptKind: 'file' | 'directory';
  /**
   * Copies of `keeps` while the machine is on, all from one point in time with consistent file systems. Targets must not exist; missing
   * sources are skipped. `progress` gets the completed share, from 0 to 1. Absent where only a stopped machine can be copied. Throws
   * `ERR_NOT_READY` while the machine is off. Leaves no target behind when it throws.
   */
  copyLive?(
    copies: readonly { from: string; to: string }[],
    signal: AbortSignal,
    progress?: (share: number) => void,
  ): Promise<void>;
  /** Verifies an unused copy of something in `keeps`, as far as its format allows. Throws `ERR_DRIVER_FAILED` with the findings. */
  checkKept?(copy: { of: string; at: string }, signal: AbortSignal): Promise<void>;
  /** Size of the data disk as last observed, 0 without one; undefined when unknown. */
  diskBytes?(): number | undefined;
  /** Ports of programs in the machine as last observed. Absent where the machine is this host. */
  published?(): readonly PublishedPort[];
  /** How what runs a guest is confined; absent where the machine is this host or there is none. */
  confinement?(): Promise<MachineConfinement>;
  /** How a user's program gets into a running machine; absent where the machine is this host or there is none. */
  access?(): MachineAccess;
  /**
   * Calls back as soon as something that was observed running ends, without waiting for the next observation; spurious calls are possible.
   * Returns the function that stops watching.
   */
  watch(changed: () => void): () => void;
  /**
   * Stops what this process serves to running programs, such as the list of allowed images; the programs continue. An observation resumes
   * it.
   */
  release?(): Promise<void>;
}

/** What keeps a program that a guest has taken over from the files of the user; `because` is a clause. */
export type Confinement = { by: 'bubblewrap' | 'landlock' } | { by: 'nothing'; because: string };

/** `next`: of programs that start now. `running`: whether the running machine is confined; absent while it is off. */
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
 * Whether and why a driver can run here. `fix` is one line; where it is `copyable`, it is a command line for a shell, after which the driver can
 * run, and which calls this tool `rdctl`.
 */
export type Probe = { usable: true; detail: string } | { usable: false; reason: string; fix: string; copyable?: true };

/** What the composition root passes to a driver. */
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
/** What is known of a driver on this computer while nothing runs. */
export interface DriverAtRest {
  support: SupportMatrix;
  /** Version of the cluster whose data is on disk, `''` if that is unknown; absent without data. */
  installedCluster?: string;
}

export interface DriverFactory extends DriverInfo {
  /** Whether it may be chosen automatically. Never true for the simulated driver. */
  readonly automatic: boolean;
  probe(env: DriverContext['env']): Promise<Probe>;
  /** Looked up without opening the driver. `support` of the factory itself is that of a computer with every dependency. */
  atRest(context: Pick<DriverContext, 'env' | 'directory'>): Promise<DriverAtRest>;
  open(context: DriverContext): Promise<Driver>;
}

/**
 * Reads images of a running engine; never runs anything in them. References are fully qualified: `registry/name:tag`, and
 * `docker.io/name:tag` for the default registry. Every method throws `ERR_DRIVER_FAILED` when the engine fails and `ERR_CANCELLED` when the signal aborts.
 */
export interface ImageStore {
  /** Whether the engine has the image. */
  has(reference: string, signal: AbortSignal): Promise<boolean>;
  /**
   * Pulls it. Throws `ERR_NOT_FOUND` when the registry has no such image and `ERR_FORBIDDEN` when a rule of the engine or the registry
   * denies it.
   */
  pull(reference: string, signal: AbortSignal): Promise<void>;
  /** Local tags of the image of that name, `registry/name`. */
  tags(name: string, signal: AbortSignal): Promise<string[]>;
  /** Tags in registries, where the engine includes its registries, as in a simulation. */
  offeredTags?(name: string): Promise<string[]>;
  /** Passes the opened image to `work` and always closes it afterwards. Throws `ERR_NOT_FOUND` when the engine does not have it. */
  open<T>(reference: string, signal: AbortSignal, work: (image: OpenImage) => Promise<T>): Promise<T>;
}

/** An image that is open for reading. */
export interface OpenImage {
  readonly labels: Readonly<Record<string, string>>;
  /**
   * A file or a directory tree as a tar archive whose names share their first part; undefined when there is none. Links are followed within
   * the image, which is their root.
   */
  archive(path: string): Promise<AsyncIterable<Uint8Array> | undefined>;
}

/** A container that the engine keeps running for the service. */
export interface Companion {
  /** Its identifier and name; letters, digits, `_` and `-`. */
  id: string;
  image: string;
}

/** Containers managed by the service; they restart with the engine until they are removed. */
export interface CompanionContainers {
  /** Creates and starts it, or recreates it from another image. The image must be present. */
  ensure(companion: Companion, signal: AbortSignal): Promise<void>;
  /** The existing ones. */
  list(signal: AbortSignal): Promise<Companion[]>;
  /** Stops and removes it. Idempotent. */
  remove(id: string, signal: AbortSignal): Promise<void>;
}
