import type { EngineName, Workload } from '../drivers/driver.ts';
import type { LoopStatus } from './status.ts';

/** The document of `GET /v2/status` and `schemas/status.json`: what the loop reports, and who is speaking. */
export interface StatusDocument extends Omit<LoopStatus, 'counters'> {
  kind: 'Status';
  formatVersion: 1;
  product: string;
  version: string;
  /** Of the service. */
  pid: number;
  /** Directory of the service's data. */
  home: string;
  /** RFC 3339. */
  startedAt: string;
  /** `reason`: why this driver was chosen. */
  driver: { name: string; simulated: boolean; reason: string };
  /** The engine that the settings ask for. */
  engine: { name: EngineName; state: string; endpoint?: string; version?: string; workload?: Workload };
  counters: LoopStatus['counters'] & {
    /** `PUT /v1/settings` that arrived, whatever became of them. */
    settingsPuts: number;
    /** Those of them that changed something. */
    settingsWrites: number;
  };
  /** Files or registry keys of the deployment profiles; absent without any. The defaults count on the first run alone. */
  policies?: { lockedBy?: string; defaultsBy?: string };
  /** Sentences about what happened at the start and a person should know, such as a file that was set aside. */
  notices: string[];
}
