import type { PolicySources } from '../../profiles/policies/read.ts';
import type { Connection } from '../client/connection.ts';
import type { JsonObject } from '../json.ts';
import type { Clock } from '../os/clock.ts';
import type { Environment } from '../os/user-directories.ts';
import type { Platform } from '../settings/field.ts';
import type { ResetSummary } from '../state/factory-reset.ts';

export interface ServiceOptions {
  env: Environment;
  platform: Platform;
  /** The driver to use on the first start. */
  driver?: string;
  /** `keep` uses the power with which the last service exited; `started` on the first start. */
  power: 'keep' | 'started' | 'stopped';
  /** Keep the backend off while this service runs, without changing the desired power. */
  idle?: boolean;
  /** The only port to use; otherwise the first free one. */
  port?: number;
  /** Host names that callers may use, besides `localhost` and IP addresses. */
  allowHosts: string[];
  /** Partial settings of the current version, applied before anything starts. */
  settings?: JsonObject;
  /** Initial value of the transient setting `noModalDialogs`; false by default. */
  noModalDialogs?: boolean;
  /** Locations of deployment profiles and the programs that read them; by default those of the platform. */
  policies?: Partial<PolicySources>;
  /** Milliseconds that stopping waits for the backend; a minute by default. */
  stopLimitMs?: number;
  /** Command that starts this tool, for the launcher and the autostart entry. Without it, only our own directories are touched. */
  self?: readonly string[];
  /** A listening socket that the service manager passed as this file descriptor (sd_listen_fds(3)). */
  inherited?: number;
  /** Receives a sentence with the cause of a wait during startup. */
  say?: (text: string) => void;
  /** Cancels a wait during startup. */
  signal?: AbortSignal;
  clock?: Clock;
  /** In drop-in mode: take over the directories of the compatible application. */
  adopt?: boolean;
}

export interface RunningService {
  port: number;
  connection: Connection;
  /** Resolves when everything has stopped, for any reason. */
  stopped: Promise<void>;
  /** Stops cluster, engine and machine, then the API. Idempotent; resolves with `stopped`. */
  stop(reason: string): Promise<void>;
  /** Returns the result of the factory reset at the end; undefined if none was requested. */
  resetSummary(): ResetSummary | undefined;
  /** Whether the backend stopped; valid once the service has. */
  backendStopped(): boolean;
}

/** A step of the start that can be undone; the name is for the log. */
export type Undo = [what: string, undo: () => Promise<void>];

/** Undoes everything in reverse order. A failure is reported and does not stop the rest. */
export async function undoAll(undo: Undo[], onFailure: (what: string, error: unknown) => void): Promise<void> {
  for (let next = undo.pop(); next; next = undo.pop()) {
    const [what, work] = next;
    await work().catch((error: unknown) => onFailure(what, error));
  }
}
