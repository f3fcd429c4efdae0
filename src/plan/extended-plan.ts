import type { BlastItem, Change, Plan } from './change.ts';
import { summarize, UNKNOWN } from './summary.ts';

/** Additional parts of a plan. */
export interface PlanAdditions {
  /** Prepended changes. */
  before?: readonly Change[];
  after?: readonly Change[];
  blastRadius?: readonly BlastItem[];
  warnings?: readonly string[];
}

/** The plan with additional parts, and an updated summary. */
export function extendedPlan(plan: Plan, { before = [], after = [], ...more }: PlanAdditions): Plan {
  const warnings = [...plan.warnings, ...(more.warnings ?? [])];
  if (before.length + after.length === 0) return { ...plan, warnings };
  const changes = [...before, ...plan.changes, ...after];
  const blastRadius = [...plan.blastRadius, ...(more.blastRadius ?? [])];
  const summary = summarize({
    changes,
    blastRadius,
    restart: plan.summary.restarts > 0,
    pending: plan.pendingRestart.length > 0,
    unknown: plan.summary.text.endsWith(UNKNOWN),
  });
  // Additional parts cannot lift the plan's own losses.
  const nothingLost = summary.nothingLost && plan.summary.nothingLost;
  const text = plan.basis === 'estimated' ? summary.text.replace(', nothing is lost', ', estimated') : summary.text;
  return { ...plan, changes, blastRadius, warnings, summary: { ...summary, nothingLost, text } };
}
