import type { Server } from 'node:net';
import type { Duplex } from 'node:stream';
import type { DaemonState } from '../process/daemon.ts';
import type { Pace } from '../process/pace.ts';
import type { RunOptions, RunResult } from '../process/run.ts';
import type { DriverContext } from './driver.ts';

/**
 * What an engine needs of the machine it runs in, and all that it knows about it. Paths are paths inside the machine. A
 * machine that is this host hands over its own programs and files; one behind a connection does the same through it.
 */
export interface Shell {
  readonly places: ShellPlaces;
  readonly pace: Pace;
  readonly log: DriverContext['log'];
  /** What every program that is started finds in its environment. */
  readonly environment: Readonly<Record<string, string>>;
  /** See `src/process/run.ts`, also for the errors. Programs are found by name. */
  run(argv: readonly string[], options?: Omit<RunOptions, 'env' | 'cwd'>): Promise<RunResult>;
  /** As `run`, with the output of any length as it comes. See `src/process/stream.ts`. */
  stream(argv: readonly string[], options?: Pick<RunOptions, 'signal' | 'timeoutMs'>): AsyncIterable<Uint8Array>;
  /**
   * Starts long-lived programs under their names, those that do not run already: all at once, so that none may need another at its very
   * beginning. Before them what they want to find is arranged. Where the machine hears programs say that they are ready, it waits for
   * those that do (`readyMs`), and no longer than until one of them has ended; whoever starts them looks at them himself.
   */
  start(programs: readonly Program[], options?: { before?: Arrangement; signal?: AbortSignal }): Promise<void>;
  /** Looks for the program of that name, also one that an earlier service started. */
  find(name: string): Promise<DaemonState>;
  /** Asks it to end, kills it after the grace, and forgets it. Harmless when nothing runs. */
  stop(name: string, graceMs: number, signal: AbortSignal): Promise<void>;
  /** Last lines that the program of that name printed. */
  tail(name: string): Promise<string[]>;
  /** Undefined when there is no such file. */
  read(path: string): Promise<string | undefined>;
  /** Atomic, mode 0600; creates the directory (0700). */
  write(path: string, text: string): Promise<void>;
  /** A file or a whole tree; harmless when missing. */
  remove(path: string): Promise<void>;
  /** Several of these at once: a call costs a machine without hardware virtualisation a part of a second, whatever it does. */
  arrange(arrangement: Arrangement): Promise<void>;
  /** Makes the directories that are missing above a file in a place that is not ours. Returns the topmost of them, if any was. */
  makeWay(path: string): Promise<string | undefined>;
  /** Takes the directories above that file away again, from `top` on, as far as they are empty. True when `top` is gone. */
  removeWay(path: string, top: string): Promise<boolean>;
  /** Brings a file of this host, of any size, into the machine: whole or not at all, with those permission bits. Makes the directory. */
  copyIn(from: string, to: string, mode: number, signal: AbortSignal): Promise<void>;
  /** Whether a program of the machine takes connections at that socket. */
  listens(path: string): Promise<boolean>;
  /**
   * Holds a connection to that socket of a program that runs, where that costs nothing, so that its end is seen when it happens
   * (`Driver.watch`). `hello` is what keeps the program from ending an idle connection.
   */
  hold(path: string, hello: string | Uint8Array): Promise<void>;
  /** A socket on this host that leads to that socket in the machine. */
  localSocket(path: string): Promise<string>;
  /**
   * Makes that port of this host's 127.0.0.1 lead to the one of the same number of the machine's, unless it does already.
   * @throws RdError `ERR_PORT_IN_USE` when something else of this host has it.
   */
  localPort(port: number): Promise<void>;
  /** Takes that way away again, also one that an earlier service made; harmless when there is none. */
  closePort(port: number): Promise<void>;
  /**
   * A connection to an address as the machine sees it; half-closes pass through. Where the machine is behind a connection, one
   * that nobody takes may end at once instead of failing.
   * @throws RdError `ERR_NOT_READY` when nobody takes it, `ERR_CANCELLED`.
   */
  dial(host: string, port: number, signal: AbortSignal): Promise<Duplex>;
  /**
   * Makes a server of this process reachable for programs of the machine. A socket that a killed process left in the place is
   * taken away first.
   * @throws RdError `ERR_DRIVER_TERMINAL` when something else is in the place of a socket, `ERR_PORT_IN_USE`.
   */
  offer(server: Server, at: ServerPlace): Promise<Offer>;
  /** The network that containers are to use. Throws `ERR_DRIVER_FAILED` while the machine is off. */
  network(): Promise<EngineNetwork>;
  /** Processes and mounts of an engine that its programs did not take with them when they ended. */
  leftovers(area: EngineArea): Promise<string[]>;
  /** Ends and unmounts them. Only for an engine whose programs have ended. */
  clear(area: EngineArea): Promise<void>;
}

/** A path, or a port of the machine's 127.0.0.1; 0 for a free one. */
export type ServerPlace = { socket: string } | { port: number };

/** A server that is within reach. */
export interface Offer {
  /** 0 for a socket. */
  port: number;
  /** Ends it and every connection; harmless when repeated. */
  close(): Promise<void>;
}

/** What is to be in some places, in the order in which it is seen to. */
export interface Arrangement {
  /** As `remove`. */
  absent: readonly string[];
  /** Made with mode 0700, with those above them. */
  directories: readonly string[];
  /** As `write`. */
  files: readonly PlacedFile[];
}

export interface PlacedFile {
  path: string;
  text: string;
}

export interface ShellPlaces {
  /** Stands for the instance in names that everybody on the machine shares. */
  id: string;
  /** Survives everything: images, volumes. */
  data: string;
  /** Sockets and records; short enough for every socket below it. */
  run: string;
}

export interface Program {
  /** Its name among the machine's programs, also of its log. */
  name: string;
  argv: readonly string[];
  /** A program with its arguments that becomes this one, as `nsenter` does. */
  within?: readonly string[];
  /** Beside the environment of all programs, and stronger. The machine's owner, root on this host, can read it. */
  env?: Readonly<Record<string, string>>;
  /** It says by sd_notify(3) when it is ready, and has so much time for that. */
  readyMs?: number;
}

/** The machine made the bridge and its rules; an engine keeps its hands off the packet filter. */
export interface EngineNetwork {
  bridge: string;
  /** IPv4 range in CIDR form that every network of the engine is cut from and that is routed outwards. */
  pool: string;
  /** Whether other engines may be on the same network stack, with links and networks of their own. */
  shared: boolean;
}

/** All that says whose a process or mount is. */
export interface EngineArea {
  /** Socket of the containerd that the shims report to. */
  containerd: string;
  /** Its state directory. */
  state: string;
  /** Everything below these directories belongs to the engine. */
  directories: readonly string[];
  /** Control group that holds its containers, below the root of the hierarchy. */
  cgroup?: string;
}
