import { chmod, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { findDaemon, startDaemon, stopDaemon } from '../../../process/daemon.ts';
import { boundLog, tailOf } from '../../../process/log-file.ts';
import type { Pace } from '../../../process/pace.ts';
import { takesConnections } from '../../../process/socket.ts';
import { stream } from '../../../process/stream.ts';
import { readIfThere, writeFileAtomic } from '../../../storage/atomic-file.ts';
import type { DriverContext } from '../../driver.ts';
import type { Arrangement, EngineNetwork, Shell } from '../../shell.ts';
import type { Run } from './commands.ts';
import { clearLeftovers, findLeftovers } from './leftovers.ts';
import { offer } from './offer.ts';
import type { HostPlaces } from './places.ts';
import { connectTo, copyIn } from './reach.ts';
import { makeWay, removeWay } from './way.ts';

export interface HostShellParts {
  places: HostPlaces;
  logs: string;
  run: Run;
  environment: Readonly<Record<string, string>>;
  pace: Pace;
  network: () => Promise<EngineNetwork>;
  hold: Shell['hold'];
  log: DriverContext['log'];
}

/** This host as engines see it. */
export function hostShell({ places, logs, run, environment, pace, network, hold, log }: HostShellParts): Shell {
  const recordOf = (name: string) => join(places.run, `${name}.pid.json`);
  const logOf = (name: string) => join(logs, `${name}.log`);

  return {
    places,
    pace,
    run,
    stream: (argv, options) => stream(argv, { ...options, env: environment }),
    network,
    hold,
    log,
    environment,
    offer,
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
      await stopDaemon(recordOf(name), { graceMs, pace, signal });
    },
    tail: (name) => tailOf(logOf(name)),
    read: readIfThere,
    write: (path, text) => writeFileAtomic(path, text),
    remove: (path) => rm(path, { recursive: true, force: true }),
    arrange,
    makeWay,
    removeWay,
    copyIn,
    listens: takesConnections,
    localSocket: async (path) => path,
    localPort: async () => undefined,
    closePort: async () => undefined,
    dial: (address, port, signal) => connectTo({ host: address, port }, signal),
    leftovers: findLeftovers,
    clear: (area) => clearLeftovers(area, run, pace),
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
