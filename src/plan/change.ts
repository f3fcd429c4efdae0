import type { ForwardKey } from '../features/port-forwards/forward.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import type { MachineOptions } from '../settings/machine-options.gen.ts';
import type { PartialMachineOptions } from '../settings/machine-options.ts';
import type { HealLevel } from '../settings/watch-rules.ts';
import type { DriftState } from './healing.ts';
import type { Loss } from './losses.ts';
import type { Prediction } from './prediction.ts';
import type { UserFileChange } from './user-files.ts';

/** The cost of a change, in ascending order: stored only; applied live; restarts the backend; destroys cluster data. */
export type Severity = 'none' | 'live' | 'restart' | 'reset';
export const SEVERITIES: readonly Severity[] = ['none', 'live', 'restart', 'reset'];

/** Shown as `+ ~ ± -`; a no-op is never listed. */
export type Action = 'create' | 'update' | 'replace' | 'delete' | 'no-op';

/** Replaces a secret value in a plan. */
export interface Sensitive {
  sensitive: true;
}

/** One setting (or map entry, or the power state) with its value before and after. */
export interface Change {
  /**
   * Dotted setting path; `state` for the power state; `service`, `machine`, `engine` or `cluster` for a stopped part
   * that should run.
   */
  path: string;
  /** Key of the entry where the setting is a map. */
  key?: string;
  action: Action;
  /** Absent for `create`. */
  before?: JsonValue | Sensitive;
  /** Absent for `delete`. */
  after?: JsonValue | Sensitive;
  severity: Severity;
  /** The reason for the cost, as a clause: `the engine is another program`. */
  reason: string;
  /**
   * Set when the change is blocked; the message names the lock, the driver's reason, or the kept profile that would set it back. `advice`:
   * what to do, where that depends on the setting.
   */
  blocked?: { by: 'lock' | 'unsupported' | 'kept'; message: string; advice?: string };
}

/** A field that will differ from a kept profile once a plan is carried out. */
export interface ForeseenDrift {
  /** Name of the kept profile. */
  profile: string;
  path: string;
  key?: string;
  /** What that profile says; absent where it removes the entry. */
  after?: JsonValue | Sensitive;
  heal: HealLevel;
  /** What the service will do about it. `healing`: it sets the field back at once. */
  state: DriftState;
  /** For `deferred`: when it sets the field back, RFC 3339. */
  until?: string;
  /** Why nothing is done about it, as a sentence. */
  message?: string;
  /** Where that profile mentions it: `/home/me/team.yaml:7:5`. */
  place?: string;
}

/** Something that a plan interrupts, hides or destroys. `lost` is true only for irrecoverable data, with the name that consent to it has. */
export type BlastItem = { what: string; lost: false } | { what: string; lost: true; consent: Loss };

/** The desktop that a plan applies to. */
export interface Target {
  product: string;
  /** Directory of the service's state; for another application, its connection file or address. */
  home?: string;
  driver: string;
  simulated: boolean;
  /** For another application: its settings version. */
  settingsVersion?: number;
}

export interface PlanSummary {
  changes: number;
  /** Highest severity of the changes that are not blocked; `none` for an empty plan. */
  severity: Severity;
  restarts: number;
  resets: number;
  blocked: number;
  /** True only when the blast radius is empty; irrecoverable items have `lost` there. */
  nothingLost: boolean;
  /** `3 changes, 1 restart, nothing is lost`. */
  text: string;
}

/** The document of `schemas/plan.json`. */
export interface Plan {
  kind: 'Plan';
  formatVersion: 1;
  target: Target;
  /** Source of the severities: the running service, or the schema alone. */
  basis: 'service' | 'estimated';
  generation: number;
  /**
   * Passed to `POST /v2/apply` as consent to this plan: a digest of the generation, the changes and the losses. Running
   * parts are excluded, because they start and stop independently. Absent without a service of ours.
   */
  tag?: string;
  changes: Change[];
  blastRadius: BlastItem[];
  /**
   * Changes that wait for the maintenance window of the profile, as `path` or `path[key]`, and the moment at which they
   * are made (RFC 3339). Absent where nothing waits.
   */
  deferred?: { until: string; changes: string[] };
  /** Absent where nothing will differ from a kept profile. */
  drift?: ForeseenDrift[];
  /** Reasons of a restart that is due before any change of this plan. */
  pendingRestart: string[];
  /** The snapshot that an apply makes first, because the plan destroys data. `bytes`: to copy, where that is known. */
  snapshot?: { bytes?: number };
  /**
   * Files of the user, outside of our own directories, that the plan touches. Absent: unknown, as for another
   * application.
   */
  userFiles?: UserFileChange[];
  warnings: string[];
  /** Absent where nothing that runs is touched, or no earlier change here had the same steps. */
  prediction?: Prediction;
  summary: PlanSummary;
}

/** Body of `POST /v2/plan`: the managed part of a desired state. */
export interface PlanRequest {
  /** Partial settings at the current version; `null` removes a map entry. */
  settings: { [key: string]: JsonValue };
  /** Canonical; `null` removes a mount. Absent where it is not managed. */
  machine?: PartialMachineOptions;
  state: 'started' | 'stopped' | 'unmanaged';
  /** Dotted paths of maps that are exclusive: entries not listed in `settings` are removed. */
  prune: string[];
  /**
   * Dotted paths of settings that are explicitly desired even if they equal the live value, as in a document of kind
   * Profile. Exported settings are not: a value that equals the live one requests nothing there.
   */
  wishes?: string[];
  /** Absent where they are not managed. */
  portForwards?: WantedForwards;
  /** Whether a snapshot is made before data is destroyed; true if absent. */
  snapshot?: boolean;
}

/** A port forward in a profile; `null` removes it. */
interface ProfileForward extends ForwardKey {
  hostPort: number | null;
}

/** The port forwards of a profile. `exclusive`: unlisted ones are removed. */
export interface WantedForwards {
  entries: readonly ProfileForward[];
  exclusive: boolean;
  /** Names of forwards to leave unchanged, overriding the other two. */
  leaves?: readonly string[];
}

/** The state that a plan was compared with, for saved plans and for the rollback. Settings may contain secrets. */
export interface LiveState {
  settings: JsonObject;
  /** Absent for another application, which has none. */
  machine?: MachineOptions;
  locks: JsonObject;
  /** Desired power. */
  power: 'started' | 'stopped';
  /** Absent where they cannot be listed. */
  portForwards?: WantedForwards['entries'];
  /** Only for another application: the tag of its settings, for a conditional write. */
  etag?: string;
}
