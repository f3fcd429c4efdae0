import type { EngineName, MachineAccess, MachineStart, PublishedPort, Workload } from '../drivers/driver.ts';
import type { ErrorCode } from '../errors.ts';
import type { LoopStatus } from './status.ts';

export type { MachineAccess, MachineStart };

/** What the service does after the settings of an apply are written: port forwards, then extensions. Of the last such apply. */
export interface ApplyWork {
  /** Version of the desired state that the apply made. */
  generation: number;
  state: 'running' | 'done' | 'failed';
  /** Begun so far, in order. */
  steps: ApplyStep[];
  error?: { code: ErrorCode; message: string; details: string[]; advice?: string };
}

/** `name`: the image or name of an extension; `default/web:80 → 8080` of a forward, `default/web:80 → (removed)` of one that goes. */
export interface ApplyStep {
  what: 'install' | 'uninstall' | 'forward';
  name: string;
}

/** The answer of `POST /v2/apply`. */
export interface ApplyReply {
  kind: 'ApplyReply';
  formatVersion: 1;
  /** Version of the desired state after it. */
  generation: number;
  /** What was written; `retry`: nothing differed, and a backend that had given up is tried again. */
  sent: ('settings' | 'power' | 'retry')[];
  /** True when `apply` in the status tells of further steps. */
  continues: boolean;
}

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
  /** Absent until an apply has had more to do than to write settings. */
  apply?: ApplyWork;
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
