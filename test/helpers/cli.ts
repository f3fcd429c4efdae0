import { spawn } from 'node:child_process';
import type { CommandEntry, Io } from '../../cli/command.ts';
import { COMMANDS } from '../../cli/commands.ts';
import { run } from '../../cli/run.ts';
import type { Platform } from '../../src/settings/field.ts';
import { commandOf } from './tool-program.ts';

/** The result of a command line. */
export interface Outcome {
  exit: number;
  out: string;
  err: string;
}

export interface Stage {
  env?: Record<string, string | undefined>;
  stdin?: string | Buffer;
  platform?: Platform;
  cwd?: string;
  interactive?: boolean;
  /** What is typed at a prompt; by default nothing is asked. */
  ask?: Io['ask'];
  progress?: boolean;
  columns?: number;
  signal?: AbortSignal;
  policies?: NonNullable<Io['policies']>;
  /** By default `host` can run here. */
  chooseDriver?: NonNullable<Io['chooseDriver']>;
  /** Other commands than ours. */
  commands?: readonly CommandEntry[];
}

/** Streams that keep what is written. Nothing of the real process is visible, including its environment. */
export function fakeIo(stage: Stage = {}): Io & { text: { out: string; err: string } } {
  const text = { out: '', err: '' };
  return {
    text,
    out: (part) => {
      // Each byte as one character, so that a test sees all of them.
      text.out += typeof part === 'string' ? part : Buffer.from(part).toString('latin1');
    },
    err: (part) => {
      text.err += part;
    },
    say: (part) => {
      text.out += part;
    },
    readStdin: async () => Buffer.from(stage.stdin ?? ''),
    interactive: stage.interactive ?? false,
    ask:
      stage.ask ??
      (async (question) => {
        throw new Error(`nobody answers: ${question}`);
      }),
    progress: stage.progress ?? false,
    columns: stage.columns,
    color: false,
    env: stage.env ?? {},
    cwd: stage.cwd ?? process.cwd(),
    platform: stage.platform ?? 'linux',
    self: commandOf(),
    signal: stage.signal ?? new AbortController().signal,
    chooseDriver:
      stage.chooseDriver ??
      (async ({ requested, recorded }) => ({ factory: { name: recorded ?? requested ?? 'host' } })),
    ...(stage.policies ? { policies: stage.policies } : {}),
  };
}

/** Runs the tool from source in this process. */
export async function rdctl(argv: readonly string[], stage: Stage = {}): Promise<Outcome> {
  const io = fakeIo(stage);
  const exit = await run(argv, io, stage.commands ?? COMMANDS);
  return { exit, ...io.text };
}

export interface ChildOptions {
  env?: Record<string, string | undefined>;
  stdin?: string | Buffer;
  /** Called with the running child, to send signals or close its output. */
  onSpawn?: (child: ReturnType<typeof spawn>) => void;
  /** Instead of the tool under test. */
  entry?: string;
  cwd?: string;
  /** Another user than that of the test; only as root. */
  uid?: number;
}

/** Nothing listens there: services under test contact no other computer, not even a name server. */
const NOBODY = 'http://127.0.0.1:9/';

/** Runs the built tool as a program. `exit` is -1 when a signal ended it. */
export function rdctlProgram(argv: readonly string[], options: ChildOptions = {}): Promise<Outcome> {
  return new Promise((done, fail) => {
    const [program, ...words] = commandOf(options.entry);
    const child = spawn(program, [...words, ...argv], {
      env: { PATH: process.env.PATH, RDCTL_CONNECTIVITY_URL: NOBODY, ...options.env },
      stdio: ['pipe', 'pipe', 'pipe'],
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
    });
    const text = { out: '', err: '' };
    child.stdout.on('data', (part: Buffer) => {
      text.out += part.toString();
    });
    child.stderr.on('data', (part: Buffer) => {
      text.err += part.toString();
    });
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.stdin ?? '');
    child.once('error', fail);
    child.once('close', (exit) => done({ exit: exit ?? -1, ...text }));
    options.onSpawn?.(child);
  });
}
