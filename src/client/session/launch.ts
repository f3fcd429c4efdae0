import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ERRORS, type ErrorCode, RdError } from '../../errors.ts';
import { defined, type JsonObject } from '../../json.ts';
import { type Clock, steadyClock } from '../../os/clock.ts';
import { makeDirectory } from '../../os/directory.ts';
import { ioError } from '../../os/io-error.ts';
import { type Detached, detach } from '../../os/launch.ts';
import { adoptPlaces, noting, refuseRunning } from '../../state/drop-in.ts';
import { OUTPUT_LOG } from '../../state/log-files.ts';
import { createClient } from '../client.ts';
import type { Connection } from '../connection.ts';
import { type ConnectionFlags, discover } from '../discovery.ts';
import { homeService } from '../home-service.ts';
import { checkDriver } from './driver.ts';
import { exitingService, waitForOtherService } from './exit.ts';
import { homeOf, type SessionIo } from './home.ts';

export interface LaunchInput {
  io: SessionIo;
  globals: ConnectionFlags;
  /** Initial desired power; `keep` leaves it unchanged. */
  power: 'keep' | 'started' | 'stopped';
  /** Whether the backend stays off while this service lives; desired power is unchanged. */
  idle?: boolean | undefined;
  driver?: string | undefined;
  /** Initial value of the transient setting `noModalDialogs`. */
  noModalDialogs?: boolean | undefined;
  /** Whether to take over Rancher Desktop's directories, in drop-in mode. */
  adopt?: boolean | undefined;
  /** Partial settings, applied before anything starts. */
  settings?: JsonObject | undefined;
  /** Executable to run instead of this tool; `.cjs`, `.mjs` and `.js` run with the current Node. */
  path?: string | undefined;
  clock?: Clock;
  /** Milliseconds until the API must answer; 60,000 by default. Waiting for another service to exit does not count. */
  timeoutMs?: number;
  /** Whether to print no waiting message. */
  quiet?: boolean;
  /** Returns the caller's remaining milliseconds for the wait for another service; unlimited by default. */
  leftMs?: () => number;
}

const POLL_MS = 40;
/** Milliseconds of one readiness probe; a service busy starting may be slow, and is probed again. */
const LOOK_MS = 2000;

interface Launched {
  connection: Connection;
  /** Process of the service; absent when another command was faster and the service is not ours to end. */
  pid?: number;
}

/**
 * Starts the service in the background, detached from our streams, and returns once its API answers. Uses a service that another command starts
 * meanwhile; waits for one that is shutting down first.
 * @throws RdError with the service's own code and message when it exited; `ERR_DEADLINE` when it stays silent.
 */
export async function launchService(input: LaunchInput): Promise<Launched> {
  const { io, clock = steadyClock, timeoutMs = 60_000 } = input;
  const here = homeOf(io);
  // Check before creating anything, so that our files are not mistaken for another application's.
  const adopted = await noting(here, async () => {
    checkDriver(input.driver, io.env);
    return adoptPlaces(here, { adopt: input.adopt ?? false, now: Date.now() });
  });
  for (const notice of adopted) io.err(`notice: ${notice}\n`);
  let left = timeoutMs;
  for (;;) {
    await waitForOtherService(io, input);
    const begun = clock.now();
    const launched = await launchOnce(input, begun + left);
    if (launched) return launched;
    left -= clock.now() - begun;
  }
}

/**
 * Launches once. Returns undefined if the launched service yielded to another that has exited since or is exiting. `deadline` is when the API must
 * answer.
 */
async function launchOnce(input: LaunchInput, deadline: number): Promise<Launched | undefined> {
  const { io, clock = steadyClock, timeoutMs = 60_000 } = input;
  const here = homeOf(io);
  // A connection file left by an earlier service is stale until ours rewrites it.
  const stale = textOf(here.connectionFile);
  const argv = [...program(input), ...serveArguments(input)];
  const child = await inBackground(io, argv, input.settings && JSON.stringify(input.settings));
  for (;;) {
    // Order matters: a child that has exited may have yielded to a service that another command started, and a running
    // service has its connection file by now.
    const ended = child.ended();
    const home = ended ? (await homeService(here)).kind : undefined;
    const answer = ended || textOf(here.connectionFile) !== stale ? await answering(io) : undefined;
    if (answer?.pid === child.pid) return answer;
    const leaving = ended || answer ? await exitingService(io) : undefined;
    // The service that ours yields to may be shutting down; until ours has yielded, it can still win.
    if (ended && leaving) return undefined;
    if (answer && !leaving && (ended || !input.idle)) return { connection: answer.connection };
    // A service that waits for the last one to exit has a limit of its own.
    const late = clock.now() >= deadline && !(await exitingService(io));
    if (ended && (late || home === 'none' || home === 'left')) {
      const error = await earlyExitError(child);
      if (late || error.code !== 'ERR_ALREADY_RUNNING') throw error;
      // The launched service did not yield to another application, so a running one is refused.
      await refuseRunning(here);
      return undefined;
    }
    if (io.signal.aborted) {
      throw new RdError('ERR_CANCELLED', 'Interrupted while the service was starting.', {
        advice: `It goes on starting (pid ${child.pid}). Stop it with \`rdctl shutdown\`.`,
      });
    }
    if (late) {
      throw new RdError('ERR_DEADLINE', `the service (pid ${child.pid}) did not answer within ${timeoutMs / 1000} s`, {
        advice: `Check the logs in ${here.logs}, or run \`rdctl serve\` in the foreground.`,
      });
    }
    await clock.sleep(POLL_MS, io.signal);
  }
}

/**
 * Starts a background process that stops the backend that a killed service left running, and exits. It needs neither settings nor a port. `gone()`
 * resolves to false while it works.
 */
export async function launchStop(io: SessionIo): Promise<{ pid: number; gone(): Promise<boolean> }> {
  const child = await inBackground(io, [...serviceProgram(io.self), 'serve', '--stop-left']);
  return {
    pid: child.pid,
    async gone() {
      if (child.failed()) throw await earlyExitError(child);
      return child.ended();
    },
  };
}

async function inBackground(io: SessionIo, argv: readonly string[], input?: string): Promise<Detached> {
  const { logs } = homeOf(io);
  const logFile = join(logs, OUTPUT_LOG);
  await makeDirectory(logs);
  return detach({ argv, env: io.env, logFile, ...defined({ input }) }).catch((cause: unknown) => {
    throw ioError('write', logFile, cause);
  });
}

/**
 * Returns the program and first arguments of a service that is this tool, `self`. On Node its young generation stays small, because it mostly waits.
 */
export function serviceProgram(self: readonly string[]): readonly string[] {
  const [program = '', ...script] = self;
  return script.length === 0 ? self : [program, '--max-semi-space-size=1', ...script];
}

function program({ io, path }: LaunchInput): readonly string[] {
  if (path === undefined) return serviceProgram(io.self);
  const [node = ''] = io.self;
  return /\.[cm]?js$/.test(path) ? serviceProgram([node, path]) : [path];
}

function serveArguments({ power, idle, driver, noModalDialogs, globals, settings }: LaunchInput): string[] {
  return [
    'serve',
    '--launched',
    `--power=${power}`,
    ...(idle ? [`--idle=${process.pid}`] : []),
    ...(driver === undefined ? [] : [`--driver=${driver}`]),
    ...(globals.port ? [`--port=${globals.port}`] : []),
    ...(noModalDialogs ? ['--no-modal-dialogs'] : []),
    ...(settings ? ['--settings=-'] : []),
  ];
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** Returns our own service, if it answers. */
async function answering(io: SessionIo): Promise<{ connection: Connection; pid: number } | undefined> {
  // A password in the environment belongs to an earlier service; ours has just generated its own.
  const { RDCTL_PASSWORD: _other, ...env } = io.env;
  try {
    const connection = await discover({}, env, io.platform);
    if (connection.foreign) return undefined;
    const { pid } = await createClient(connection).status({ timeoutMs: LOOK_MS, signal: io.signal });
    return { connection, pid };
  } catch (error) {
    if (error instanceof RdError) return undefined;
    throw error;
  }
}

/** Returns the final error of a service that exited, as an error of this command. */
async function earlyExitError(child: Detached): Promise<RdError> {
  const output = await child.output();
  const { code = 'ERR_NOT_READY', said = output.slice(Math.max(0, output.lastIndexOf('Error: '))) } =
    failureIn(output) ?? {};
  // The usage block of `serve` is irrelevant to other commands.
  const [message, ...rest] = (said.split('\nUsage:\n', 1)[0] ?? '').trimEnd().split('\n');
  const details = rest.slice(0, -1);
  const advice = rest.at(-1);
  return new RdError(code, message?.replace(/^Error: /, '') || 'the service exited before it was ready', {
    details,
    ...defined({ advice }),
  });
}

const WORDS = 'The service did not start: ';

/** Returns the prefix of a service's final error, which the command that launched it parses. */
export function failureLine(code: ErrorCode): string {
  return `${WORDS}${code}\n`;
}

/** Parses the last error line of a service: the code and the message after it. */
export function failureIn(output: string): { code: ErrorCode; said: string } | undefined {
  const at = output.lastIndexOf(WORDS);
  const end = output.indexOf('\n', at);
  if (at === -1 || end === -1) return undefined;
  const word = output.slice(at + WORDS.length, end);
  return isCode(word) ? { code: word, said: output.slice(end + 1) } : undefined;
}

function isCode(word: string): word is ErrorCode {
  return Object.hasOwn(ERRORS, word);
}
