import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createClient } from '../../src/client/client.ts';
import type { Connection } from '../../src/client/connection.ts';
import { discover } from '../../src/client/discovery.ts';
import { homeService } from '../../src/client/home-service.ts';
import { RdError } from '../../src/errors.ts';
import type { JsonObject } from '../../src/json.ts';
import { type Detached, detach } from '../../src/process/detach.ts';
import { type Pace, realPace } from '../../src/process/pace.ts';
import { COMPATIBLE } from '../../src/product.ts';
import { adoptPlaces, refuseRunning } from '../../src/storage/adoption.ts';
import { noting } from '../../src/storage/background-log.ts';
import { makeDirectory } from '../../src/storage/directory.ts';
import { ioError } from '../../src/storage/io-error.ts';
import { formatDuration } from '../arguments/literals.ts';
import { supportedPlatform } from '../arguments/platform.ts';
import type { GlobalFlags, Io } from '../command.ts';
import { homeOf } from './absence.ts';
import { checkDriver } from './driver-name.ts';
import { failureIn } from './failure-line.ts';
import { leavingService, othersEnd } from './service-end.ts';

export interface LaunchInput {
  io: Io;
  globals: GlobalFlags;
  /** Desired power that the service begins with; `keep`: what it was. */
  power: 'keep' | 'started' | 'stopped';
  /** The backend stays off as long as this service lives; the desired power is not touched. */
  idle?: boolean;
  driver?: string;
  /** First value of the transient setting of that name. */
  noModalDialogs?: boolean;
  /** In drop-in mode: take over the directories that the compatible application made. */
  adopt?: boolean;
  /** Partial settings that the service takes before it starts anything. */
  settings?: JsonObject;
  /** Another executable of this tool than the one that runs; `.cjs`, `.mjs` and `.js` run with the present Node. */
  path?: string;
  pace?: Pace;
  /** Milliseconds until the API must answer; 60,000 unless told. What is waited for a service that ends does not count. */
  timeoutMs?: number;
  /** Nothing of the waiting goes to stderr. */
  quiet?: boolean;
  /** Milliseconds that the caller has left for such a wait; as long as it takes unless told. */
  leftMs?: () => number;
}

const POLL_MS = 40;
/** One look at the API; a service that is busy starting may be slow, and is asked again. */
const LOOK_MS = 2000;

interface Launched {
  connection: Connection;
  /** Of the service; absent when another command was faster, and the service is not ours to end. */
  pid?: number;
}

/**
 * Starts the service in the background, returns once its API answers, and says whose the service is. It holds none of our streams. One
 * that another command starts meanwhile is as good; one that is about to end is waited out first.
 * @throws RdError with the service's own code and sentence when it ended instead; `ERR_DEADLINE` when it stays silent.
 */
export async function launchService(input: LaunchInput): Promise<Launched> {
  const { io, pace = realPace, timeoutMs = 60_000 } = input;
  const here = homeOf(io);
  // Before anything is made there: what we make must not be taken for another's.
  const adopted = await noting(here, async () => {
    checkDriver(input.driver, io.env);
    return adoptPlaces(here, { adopt: input.adopt ?? false, now: Date.now() });
  });
  for (const notice of adopted) io.err(`notice: ${notice}\n`);
  let left = timeoutMs;
  for (;;) {
    await othersEnd(io, input);
    const begun = pace.now();
    const launched = await launchOnce(input, begun + left);
    if (launched) return launched;
    left -= pace.now() - begun;
  }
}

/** Nothing when it gave way to a service that has ended since, or that does not stay. `deadline`: when the API must answer. */
async function launchOnce(input: LaunchInput, deadline: number): Promise<Launched | undefined> {
  const { io, pace = realPace, timeoutMs = 60_000 } = input;
  const here = homeOf(io);
  // What an earlier service left leads to nobody, or to another program; ours writes the file anew.
  const stale = textOf(here.connectionFile);
  const argv = [...program(input), ...serveArguments(input)];
  const child = await inBackground(io, argv, input.settings && JSON.stringify(input.settings));
  for (;;) {
    // Order matters: what has ended by now may have given way to a service that another command started, and what runs by now
    // has its connection file.
    const ended = child.ended();
    const home = ended ? (await homeService(here)).kind : undefined;
    const answer = ended || textOf(here.connectionFile) !== stale ? await answering(io) : undefined;
    if (answer?.pid === child.pid) return answer;
    const leaving = ended || answer ? await leavingService(io) : undefined;
    // What our own gives way to may be about to end; until it has given way, it may yet be the one.
    if (ended && leaving) return undefined;
    if (answer && !leaving && (ended || !input.idle)) return { connection: answer.connection };
    const late = pace.now() >= deadline;
    if (ended && (late || home === 'none' || home === 'left')) {
      const error = await endedEarly(child);
      if (late || error.code !== 'ERR_ALREADY_RUNNING') throw error;
      // It was not another application that it gave way to.
      await refuseRunning(here);
      return undefined;
    }
    if (io.signal.aborted) throw new RdError('ERR_CANCELLED', 'Interrupted while the service was starting.');
    if (late) {
      throw new RdError(
        'ERR_DEADLINE',
        `the service (pid ${child.pid}) did not answer within ${formatDuration(timeoutMs)}`,
        {
          advice: `Look into ${here.logs}, or run \`rdctl serve\` in the foreground.`,
        },
      );
    }
    await pace.sleep(POLL_MS, io.signal);
  }
}

/**
 * Starts a process in the background that stops what a killed service left running, and ends. It needs neither settings nor a port.
 * `gone()` is false while it works.
 */
export async function launchStop(io: Io): Promise<{ pid: number; gone(): Promise<boolean> }> {
  const child = await inBackground(io, [...io.self, 'serve', '--stop-left']);
  return {
    pid: child.pid,
    async gone() {
      if (child.failed()) throw await endedEarly(child);
      return child.ended();
    },
  };
}

async function inBackground(io: Io, argv: readonly string[], input?: string): Promise<Detached> {
  const { logs } = homeOf(io);
  const logFile = join(logs, 'service-output.log');
  await makeDirectory(logs);
  return detach({ argv, env: io.env, logFile, ...(input === undefined ? {} : { input }) }).catch((cause: unknown) => {
    throw ioError('write', logFile, cause);
  });
}

/** Program and first arguments of the service. */
function program({ io, path }: LaunchInput): readonly string[] {
  if (path === undefined) return io.self;
  const [node = ''] = io.self;
  return /\.[cm]?js$/.test(path) ? [node, path] : [path];
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

/** Our own service, when it answers as one. */
async function answering(io: Io): Promise<{ connection: Connection; pid: number } | undefined> {
  // The password in the environment is for a service that was there before, and ours has just made its own.
  const { RDCTL_PASSWORD: _other, ...env } = io.env;
  try {
    const connection = await discover({}, env, supportedPlatform(io.platform));
    if (connection.foreign) return undefined;
    const { pid } = await createClient(connection).status({ timeoutMs: LOOK_MS, signal: io.signal });
    return { connection, pid };
  } catch (error) {
    if (error instanceof RdError) return undefined;
    throw error;
  }
}

/** The sentence that the service printed before it ended, as an error of ours. */
async function endedEarly(child: Detached): Promise<RdError> {
  const output = await child.output();
  const { code = 'ERR_NOT_READY', said = output.slice(Math.max(0, output.lastIndexOf('Error: '))) } =
    failureIn(output) ?? {};
  // The usage of `serve` is of no use to somebody who called another command.
  const [message, ...rest] = (said.split('\nUsage:\n', 1)[0] ?? '').trimEnd().split('\n');
  const details = rest.slice(0, -1);
  const advice = rest.at(-1);
  return new RdError(code, message?.replace(/^Error: /, '') || 'the service ended before it answered', {
    details,
    ...(advice === undefined ? {} : { advice }),
  });
}

/** Summary of the flag `--adopt` of the commands that start a service. */
export const ADOPT = `With RDCTL_COMPAT: take over the directories that ${COMPATIBLE.productName} made; its settings are copied first`;
