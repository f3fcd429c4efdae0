import { randomBytes } from 'node:crypto';
import { chmod, copyFile, lstat, mkdir, open, rename, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { RdError } from '../../../errors.ts';
import { readIfThere, writeFileAtomic } from '../../../os/atomic-file.ts';
import type { Clock } from '../../../os/clock.ts';
import { findDaemon, startDaemon, stopDaemon } from '../../../os/daemon.ts';
import { ioError } from '../../../os/io-error.ts';
import { boundLog, tailOf } from '../../../os/program-log.ts';
import { isThere } from '../../../os/regular-file.ts';
import { stream } from '../../../os/run.ts';
import { acceptsConnections } from '../../../os/socket.ts';
import type { DriverContext } from '../../driver.ts';
import type { Arrangement, EngineNetwork, Run, Shell } from '../../shell.ts';
import { connectTo, listenOnHost } from '../shared/sockets.ts';
import { clearLeftovers, findLeftovers } from './leftovers.ts';
import type { HostPlaces } from './places.ts';

export interface HostShellParts {
  places: HostPlaces;
  logs: string;
  run: Run;
  environment: Readonly<Record<string, string>>;
  clock: Clock;
  network: () => Promise<EngineNetwork>;
  hold: Shell['hold'];
  /** Returns the number of connections held to a socket. */
  held(path: string): number;
  log: DriverContext['log'];
}

/** Creates a shell that presents this host to engines. */
export function hostShell({ places, logs, run, environment, clock, network, hold, held, log }: HostShellParts): Shell {
  const recordOf = (name: string) => join(places.run, `${name}.pid.json`);
  const logOf = (name: string) => join(logs, `${name}.log`);

  return {
    places,
    clock,
    run,
    stream: (argv, options) => stream(argv, { ...options, env: environment }),
    network,
    hold,
    holds: async (path) => held(path) > 0,
    log,
    environment,
    async offer(server, at) {
      if ('socket' in at) await prepareSocketPath(at.socket);
      return listenOnHost(server, at);
    },
    async start(programs, { before } = {}) {
      if (before) await arrange(before);
      for (const { name, env, ...command } of programs) {
        const files = { recordFile: recordOf(name), logFile: logOf(name) };
        await startDaemon({ ...command, ...files, env: { ...environment, ...env } });
      }
    },
    async find(name) {
      await boundLog(logOf(name));
      return findDaemon(recordOf(name));
    },
    async stop(name, graceMs, signal) {
      await stopDaemon(recordOf(name), { graceMs, clock, signal });
    },
    tail: (name) => tailOf(logOf(name)),
    read: readIfThere,
    exists: isThere,
    write: (path, text) => writeFileAtomic(path, text),
    remove: (path) => rm(path, { recursive: true, force: true }),
    arrange,
    copyIn,
    listens: (path) => acceptsConnections({ path }),
    localSocket: async (path) => path,
    localPort: async () => undefined,
    closePort: async () => undefined,
    dial: (address, port, signal) => connectTo({ host: address, port }, signal),
    leftovers: findLeftovers,
    clear: (area) => clearLeftovers(area, run, clock),
  };
}

async function arrange({ absent, directories, files }: Arrangement): Promise<void> {
  for (const path of absent) await rm(path, { recursive: true, force: true });
  for (const path of directories) {
    await mkdir(path, { recursive: true, mode: 0o700 });
    await chmod(path, 0o700);
  }
  for (const { path, text } of files) await writeFileAtomic(path, text);
}

/** Copies a file into the machine, as specified by `Shell.copyIn`. */
export async function copyIn(from: string, to: string, mode: number, signal: AbortSignal): Promise<void> {
  const temporary = join(dirname(to), `.${basename(to)}.${randomBytes(6).toString('hex')}.tmp`);
  try {
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    await copyFile(from, temporary);
    await chmod(temporary, mode);
    const handle = await open(temporary, 'r');
    await handle.sync().finally(() => handle.close());
    if (signal.aborted) throw new RdError('ERR_CANCELLED', `copying to ${to} was canceled`);
    await rename(temporary, to);
  } catch (cause) {
    await rm(temporary, { force: true });
    throw cause instanceof RdError ? cause : ioError('write', to, cause);
  }
}

async function prepareSocketPath(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const socketState = await inspectSocketPath(path);
  if (socketState === 'dead') await rm(path, { force: true });
  if (socketState !== 'alive' && socketState !== 'other') return;
  const what = socketState === 'alive' ? 'another program is listening there' : 'it is not a socket';
  throw new RdError('ERR_DRIVER_TERMINAL', `${path} is needed and in use: ${what}`, {
    advice: 'Find its owner (ss -xlp, ls -l), then stop that program or move the file away.',
  });
}

/** Tells if a file, or a dead or live socket, exists at a socket path. */
async function inspectSocketPath(path: string): Promise<'nothing' | 'dead' | 'alive' | 'other'> {
  const entry = await lstat(path).catch(() => undefined);
  if (!entry) return 'nothing';
  if (!entry.isSocket()) return 'other';
  return new Promise((resolve) => {
    const probe = connect({ path });
    probe.once('connect', () => resolve('alive'));
    // A socket with a full queue fails like this, so it is in use.
    probe.on('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED' ? 'dead' : 'alive'));
    probe.once('connect', () => probe.destroy());
  });
}
