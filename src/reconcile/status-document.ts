import type { EngineName, MachineAccess, MachineStart, PublishedPort, Workload } from '../drivers/driver.ts';
import type { ErrorCode } from '../errors.ts';
import type { Drift } from '../plan/healing.ts';
import type { WatchRules } from '../settings/watch-rules.ts';
import type { LoopStatus } from './contract.ts';

export type { MachineAccess, MachineStart };

/** The steps after the settings of the last apply: port forwards, then extensions. */
export interface ApplyWork {
  /** Version of the desired state that the apply created. */
  generation: number;
  state: 'running' | 'done' | 'failed';
  /** Steps begun so far, in order. */
  steps: ApplyStep[];
  error?: { code: ErrorCode; message: string; details: string[]; advice?: string };
}

/** The last apply or rollback since the service started that the service undoes if it fails. */
export interface TransactionReport {
  /** Version of the desired state that the apply created. */
  generation: number;
  onFailure: 'return' | 'keep';
  /**
   * `changing`: the backend converges. `proving`: it has converged and is watched for a moment. `done`: proven, or nothing runs.
   * `returning`: the change failed, and the service goes back. `returned`: the backend runs as before. `failed`: so does the earlier state.
   * `kept`: the change failed and stays. `superseded`: another write came first.
   */
  state: 'changing' | 'proving' | 'done' | 'returning' | 'returned' | 'failed' | 'kept' | 'superseded';
  /** Why the change failed, as a sentence. */
  reason?: string;
  /** Why the return could not be written so far; it is tried again. */
  unwritten?: string;
  /** Why the service did not go back, as a clause. */
  keptBecause?: string;
  /** The generation that the service goes back to. */
  to?: number;
  /** The generation of the return in the history. */
  returnGeneration?: number;
}

/**
 * `name`: the image or name of an extension; `default/web:80 → 8080` for a forward, `default/web:80 → (removed)` for a
 * removed one.
 */
export interface ApplyStep {
  what: 'install' | 'uninstall' | 'forward';
  name: string;
}

/** The reply of `POST /v2/apply`. */
export interface ApplyReply {
  kind: 'ApplyReply';
  formatVersion: 1;
  /** Version of the desired state afterwards. */
  generation: number;
  /**
   * What was written; `retry`: nothing differed, and a failed backend is retried; `files`: files of the user that could not be changed have
   * been tried again.
   */
  sent: ('settings' | 'power' | 'retry' | 'files')[];
  /** True when `apply` in the status reports further steps. */
  continues: boolean;
  /** Name of the snapshot that was made before data is destroyed. */
  snapshot?: string;
}

/** A kept profile, and what differs from it. */
export interface KeptStatus {
  /** `metadata.name` */
  name: string;
  /** Absolute paths, or `-`. */
  files: string[];
  /** RFC 3339: its last apply. */
  appliedAt: string;
  /** Version of the desired state that its last apply led to. */
  generation: number;
  watch: WatchRules;
  /** Its maintenance window, as written. */
  window?: string;
  /** The most that its drift asks of a person; `unusable`: it cannot be compared, and `message` says why. */
  state: 'in sync' | 'drifted' | 'healing' | 'deferred' | 'paused' | 'contested' | 'unusable';
  message?: string;
  drift: Drift[];
  /** Fields that are no longer healed, because another manager keeps writing them; also while they agree. */
  contested: { path: string; message: string }[];
}

/** The document of `GET /v2/status` and `schemas/status.json`: the loop's report, and the service's identity. */
export interface StatusDocument extends Omit<LoopStatus, 'counters'> {
  kind: 'Status';
  formatVersion: 1;
  product: string;
  version: string;
  /** Only for another application: its settings version. */
  settingsVersion?: number;
  /** The service's process; 0 if unknown. */
  pid: number;
  /** Directory of the service's data. */
  home: string;
  /** RFC 3339. */
  startedAt: string;
  /** `reason`: why this driver was chosen. */
  driver: { name: string; simulated: boolean; reason: string };
  /** The engine selected in the settings. */
  engine: { name: EngineName; state: string; endpoint?: string; version?: string; workload?: Workload };
  /** How to reach the machine; absent while it is off, and for a driver without a machine. */
  access?: MachineAccess;
  /** Published ports of programs in the machine; absent as `access` is. */
  ports?: readonly PublishedPort[];
  /** The operation on the backend's data, such as a snapshot, as a sentence; absent otherwise. */
  maintenance?: string;
  /** Absent until an apply has had steps beyond writing settings. */
  apply?: ApplyWork;
  /** Absent until an apply has been written. */
  transaction?: TransactionReport;
  /** The kept profiles; absent without any. */
  kept?: KeptStatus[];
  counters: LoopStatus['counters'] & {
    /** Count of `PUT /v1/settings` requests, successful or not. */
    settingsPuts: number;
    /** Those that changed something. */
    settingsWrites: number;
  };
  /** Files or registry keys of the deployment profiles; absent without any. The defaults only apply on the first run. */
  policies?: { lockedBy?: string; defaultsBy?: string };
  /** Files of the user, outside of our directories; absent for another application. */
  hostIntegration?: {
    /** Why no such file is touched, as a clause. */
    offBecause?: string;
    /** The last version of the desired state that the files have followed, `failed` ones included; absent while none is touched. */
    observedGeneration?: number;
    files: {
      part: 'path' | 'docker-context' | 'kubeconfig' | 'autostart';
      file: string;
      /** `clean`: intentionally contains nothing of ours; `left`: set by the user or another program. */
      state: 'managed' | 'clean' | 'left' | 'failed';
      message?: string;
    }[];
  };
  /** Startup notices, such as a file that was set aside, as sentences. */
  notices: string[];
}
