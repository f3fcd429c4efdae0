import type { PolicySources } from '../profiles/policies/read.ts';
import type { Connection } from '../src/client/connection.ts';
import type { ConnectionFlags } from '../src/client/discovery.ts';
import type { DriverChoice } from '../src/drivers/index.ts';
import type { Platform } from '../src/settings/field.ts';

/** How a flag is parsed, with the literals of Rancher Desktop's `rdctl` (`true`/`t`/`1`, `0x10`, `5s`). */
export type Flag = {
  summary: string;
  /** Short name: one letter. */
  short?: string;
  hidden?: boolean;
  /** Operating systems whose help lists the flag; all if absent. It parses on the others too, and the command rejects it. */
  platforms?: readonly Platform[];
  /** Hidden names with the same meaning. */
  aliases?: readonly string[];
} & (
  | { type: 'boolean' }
  /** `port`: from 1 to 65535; 0 counts as not given. */
  | { type: 'integer'; port?: true }
  /** Milliseconds; written `300ms`, `10m`, `1h30m`. `any` permits zero and negative ones, which the compatible tool accepts. */
  | { type: 'duration'; any?: true }
  | {
      type: 'string';
      values?: readonly string[];
      /** Values for shell completion if they are checked elsewhere or not at all. */
      offers?: readonly string[];
      placeholder?: string;
      /** Set for an output format whose `yaml` is the command's `json`, converted. */
      yamlFromJson?: true;
    }
  /** A repeatable flag. */
  | { type: 'strings'; offers?: readonly string[]; placeholder?: string }
);
export type FlagTable = Readonly<Record<string, Flag>>;

type ValueOf<Type extends Flag['type']> = Type extends 'boolean'
  ? boolean
  : Type extends 'integer' | 'duration'
    ? number
    : Type extends 'strings'
      ? string[]
      : string;

/** The value type that a flag declaration infers. Keys are flag names without dashes: `out-file`. */
type FlagValues<T extends FlagTable> = { [K in keyof T]?: ValueOf<T[K]['type']> };

/** One flag as typed, in command-line order. `name` is canonical, `typed` the alias used. */
export interface GivenFlag {
  name: string;
  typed: string;
  value: boolean | number | string;
}

/** The streams and terminal properties; replaced in tests. Only `cli/process.ts` touches `process`. */
export interface Io {
  /** Writes text, or the bytes of a file that is not UTF-8, to stdout. */
  out(data: string | Uint8Array): void;
  err(text: string): void;
  /** Writes text for people to stdout. On a terminal it is folded to the width, like everything on stderr. */
  say(text: string): void;
  /** Whether the reader of stdout has gone, so that a command that only follows something can end. */
  readonly closed?: boolean;
  /** Reads standard input to its end, or `limit + 1` bytes of it: enough to reject it as too long. */
  readStdin(limit: number): Promise<Buffer>;
  /** Whether stdin and stderr are terminals, so that prompts can be answered. */
  interactive: boolean;
  /**
   * Asks on stderr for one line; must only be called when `interactive`. Text typed before the question is discarded.
   * @returns undefined when the user leaves, as with Ctrl-C.
   */
  ask(question: string): Promise<string | undefined>;
  /** Whether stderr is a terminal, so that progress can be drawn. */
  progress: boolean;
  /** Columns of the terminal on stdout; undefined when it is not one. */
  columns?: number | undefined;
  /** Whether stdout and stderr get color: on terminals and with `FORCE_COLOR`; never with `NO_COLOR`. */
  color: boolean;
  env: Readonly<Record<string, string | undefined>>;
  cwd: string;
  platform: Platform;
  /** Program and first arguments that restart this tool: `[node, script]`. */
  self: readonly string[];
  /** Overrides the operating system's locations of deployment profiles. */
  policies?: PolicySources;
  /** Overrides the driver detection of a new service; throws `ERR_NO_DRIVER`. */
  chooseDriver?: (choice: DriverChoice) => Promise<{ factory: { name: string } }>;
  /** Signal that SIGINT or SIGTERM aborts. */
  signal: AbortSignal;
}

/** Global flags, accepted before or after the subcommand. */
export interface GlobalFlags extends ConnectionFlags {
  verbose?: boolean;
}

export interface Invocation<T extends FlagTable = FlagTable> {
  flags: FlagValues<T>;
  given: readonly GivenFlag[];
  args: readonly string[];
  globals: GlobalFlags;
  io: Io;
  /** All commands, for help and completion. */
  commands: readonly CommandEntry[];
  /**
   * Resolves the connection from the global flags and the environment; throws `ERR_NOT_RUNNING` or
   * `ERR_CONNECTION_SETTINGS`.
   */
  connect(): Promise<Connection>;
}

/** The parts of an invocation that reach a service. */
export type Caller = Pick<Invocation, 'connect' | 'globals' | 'io'>;

/** A command is a value. `run` returns the exit code; only `main` prints what it throws. */
export interface Command<T extends FlagTable = FlagTable> {
  /** All words after `rdctl`: `set`, `snapshot create`. */
  name: string;
  /** Aliases of a subcommand's last word. */
  aliases?: readonly string[];
  summary: string;
  /** Argument part of the usage line: `[-f FILE]... [PLAN]`. */
  usage: string;
  /** Shown by `--help` below the summary: behavior, exit codes, examples. */
  description: string;
  flags: T;
  /** Classic commands exit 1 on every failure and print `Error: …`; the new ones use the exit code table. */
  classic: boolean;
  /** Replacement for a deprecated command, as a sentence; printed first, even when the command line is invalid. */
  deprecated?: string;
  /**
   * Subcommands of a group (`cli/group.ts`), in help order. Without a subcommand the group itself runs. Group flags may precede the subcommand's
   * name, and the subcommand parses them.
   */
  subcommands?: readonly Command[];
  /** Set for a command that ends the service, which must not start it (`rdctl service install --on-first-use`). */
  endsService?: true;
  /** Set if every word after the name is passed through as typed, including `-h` and `--`. */
  passesWords?: true;
  run(invocation: Invocation<T>): Promise<number>;
}

export type Group = 'declare' | 'control' | 'other';

/** One line of the root help, with a loader for the command. */
export interface CommandEntry {
  name: string;
  summary: string;
  group: Group;
  /** Set for a command that is neither listed in the help nor suggested. */
  hidden?: true;
  load(): Promise<Command>;
}

/** Defines a command, inferring its flag table. */
export function defineCommand<const T extends FlagTable>(command: Command<T>): Command<T> {
  return command;
}
