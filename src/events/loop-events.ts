import { defined } from '../json.ts';
import type { Condition, LoopStatus, Phase } from '../reconcile/contract.ts';
import type { EventBody } from './event.ts';

/** The state kept between two reports of the loop. */
export interface LoopMemory {
  status: LoopStatus;
  /** The generation that the backend has reached and, as far as is known, not left since. */
  reached?: number;
}

/** Returns the events between two reports of the loop, in order of occurrence. Pure. */
export function loopEvents(before: LoopMemory, now: LoopStatus): { events: EventBody[]; memory: LoopMemory } {
  const drift = driftOf(before, now);
  const reached = now.converged ? now.generation : drift || isHeld(now) ? undefined : before.reached;
  return {
    events: [...(drift ? [drift] : []), ...phaseEvents(before.status, now), ...conditionEvents(before.status, now)],
    memory: { status: now, ...defined({ reached }) },
  };
}

/**
 * Returns an event if the backend had reached this generation, and now a part is not as desired or a step is being taken. A merely stale observation
 * is no drift.
 */
function driftOf({ reached, status }: LoopMemory, now: LoopStatus): EventBody | undefined {
  const { generation, converged } = now;
  if (converged || isHeld(now) || reached !== generation) return undefined;
  const part = now.conditions.find(({ type, concern }) => type !== 'Converged' && concern !== 'none');
  if (part) {
    const { type: condition, reason, message } = part;
    return { type: 'drift', drift: { generation, condition, reason, message } };
  }
  const step = now.phases.find((phase) => !samePhase(status.phases, phase));
  if (!step) return undefined;
  return { type: 'drift', drift: { generation, message: `The service had to act: ${step.name}.` } };
}

function isHeld({ conditions }: LoopStatus): boolean {
  return conditions.some(({ reason }) => ['Held', 'DataNotWhole', 'ServiceStopping'].includes(reason));
}

function phaseEvents(before: LoopStatus, { phases, generation }: LoopStatus): EventBody[] {
  return phases.flatMap((phase): EventBody[] => {
    const known = samePhase(before.phases, phase);
    const hasEnded = known?.ms === undefined && phase.ms !== undefined;
    const waitsAnew = phase.waitingFor !== undefined && phase.waitingFor !== known?.waitingFor;
    return known === undefined || hasEnded || waitsAnew ? [{ type: 'phase', phase: { ...phase, generation } }] : [];
  });
}

function samePhase(phases: readonly Phase[], { name, startedAt }: Phase): Phase | undefined {
  return phases.find((phase) => phase.name === name && phase.startedAt === startedAt);
}

function conditionEvents(before: LoopStatus, { conditions }: LoopStatus): EventBody[] {
  return conditions.flatMap((condition): EventBody[] => {
    const known = before.conditions.find(({ type }) => type === condition.type);
    return known && sameCondition(known, condition) ? [] : [{ type: 'condition', condition }];
  });
}

/** Compares conditions without the message of work in progress, which changes many times a second. */
function sameCondition(a: Condition, b: Condition): boolean {
  const sameState = a.status === b.status && a.reason === b.reason && a.concern === b.concern;
  return sameState && (b.concern !== 'attention' || a.message === b.message);
}
