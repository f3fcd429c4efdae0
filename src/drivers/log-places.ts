import { join } from 'node:path';
import { defined, isObject, parseJson } from '../json.ts';
import { readIfThere } from '../os/atomic-file.ts';
import { runtimeDirectory } from '../os/user-directories.ts';
import { ENGINE_PROGRAMS, OUTPUT_LOG, programLogFiles, serviceLogFiles } from '../state/log-files.ts';
import type { Places } from '../state/places.ts';
import { loadState } from '../state/state-file.ts';
import { GUEST_LOGS, qemuPlaces } from './machines/qemu/places.ts';

/** Names and descriptions of logs that a home can have. */
export const LOGS = {
  service: 'The service',
  engine: 'The main program of the chosen engine',
  machine: 'The console of the virtual machine',
  cluster: 'k3s',
  output: 'What a service in the background prints',
  dockerd: 'dockerd, of the engine moby',
  'moby-containerd': 'The containerd of the engine moby',
  containerd: 'containerd, the engine',
  qemu: 'QEMU, which runs the virtual machine',
} as const;

export type LogName = keyof typeof LOGS;

export interface LogPlace {
  /** Newest first; any may be missing. */
  files: readonly string[];
  /** `machine`: the files are in the virtual machine. */
  in: 'host' | 'machine';
  /** Format of a line's time. Without one, lines cannot be selected by time. */
  times: 'json' | 'logfmt' | 'none';
}

export interface HomeLogs {
  /** Absent until a service has run. */
  driver?: string;
  /** By name, in the order of `LOGS`. */
  logs: Partial<Record<LogName, LogPlace>>;
}

/** Maximum bytes of a settings file; usual ones have a few kilobytes. */
const MOST_SETTINGS = 1024 * 1024;

/**
 * Returns the places of the logs of a home, from its records on this disk, whether or not a service runs. Throws `ERR_IO` for an unreadable record.
 */
export async function homeLogs(here: Pick<Places, 'logs' | 'state' | 'stateFile' | 'settingsFile'>): Promise<HomeLogs> {
  const loaded = await loadState(here.stateFile);
  const driver = loaded.kind === 'loaded' ? loaded.state.driver : undefined;
  const engine = ENGINE_PROGRAMS[await chosenEngine(here.settingsFile)];
  const service: LogPlace = { files: serviceLogFiles(here.logs), in: 'host', times: 'json' };
  const output: LogPlace = { files: [join(here.logs, OUTPUT_LOG)], in: 'host', times: 'none' };
  const program = (place: 'host' | 'machine', name: string): LogPlace => ({
    files: programLogFiles(place === 'host' ? here.logs : GUEST_LOGS, name),
    in: place,
    times: 'logfmt',
  });
  const engines = (place: 'host' | 'machine') => ({
    dockerd: program(place, 'dockerd'),
    'moby-containerd': program(place, 'moby-containerd'),
    containerd: program(place, 'containerd'),
  });
  if (driver === 'host') {
    return { driver, logs: { service, engine: program('host', engine), output, ...engines('host') } };
  }
  if (driver === 'qemu') {
    const { serialLog } = qemuPlaces(join(here.state, 'drivers', driver), runtimeDirectory(process.getuid?.() ?? 0));
    const logs = {
      service,
      engine: program('machine', engine),
      machine: { files: [serialLog], in: 'host', times: 'none' },
      cluster: program('machine', 'k3s'),
      output,
      ...engines('machine'),
      qemu: { files: programLogFiles(here.logs, 'qemu'), in: 'host', times: 'none' },
    } as const;
    return { driver, logs };
  }
  return { ...defined({ driver }), logs: { service, output } };
}

/** Returns the stored choice of engine, or the default if it cannot be read. */
async function chosenEngine(settingsFile: string): Promise<keyof typeof ENGINE_PROGRAMS> {
  const text = await readIfThere(settingsFile, { follow: true, limit: MOST_SETTINGS }).catch(() => undefined);
  const settings = parseJson(text ?? '');
  const engine = isObject(settings) ? settings.containerEngine : undefined;
  return isObject(engine) && engine.name === 'containerd' ? 'containerd' : 'moby';
}
