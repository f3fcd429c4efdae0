import type { JsonObject } from '../json.ts';
import type { Blocks } from '../settings/blocks.gen.ts';
import type { Severity, WantedForwards } from './plan.gen.ts';

export type {
  Action,
  BlastItem,
  Change,
  DriftState,
  ForeseenDrift,
  Loss,
  Plan,
  PlanRequest,
  PlanSummary,
  Prediction,
  Sensitive,
  Severity,
  Target,
  WantedForwards,
} from './plan.gen.ts';

/** In ascending order. */
export const SEVERITIES: readonly Severity[] = ['none', 'live', 'restart', 'reset'];

/** A port of a service: the key of a forward. */
export type ForwardKey = Pick<WantedForwards['entries'][number], 'namespace' | 'service' | 'k8sPort'>;

/**
 * The state that a plan was compared with, for saved plans and for the rollback. Settings may contain secrets. Another application has no
 * blocks.
 */
export interface LiveState extends Partial<Blocks> {
  settings: JsonObject;
  locks: JsonObject;
  /** The desired power. */
  power: 'started' | 'stopped';
  /** Absent where they cannot be listed. */
  portForwards?: WantedForwards['entries'];
  /** Only for another application: the tag of its settings, for a conditional write. */
  etag?: string;
}
