import type { Server } from 'node:net';
import type { Duplex } from 'node:stream';
import { RdError } from '../errors.ts';
import type { Clock } from '../os/clock.ts';
import type { DaemonState } from '../os/daemon.ts';
import type { RunOptions, RunResult } from '../os/run.ts';
import type { DriverContext } from './driver.ts';

/**
 * The machine as an engine sees it: everything that it needs and knows. Paths are paths inside the machine. On this host the implementation uses
 * local programs and files; a remote machine offers the same through its connection.
 */
export interface Shell {
  readonly places: ShellPlaces;
  readonly clock: Clock;
  readonly log: DriverContext['log'];
  /** Environment with the proxy and trusted certificates for connections that this process makes for the engine. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Runs a program; see `src/os/run.ts` for the options and errors. Programs are found by name. */
  run(argv: readonly string[], options?: Omit<RunOptions, 'env' | 'cwd'>): Promise<RunResult>;
  /** Runs a program and streams output of any length; see `src/os/run.ts` for the options and errors. */
  stream(argv: readonly string[], options?: Pick<RunOptions, 'signal' | 'timeoutMs'>): AsyncIterable<Uint8Array>;
  /**
   * Starts long-lived programs that are not running yet, by name and all at once: none may depend on another at its very beginning.
   * Prepares the required files first. Where the machine supports readiness notification, waits for the programs that send it (`readyMs`),
   * but only until one of them exits; the caller checks the programs.
   */
  start(programs: readonly Program[], options?: { before?: Arrangement; signal?: AbortSignal }): Promise<void>;
  /** Finds the program of that name, including one that an earlier service started. */
  find(name: string): Promise<DaemonState>;
  /** Stops the program of that name, kills it after the grace period, and forgets it. Idempotent. */
  stop(name: string, graceMs: number, signal: AbortSignal): Promise<void>;
  /** Returns the last lines of that program's log. */
  tail(name: string): Promise<string[]>;
  /** Reads a text file. Undefined if there is no such file. */
  read(path: string): Promise<string | undefined>;
  /** True if there is a file or a directory. */
  exists(path: string): Promise<boolean>;
  /** Writes a file atomically, with mode 0600; creates the directory (0700). */
  write(path: string, text: string): Promise<void>;
  /** Removes a file or a tree. Idempotent. */
  remove(path: string): Promise<void>;
  /** Removes, creates and writes several files at once: without hardware virtualization every call costs a fraction of a second. */
  arrange(arrangement: Arrangement): Promise<void>;
  /** Copies a host file of any size into the machine, atomically and with that mode. Creates the directory. */
  copyIn(from: string, to: string, mode: number, signal: AbortSignal): Promise<void>;
  /** True if a program of the machine accepts connections at that socket. */
  listens(path: string): Promise<boolean>;
  /**
   * Holds a connection to that socket of a running program, if that is cheap, to detect its end immediately (`Driver.watch`). `hello` keeps the
   * program from closing an idle connection; `listen` is called for each connection and returns the listener for its data.
   */
  hold(path: string, hello: string | Uint8Array, listen?: () => LineListener): Promise<void>;
  /** True while a connection is held by the host socket that clients use. */
  holds(path: string): Promise<boolean>;
  /** Returns a host socket that leads to that socket in the machine. */
  localSocket(path: string): Promise<string>;
  /**
   * Forwards that port of the host's 127.0.0.1 to the same port of the machine. Idempotent.
   * @throws RdError `ERR_PORT_IN_USE` when another program of the host uses it.
   */
  localPort(port: number): Promise<void>;
  /** Removes the forward of that port, including one that an earlier service made. Idempotent. */
  closePort(port: number): Promise<void>;
  /**
   * Connects to an address as seen from the machine; supports half-close. On a remote machine a refused connection may close at once instead of
   * failing.
   * @throws RdError `ERR_NOT_READY` when nothing listens, `ERR_CANCELLED`.
   */
  dial(host: string, port: number, signal: AbortSignal): Promise<Duplex>;
  /**
   * Makes a server of this process reachable for programs of the machine. Removes a stale socket first.
   * @throws RdError `ERR_DRIVER_TERMINAL` when a socket path is otherwise in use, `ERR_PORT_IN_USE`.
   */
  offer(server: Server, at: ServerPlace): Promise<Offer>;
  /** Returns the network for containers. Throws `ERR_DRIVER_FAILED` while the machine is off. */
  network(): Promise<EngineNetwork>;
  /** Lists processes and mounts that an engine left behind when its programs ended. */
  leftovers(area: EngineArea): Promise<string[]>;
  /** Ends leftover processes and unmounts leftover mounts. Only for an engine whose programs have ended. */
  clear(area: EngineArea): Promise<void>;
}

/** Runs a program; see `Shell.run`. */
export type Run = Shell['run'];

/** Receives the data of a held connection, and its end. */
export interface LineListener {
  heard(bytes: Uint8Array): void;
  ended(): void;
}

/** The place of a server: a path, or a port of the machine's 127.0.0.1; 0 for a free one. */
export type ServerPlace = { socket: string } | { port: number };

/** A reachable server. */
export interface Offer {
  /** 0 for a socket. */
  port: number;
  /** Closes the server and every connection. Idempotent. */
  close(): Promise<void>;
}

/** Returns the error for a program that did not start or did not stay, with the end of its log. */
export async function programFailure(shell: Shell, name: string, message: string): Promise<RdError> {
  const details = await shell.tail(name);
  const last = details.at(-1);
  return new RdError('ERR_DRIVER_FAILED', last ? `${message}: ${last}` : message, {
    details,
    advice: `See ${name}.log in the log directory.`,
  });
}

/** Desired files, applied in this order. */
export interface Arrangement {
  /** Files and trees to remove. */
  absent: readonly string[];
  /** Created with mode 0700, including parents. */
  directories: readonly string[];
  /** Files to write, atomically and with mode 0600. */
  files: readonly PlacedFile[];
}

export interface PlacedFile {
  path: string;
  text: string;
}

export interface ShellPlaces {
  /** Identifies the instance in names shared by the whole machine. */
  id: string;
  /** Persistent: images, volumes. */
  data: string;
  /** Sockets and records; short enough for every socket path below it. */
  run: string;
}

export interface Program {
  /** Name of the program within the machine, and of its log. */
  name: string;
  argv: readonly string[];
  /** A wrapper with arguments that executes the program, such as `nsenter`. */
  within?: readonly string[];
  /** Overrides the environment of all programs. Readable by the machine's owner, root on this host. */
  env?: Readonly<Record<string, string>>;
  /** Sends a readiness notification (sd_notify(3)) within this time. */
  readyMs?: number;
}

/** The machine manages the bridge and its rules; an engine must not change the packet filter. */
export interface EngineNetwork {
  bridge: string;
  /** IPv4 range in CIDR form for all networks of the engine, routed outwards. */
  pool: string;
  /** True if other engines may share the network stack, with links and networks of their own. */
  shared: boolean;
}

/** Identifies the owner of a process or mount. */
export interface EngineArea {
  /** The containerd socket that the shims report to. */
  containerd: string;
  /** State directory of that containerd. */
  state: string;
  /** Everything below these directories belongs to the engine. */
  directories: readonly string[];
  /** Control group that holds its containers, below the root of the hierarchy. */
  cgroup?: string;
}

/** The services that a cluster needs from the engine that runs its pods. */
export interface ClusterEngine {
  /** The engine's socket in the machine. */
  readonly socket: string;
  /**
   * Loads images from an archive on this host into the store that pods use. They stay when the cluster goes.
   * @throws RdError `ERR_DRIVER_FAILED`, `ERR_FORBIDDEN` for images outside the list of allowed images, `ERR_CANCELLED`.
   */
  loadImages(archive: string, signal: AbortSignal): Promise<void>;
  /**
   * Stops the containers of all pods; with `remove` they are deleted with their data.
   * @throws RdError `ERR_DRIVER_FAILED` when the engine does not respond, `ERR_CANCELLED`.
   */
  endPods(how: 'stop' | 'remove', signal: AbortSignal): Promise<void>;
}
