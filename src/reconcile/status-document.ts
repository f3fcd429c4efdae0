import type { EngineName, MachineAccess, MachineStart, PublishedPort, Workload } from '../drivers/driver.ts';
import type { LoopStatus } from './status.ts';

export type { MachineAccess, MachineStart };

/** The document of `GET /v2/status` and `schemas/status.json`: what the loop reports, and who is speaking. */
export interface StatusDocument extends Omit<LoopStatus, 'counters'> {
  kind: 'Status';
  formatVersion: 1;
  product: string;
  version: string;
  /** Only of an application that is not ours: the version of the settings that it speaks. */
  settingsVersion?: number;
  /** Of the service; 0 where nobody tells. */
  pid: number;
  /** Directory of the service's data. */
  home: string;
  /** RFC 3339. */
  startedAt: string;
  /** `reason`: why this driver was chosen. */
  driver: { name: string; simulated: boolean; reason: string };
  /** The engine that the settings ask for. */
  engine: { name: EngineName; state: string; endpoint?: string; version?: string; workload?: Workload };
  /** The way into the machine; absent while it is not on, and of a driver that has no machine of its own. */
  access?: MachineAccess;
  /** Ports of programs in the machine; absent as `access` is. */
  ports?: readonly PublishedPort[];
  /** What is being done with the data of the backend, such as a snapshot; absent otherwise. A sentence. */
  maintenance?: string;
  counters: LoopStatus['counters'] & {
    /** `PUT /v1/settings` that arrived, whatever became of them. */
    settingsPuts: number;
    /** Those of them that changed something. */
    settingsWrites: number;
  };
  /** Files or registry keys of the deployment profiles; absent without any. The defaults count on the first run alone. */
  policies?: { lockedBy?: string; defaultsBy?: string };
  /** Files of the user outside of our directories; absent in the status of older releases. */
  hostIntegration?: {
    /** Nothing there is touched; a clause that says why. */
    offBecause?: string;
    files: {
      part: 'path' | 'docker-context' | 'kubeconfig' | 'autostart';
      file: string;
      /** `clean`: nothing of ours is in it, as wanted; `left`: another's choice. */
      state: 'managed' | 'clean' | 'left' | 'failed';
      message?: string;
    }[];
  };
  /** Sentences about what happened at the start and a person should know, such as a file that was set aside. */
  notices: string[];
}
