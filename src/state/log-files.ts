import { join } from 'node:path';

/** The log of the service (`src/os/log-file.ts`), in the log directory. */
export const SERVICE_LOG = 'service.log';
/** What a service in the background prints, such as why it does not start. */
export const OUTPUT_LOG = 'service-output.log';
/** The main program of each engine, after which its log is named. */
export const ENGINE_PROGRAMS = { moby: 'dockerd', containerd: 'containerd' } as const;

/** The log of the service and what was rotated, newest first. */
export function serviceLogFiles(logs: string): string[] {
  return [SERVICE_LOG, 'service.1.log', 'service.2.log'].map((name) => join(logs, name));
}

/** The log of a program of that name and what was rotated, newest first. */
export function programLogFiles(logs: string, program: string): string[] {
  return [`${program}.log`, `${program}.log.1`].map((name) => join(logs, name));
}
