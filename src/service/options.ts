import type { Connection } from '../client/connection.ts';
import type { JsonObject } from '../json.ts';
import type { Environment } from '../os/user-directories.ts';
import type { Platform } from '../settings/field.ts';
import type { ResetSummary } from '../state/factory-reset.ts';
import type { PolicyOptions } from './policies.ts';

export interface ServiceOptions {
  env: Environment;
  platform: Platform;
  /** Name of the driver, where the choice of the first start is still to be made. */
  driver?: string;
  /** `keep`: as it was when the last service ended; `started` on the first start. */
  power: 'keep' | 'started' | 'stopped';
  /** The backend stays off as long as this service lives; the desired power is not touched. */
  idle?: boolean;
  /** This port alone; otherwise the first free one. */
  port?: number;
  /** Names beside `localhost` and IP literals that callers may use. */
  allowHosts: string[];
  /** Partial settings of the current version, applied before anything starts. */
  settings?: JsonObject;
  /** First value of the transient setting of that name; false unless told. */
  noModalDialogs?: boolean;
  /** Where deployment profiles are and what reads them, instead of the places and programs of the platform. */
  policies?: PolicyOptions;
  /** How long a stop waits for the backend, in milliseconds; a minute unless told. */
  stopLimitMs?: number;
  /** Command that starts this tool, for launcher and autostart entry; without it nothing outside of our directories is touched. */
  self?: readonly string[];
  /** In drop-in mode: take over the directories that the compatible application made. */
  adopt?: boolean;
}

export interface RunningService {
  port: number;
  connection: Connection;
  /** Resolves when everything has stopped, whoever asked for it. */
  stopped: Promise<void>;
  /** Stops cluster, engine and machine, then the API. Resolves with `stopped`; calling it again changes nothing. */
  stop(reason: string): Promise<void>;
  /** What the factory reset did that the service ended with; absent when none was asked for. */
  resetSummary(): ResetSummary | undefined;
  /** False when what the service ran did not stop, once the service has. */
  backendStopped(): boolean;
}

/** Undoes one thing that was started; named for the log. */
export type Undo = [what: string, undo: () => Promise<void>];

/** Undoes everything, last started first. A failure is reported and does not stop the rest. */
export async function undoAll(undo: Undo[], onFailure: (what: string, error: unknown) => void): Promise<void> {
  for (let next = undo.pop(); next; next = undo.pop()) {
    const [what, work] = next;
    await work().catch((error: unknown) => onFailure(what, error));
  }
}
