import { rm } from 'node:fs/promises';
import { createConnection } from 'node:net';
import type { Duplex } from 'node:stream';
import { RdError } from '../../../errors.ts';
import type { Clock } from '../../../os/clock.ts';
import { findDaemon, startDaemon, stopDaemon } from '../../../os/daemon.ts';
import { tailOf } from '../../../os/program-log.ts';
import {
  converse,
  exitError,
  type RunOptions,
  type RunResult,
  run as runProgram,
  stream as streamProgram,
} from '../../../os/run.ts';
import type { QemuPlaces } from './places.ts';
import { shareObservation } from './share-observation.ts';
import { control, guestCommand, masterArguments } from './ssh.ts';

type GuestRunOptions = Omit<RunOptions, 'env' | 'cwd'>;

/** The system in the machine, reached by ssh. Requires a running machine; every method throws `ERR_DRIVER_FAILED` otherwise. */
interface Guest {
  /**
   * Runs a program of the guest like `run` of `src/os/run.ts`. Output contains only what the program prints. A program that times out may continue in
   * the guest.
   */
  run(argv: readonly string[], options?: GuestRunOptions): Promise<RunResult>;
  /** Streams a program of the guest like `stream` of `src/os/run.ts`. */
  stream(argv: readonly string[], options?: Pick<RunOptions, 'signal' | 'timeoutMs'>): AsyncIterable<Uint8Array>;
  /** Starts a program of the guest like `converse` of `src/os/run.ts`. */
  converse(argv: readonly string[]): Promise<Duplex>;
  /** Adds or cancels an ssh forward (`-L`, `-R`). Returns ssh's output: the port, if ssh allocated one. */
  forward(order: 'forward' | 'cancel', ...words: string[]): Promise<string>;
}

export interface Connection extends Guest {
  /**
   * Waits until the guest responds. `up`: it has booted, so skip the check of the ssh banner.
   * @throws RdError `ERR_DRIVER_FAILED` at the deadline, `ERR_CANCELLED`.
   */
  connect(limitMs: number, isAlive: () => Promise<boolean>, signal: AbortSignal, up?: 'up'): Promise<void>;
  /** True if the connection is up; reconnects if necessary. */
  isConnected(signal: AbortSignal): Promise<boolean>;
  /** Returns the number of programs of this process that run in the guest now, each with a session of its own in the connection. */
  sessions(): number;
  /** Called after a reconnect: everything tunneled through the old connection is gone. */
  onReconnect(listener: () => Promise<void>): void;
  close(): Promise<void>;
}

export interface ConnectionParts {
  places: QemuPlaces;
  logFile: string;
  environment: Readonly<Record<string, string>>;
  clock: Clock;
  /** Returns the port of 127.0.0.1 that leads to the guest's ssh. Throws `ERR_DRIVER_FAILED` while the machine is off. */
  port(): Promise<number>;
}

/** sshd's default `PATH` lacks the system programs. */
export const GUEST_PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const POLL_MS = 100;
/** On a busy host without hardware virtualization, a banner takes seconds. An observation may take 30. */
const BANNER_MS = 10_000;
const RECONNECT_MS = 15_000;
const CONTROL_MS = 30_000;
/** Exit status of ssh's own failures; a program may exit with it too. */
const SSH_FAILED = 255;
/** Exit status of `env` for a missing program. */
const NOT_FOUND = 127;
const ALL_STATUSES = Array.from({ length: 256 }, (_, status) => status);

export function guestConnection({ places, logFile, environment, clock, port }: ConnectionParts): Connection {
  const listeners: (() => Promise<void>)[] = [];
  let sessions = 0;
  const local = (argv: readonly string[], options: GuestRunOptions = {}) =>
    runProgram(argv, { ...options, env: environment });

  async function isMasterUp(at: number, signal?: AbortSignal): Promise<boolean> {
    const { exitCode } = await local(control(places, at, 'check'), {
      accept: ALL_STATUSES,
      timeoutMs: CONTROL_MS,
      ...(signal ? { signal } : {}),
    });
    return exitCode === 0;
  }

  async function startMaster(at: number): Promise<void> {
    await stopDaemon(places.sshRecord, { graceMs: 1_000, clock });
    // A killed ssh leaves its socket, and ssh refuses to listen on an existing one.
    await rm(places.control, { force: true });
    await startDaemon({ argv: masterArguments(places, at), recordFile: places.sshRecord, logFile, env: environment });
  }

  async function notifyReconnect(): Promise<void> {
    for (const listener of listeners) await listener();
  }

  async function connect(
    limitMs: number,
    isAlive: () => Promise<boolean>,
    signal: AbortSignal,
    up?: 'up',
  ): Promise<void> {
    const at = await port();
    const deadline = clock.now() + limitMs;
    let started = false;
    for (;;) {
      if (signal.aborted) throw new RdError('ERR_CANCELLED', 'waiting for the guest was canceled');
      if (started && (await isMasterUp(at, signal))) return notifyReconnect();
      if (!(await isAlive())) throw await unreachable('QEMU exited while the guest was starting');
      if (clock.now() >= deadline) throw await unreachable(`the guest did not respond within ${limitMs / 1000} s`);
      // QEMU accepts connections before the guest does, so only a banner proves that sshd is up.
      const running = started && (await findDaemon(places.sshRecord)).state === 'running';
      if (!running && ((up && !started) || (await hasSshBanner(at)))) {
        await startMaster(at);
        started = true;
      } else await clock.sleep(POLL_MS, signal);
    }
  }

  async function unreachable(message: string): Promise<RdError> {
    const details = await tailOf(places.serialLog);
    return new RdError('ERR_DRIVER_FAILED', message, {
      details,
      advice: `See ${places.serialLog} for what the guest printed during its start.`,
    });
  }

  async function checkResult(
    argv: readonly string[],
    result: RunResult,
    accept: readonly number[],
  ): Promise<RunResult> {
    const { exitCode, stderr } = result;
    const [program = ''] = argv;
    if (exitCode === SSH_FAILED && !(await isMasterUp(await port()))) {
      throw new RdError('ERR_DRIVER_FAILED', `the guest cannot be reached (for ${program})`, {
        details: [stderr.trim()],
      });
    }
    if (accept.includes(exitCode)) return result;
    if (exitCode === NOT_FOUND) throw missingProgram(program, [stderr.trim()]);
    throw exitError(program, exitCode, null, stderr);
  }

  async function ensureConnected(signal: AbortSignal): Promise<boolean> {
    const at = await port();
    if (await isMasterUp(at, signal)) return true;
    if (!(await hasSshBanner(at))) return false;
    const deadline = clock.now() + RECONNECT_MS;
    await startMaster(at);
    while (clock.now() < deadline) {
      if (signal.aborted) throw new RdError('ERR_CANCELLED', 'looking for the guest was canceled');
      if (await isMasterUp(at, signal)) {
        await notifyReconnect();
        return true;
      }
      if ((await findDaemon(places.sshRecord)).state !== 'running') return false;
      await clock.sleep(POLL_MS, signal);
    }
    return false;
  }

  return {
    connect,
    isConnected: shareObservation(ensureConnected),
    onReconnect: (listener) => void listeners.push(listener),
    async run(argv, options = {}) {
      const { accept = [0], ...rest } = options;
      const result = await local(guestCommand(places, await port(), ['env', GUEST_PATH, ...argv]), {
        ...rest,
        accept: ALL_STATUSES,
      });
      return checkResult(argv, result, accept);
    },
    async *stream(argv, options = {}) {
      const command = guestCommand(places, await port(), ['env', GUEST_PATH, ...argv]);
      // A client of a control master waits for the remote program, whatever its own options are.
      sessions += 1;
      try {
        yield* streamProgram(command, { ...options, env: environment, graceMs: 0 });
      } finally {
        sessions -= 1;
      }
    },
    async converse(argv) {
      const command = guestCommand(places, await port(), ['env', GUEST_PATH, 'LC_ALL=C', ...argv]);
      const stream = await converse(command, environment);
      sessions += 1;
      stream.once('close', () => {
        sessions -= 1;
      });
      return stream;
    },
    sessions: () => sessions,
    async forward(order, ...words) {
      const { stdout } = await local(control(places, await port(), order, ...words), { timeoutMs: CONTROL_MS });
      return stdout.trim();
    },
    async close() {
      await stopDaemon(places.sshRecord, { graceMs: 2_000, clock });
    },
  };
}

/** Returns the error for a program missing in the guest. */
export function missingProgram(program: string, details: readonly string[] = []): RdError {
  return new RdError('ERR_DRIVER_TERMINAL', `${program} was not found in the guest`, {
    details: [...details],
    advice: 'The guest image does not contain it; build another image with `rdctl image build`.',
  });
}

/** True if an ssh server responds on the port. */
function hasSshBanner(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: '127.0.0.1', port });
    const end = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(BANNER_MS, () => end(false));
    socket.once('data', (data: Buffer) => end(data.toString('latin1').startsWith('SSH-2.0')));
    socket.on('error', () => end(false));
    socket.once('close', () => end(false));
  });
}

/**
 * Milliseconds between checks of the clock. A check runs a program, which costs an idle emulated guest as much as all else in a minute. Events that
 * make a clock wrong are known without it.
 */
const CHECK_INTERVAL_MS = 15 * 60_000;
const MAX_DRIFT_S = 5;

/** Sets the clock forward by `$1` seconds. */
const SHIFT_SCRIPT = `date -u -s "@$(($(date +%s) + $1))"`;

/**
 * Corrects the guest clock, which misses the time that the host slept or the guest was halted. It is set forward by the difference, because
 * on a busy host without hardware virtualization a program may start long after it was requested.
 * @param clock stands still while the host sleeps.
 * @param wallClock milliseconds since 1970.
 */
export function createGuestClock(guest: Pick<Connection, 'run'>, clock: Clock, wallClock: () => number = Date.now) {
  let lastCheck: { at: number; wall: number; off: boolean } | undefined;
  const hostSeconds = () => Math.floor(wallClock() / 1000);

  async function check(signal: AbortSignal) {
    const earliest = hostSeconds();
    const { stdout } = await guest.run(['date', '+%s'], { signal });
    const latest = hostSeconds();
    const guestSeconds = Number(stdout.trim());
    const off = guestSeconds < earliest - MAX_DRIFT_S || guestSeconds > latest + MAX_DRIFT_S;
    lastCheck = { at: clock.now(), wall: wallClock(), off };
    return { off, behindSeconds: Math.round((earliest + latest) / 2) - guestSeconds };
  }

  return {
    /** True if the clock is off. Checks when the host has slept or its own clock was set, and rarely besides. */
    async isOff(signal: AbortSignal): Promise<boolean> {
      if (lastCheck && !lastCheck.off) {
        const passedMs = clock.now() - lastCheck.at;
        const jumpMs = Math.abs(wallClock() - lastCheck.wall - passedMs);
        if (passedMs < CHECK_INTERVAL_MS && jumpMs < MAX_DRIFT_S * 1000) return false;
      }
      return (await check(signal)).off;
    },
    async set(signal: AbortSignal): Promise<void> {
      const { behindSeconds } = await check(signal);
      await guest.run(['sh', '-c', SHIFT_SCRIPT, 'shift', String(behindSeconds)], { signal });
      lastCheck = undefined;
    },
    /** Forces a check on the next call. */
    forget(): void {
      lastCheck = undefined;
    },
  };
}

export type GuestClock = ReturnType<typeof createGuestClock>;
