import { join } from 'node:path';

/** The log of the service (`src/os/log-file.ts`), in the log directory. */
export const SERVICE_LOG = 'service.log';
/** The output of a service in the background, such as the reason that it does not start. */
export const OUTPUT_LOG = 'service-output.log';
/** The main program of each engine, which its log is named after. */
export const ENGINE_PROGRAMS = { moby: 'dockerd', containerd: 'containerd' } as const;

/** Returns the log of the service and its rotated files, newest first. */
export function serviceLogFiles(logs: string): string[] {
  return [SERVICE_LOG, 'service.1.log', 'service.2.log'].map((name) => join(logs, name));
}

/** Returns the log of a program of that name and its rotated files, newest first. */
export function programLogFiles(logs: string, program: string): string[] {
  return [`${program}.log`, `${program}.log.1`].map((name) => join(logs, name));
}
