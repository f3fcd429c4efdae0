import { wordList } from '../settings/printable.ts';
import { type BlastItem, type Change, type Plan, type PlanSummary, SEVERITIES, type Severity } from './change.ts';
import { isRuntimeChange } from './runtime-changes.ts';

export interface SummaryInput {
  changes: readonly Change[];
  blastRadius: readonly BlastItem[];
  /** The backend runs before and after, and part of it restarts in between. */
  restart: boolean;
  /** A restart is due even without the plan. */
  pending: boolean;
  /** The running state is unknown, or no observation has succeeded since the plan was requested. */
  unknown?: boolean;
}

/** The end of the summary of a plan made without an observation. */
const UNKNOWN = 'what is running is unknown';

/**
 * Returns the totals of a plan and its summary line. A plan costs at most one restart, however many changes need it.
 * "nothing is lost" requires an observation that nothing running is affected; otherwise "no data is deleted".
 */
export function summarize({ changes, blastRadius, restart, pending, unknown = false }: SummaryInput): PlanSummary {
  const open = changes.filter((change) => !change.blocked);
  const resets = open.some((change) => change.severity === 'reset') ? 1 : 0;
  const restarts = restart ? 1 : 0;
  const blocked = changes.length - open.length;
  const nothingLost = blastRadius.length === 0 && !unknown;
  const totals = {
    changes: changes.length,
    severity: highest(open.map((change) => change.severity)),
    restarts,
    resets,
    blocked,
    nothingLost,
  };
  if (changes.length === 0) {
    const more = pending ? ', a restart is already due' : unknown ? `, ${UNKNOWN}` : '';
    return { ...totals, text: `nothing to change${more}` };
  }
  const parts = [
    countText(changes.length, 'change'),
    ...(blocked > 0 ? [`${blocked} blocked`] : []),
    ...costs(open, restarts, resets),
    loss(blastRadius, unknown),
  ];
  return { ...totals, text: parts.join(', ') };
}

/** Returns the highest severity; `none` for an empty list. */
function highest(severities: readonly Severity[]): Severity {
  return SEVERITIES.findLast((severity) => severities.includes(severity)) ?? 'none';
}

function costs(open: readonly Change[], restarts: number, resets: number): string[] {
  const power = open.find((change) => change.path === 'state');
  const phrases = [];
  if (power) phrases.push(power.after === 'started' ? 'starts the backend' : 'stops the backend');
  const begun = open.filter((change) => isRuntimeChange(change) && change.severity === 'live');
  if (begun.length > 0) phrases.push(`${verbOf(begun)} the ${wordList(begun.map(({ path }) => path))}`);
  const ended = open.filter((change) => isRuntimeChange(change) && change.after === 'stopped');
  if (ended.length > 0) phrases.push(`stops the ${wordList(ended.map(({ path }) => path))}`);
  if (restarts > 0) phrases.push(countText(restarts, 'restart'));
  if (resets > 0) phrases.push(countText(resets, 'reset'));
  return phrases.length > 0 ? phrases : ['no restart'];
}

function verbOf(changes: readonly Change[]): string {
  return changes.every(({ after }) => after === 'adjusted') ? 'adjusts' : 'starts';
}

function loss(blastRadius: readonly BlastItem[], unknown: boolean): string {
  if (unknown) return UNKNOWN;
  if (blastRadius.some((item) => item.lost)) return 'cluster data is lost';
  return blastRadius.length > 0 ? 'no data is deleted' : 'nothing is lost';
}

function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Returns the plan with changes before and after its own, and an updated summary. */
export function extendPlan(
  plan: Plan,
  { before = [], after = [] }: { before?: readonly Change[]; after?: readonly Change[] },
): Plan {
  const changes = [...before, ...plan.changes, ...after];
  const summary = summarize({
    changes,
    blastRadius: plan.blastRadius,
    restart: plan.summary.restarts > 0,
    pending: plan.pendingRestart.length > 0,
    unknown: plan.summary.text.endsWith(UNKNOWN),
  });
  // More changes cannot lift the plan's own losses.
  const nothingLost = summary.nothingLost && plan.summary.nothingLost;
  const text = plan.basis === 'estimated' ? summary.text.replace(', nothing is lost', ', estimated') : summary.text;
  return { ...plan, changes, summary: { ...summary, nothingLost, text } };
}
