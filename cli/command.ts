import type { PolicySources } from '../profiles/policies/read.ts';
import type { Connection } from '../src/client/connection.ts';
import type { ConnectionFlags } from '../src/client/discovery.ts';
import type { DriverChoice } from '../src/drivers/index.ts';

/** How a flag is parsed; the literals are those of the compatible tool (`true`/`t`/`1`, `0x10`, `5s`). */
export type Flag = {
  summary: string;
  /** One letter. */
  short?: string;
  hidden?: boolean;
  /** Operating systems on whose help it is; absent: all. It parses on the others too, and the command refuses it. */
  platforms?: readonly NodeJS.Platform[];
  /** Hidden names with the same meaning. */
  aliases?: readonly string[];
} & (
  | { type: 'boolean' }
  /** `port`: from 1 to 65535; 0 counts as not given. */
  | { type: 'integer'; port?: true }
  /** Milliseconds; written `300ms`, `10m`, `1h30m`. */
  | { type: 'duration' }
  | {
      type: 'string';
      values?: readonly string[];
      /** What a shell offers, where the values are checked elsewhere or by nobody. */
      offers?: readonly string[];
      placeholder?: string;
    }
  /** Repeatable. */
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

/** One flag as it was typed, in command-line order. `name` is canonical, `typed` the alias that was used. */
export interface GivenFlag {
  name: string;
  typed: string;
  value: boolean | number | string;
}

/** The streams and facts of the surrounding terminal; replaced in tests. Only `cli/main.ts` touches `process`. */
export interface Io {
  /** Text, or the bytes of a file that is no UTF-8. */
  out(data: string | Uint8Array): void;
  err(text: string): void;
  /** Standard input up to its end, or `limit` bytes and one more of it: that is enough to refuse it. */
  readStdin(limit: number): Promise<Buffer>;
  /** A person is there to answer: stdin and stderr are terminals. */
  interactive: boolean;
  /** stderr is a terminal: progress may be drawn. */
  progress: boolean;
  /** Columns of the terminal on stdout; `undefined` where it is none. */
  columns?: number | undefined;
  /** Colour on stdout and stderr: on terminals and with `FORCE_COLOR`; never with `NO_COLOR`. */
  colour: boolean;
  env: Readonly<Record<string, string | undefined>>;
  cwd: string;
  platform: NodeJS.Platform;
  /** Program and first arguments that start this tool again: `[node, script]`. */
  self: readonly string[];
  /** Where deployment profiles are, instead of the places of the operating system. */
  policies?: PolicySources;
  /** Which driver a service would begin with, instead of what this computer has; throws `ERR_NO_DRIVER`. */
  chooseDriver?: (choice: DriverChoice) => Promise<{ factory: { name: string } }>;
  /** Aborted by SIGINT or SIGTERM. */
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
  /** Resolves the connection as the globals and the environment say; throws `ERR_NOT_RUNNING` or `ERR_CONNECTION_SETTINGS`. */
  connect(): Promise<Connection>;
}

/** A command is a value. `run` returns the exit code; what it throws is printed by `main` alone. */
export interface Command<T extends FlagTable = FlagTable> {
  /** All words after `rdctl`: `set`, `snapshot create`. */
  name: string;
  /** Of a subcommand: other last words with the same meaning. */
  aliases?: readonly string[];
  summary: string;
  /** Argument part of the usage line: `[-f FILE]... [PLAN]`. */
  usage: string;
  /** Shown by `--help` below the summary: behaviour, exit codes, examples. */
  description: string;
  flags: T;
  /** Classic commands exit 1 on every failure and print `Error: …`; the new ones use the table of exit codes. */
  classic: boolean;
  /** What to use instead, as a sentence; printed before anything else, a mistake in the command line included. */
  deprecated?: string;
  /**
   * Of a group (`cli/group.ts`): the commands below it, in the order of its help. A command line that names none of them runs the
   * group itself. Flags of a group may stand before the subcommand's word, and are parsed by the subcommand.
   */
  subcommands?: readonly Command[];
  /** Every word after the name is an argument as it was typed, `-h` and `--` included. */
  passesWords?: true;
  run(invocation: Invocation<T>): Promise<number>;
}

/** Infers the flag table. */
export function defineCommand<const T extends FlagTable>(command: Command<T>): Command<T> {
  return command;
}
