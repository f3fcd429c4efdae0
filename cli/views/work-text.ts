import { blockingCondition } from '../../src/client/converge.ts';
import type { Phase } from '../../src/reconcile/contract.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import { plainText } from './text.ts';

/** Formats a step in progress, and what it waits for. */
export function phaseText({ name, waitingFor }: Pick<Phase, 'name' | 'waitingFor'>): string {
  return plainText(waitingFor === undefined ? `${name} …` : `${name} … ${waitingFor}`);
}

/** Describes the activity of a service, for a command that waits for its backend; undefined if there is none. */
export function workText(status: StatusDocument): string | undefined {
  const held = status.conditions.find(({ reason }) => reason === 'Held' || reason === 'DataNotWhole');
  const doing = status.maintenance ?? held?.message;
  if (doing !== undefined) return plainText(doing);
  const step = status.phases.findLast(({ ms }) => ms === undefined);
  if (step?.waitingFor !== undefined) return phaseText(step);
  const open = blockingCondition(status)?.message;
  const texts = [step && phaseText(step), open && plainText(open)].filter((text) => text !== undefined);
  return texts.length > 0 ? texts.join(' ') : afterwardsText(status);
}

/** Describes the work that is left once the backend is as desired. */
function afterwardsText({ transaction, apply }: StatusDocument): string | undefined {
  if (transaction?.state === 'proving') return 'The backend is as desired; what was started is watched for a moment.';
  const step = apply?.state === 'running' ? apply.steps.at(-1) : undefined;
  return step && `${step.what} ${plainText(step.name)} …`;
}
