import type { JsonValue } from '../json.ts';
import type { ForwardKey } from '../port-forwards/forward.ts';
import type { UserFileChange } from './user-files.ts';

/** What a change costs: only stored; applied to what runs; restarts the backend; destroys cluster data. In that order. */
export type Severity = 'none' | 'live' | 'restart' | 'reset';
export const SEVERITIES: readonly Severity[] = ['none', 'live', 'restart', 'reset'];

/** Shown as `+ ~ ± -`; a no-op is never listed. */
export type Action = 'create' | 'update' | 'replace' | 'delete' | 'no-op';

/** Stands in a plan for a value that must not be shown. */
export interface Sensitive {
  sensitive: true;
}

/** One setting (or map entry, or the power state) with what it is and what it would be. */
export interface Change {
  /** Dotted setting path; `state` for the power state; `service`, `machine`, `engine` or `cluster` for what should run and does not. */
  path: string;
  /** Key of the entry where the setting is a map. */
  key?: string;
  action: Action;
  /** Absent for `create`. */
  before?: JsonValue | Sensitive;
  /** Absent for `delete`. */
  after?: JsonValue | Sensitive;
  severity: Severity;
  /** Why it costs that, as a clause: `the engine is another program`. */
  reason: string;
  /** Set when the change cannot be made; the sentence names the lock or the driver's reason. `advice`: what would help, where that depends. */
  blocked?: { by: 'lock' | 'unsupported'; message: string; advice?: string };
}

/** Something a plan interrupts, hides or destroys. `lost` is true only for what cannot be had back. */
export interface BlastItem {
  what: string;
  lost: boolean;
}

/** Who would be changed. */
export interface Target {
  product: string;
  /** Directory of the service's state; of a foreign application its connection file, or its address. */
  home?: string;
  driver: string;
  simulated: boolean;
  /** Of an application that is not ours: the version of the settings that it speaks. */
  settingsVersion?: number;
}

export interface PlanSummary {
  changes: number;
  /** Highest severity of the changes that are not blocked; `none` for an empty plan. */
  severity: Severity;
  restarts: number;
  resets: number;
  blocked: number;
  /** True only when the blast radius is empty; what is lost for good has `lost` there. */
  nothingLost: boolean;
  /** `3 changes, 1 restart, nothing is lost`. */
  text: string;
}

/** The document of `schemas/plan.json`. */
export interface Plan {
  kind: 'Plan';
  formatVersion: 1;
  target: Target;
  /** Where severities come from: the service being talked to, or schema facts alone. */
  basis: 'service' | 'estimated';
  generation: number;
  /**
   * What `POST /v2/apply` takes as agreement to this plan: a digest of the generation, the changes and what is lost. What runs is not
   * part of it, because that comes up and goes down by itself. Absent where no service of ours was asked.
   */
  tag?: string;
  changes: Change[];
  blastRadius: BlastItem[];
  /** Reasons of a restart that is already due, before any change of this plan. */
  pendingRestart: string[];
  /** Files of the user outside of our own directories that carrying it out touches. Absent: not known, as of another application. */
  userFiles?: UserFileChange[];
  warnings: string[];
  summary: PlanSummary;
}

/** What `POST /v2/plan` takes: the managed part of a desired state. */
export interface PlanRequest {
  /** Partial settings at the current version; `null` removes a map entry. */
  settings: { [key: string]: JsonValue };
  state: 'started' | 'stopped' | 'unmanaged';
  /** Dotted paths of maps that are exclusive: entries not listed in `settings` are removed. */
  prune: string[];
  /**
   * Dotted paths of settings that are wished for whatever they are now, as in a document of kind Profile. Settings that an application
   * printed are none: what equals the settings in force asks for nothing there.
   */
  wishes?: string[];
  /** Absent where nothing is said about them. */
  portForwards?: WantedForwards;
}

/** A port forward as a profile asks for it; `null` asks for its removal. */
interface ProfileForward extends ForwardKey {
  hostPort: number | null;
}

/** What a profile says about port forwards. `exclusive`: those that it does not list are removed. */
export interface WantedForwards {
  entries: readonly ProfileForward[];
  exclusive: boolean;
  /** Names of those that stay as they are, whatever the other two say. */
  leaves?: readonly string[];
}
