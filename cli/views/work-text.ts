import type { Phase } from '../../src/reconcile/contract.ts';
import { plainText } from './text.ts';

/** A step in progress, and what it waits for. */
export function phaseText({ name, waitingFor }: Pick<Phase, 'name' | 'waitingFor'>): string {
  return plainText(waitingFor === undefined ? `${name} …` : `${name} … ${waitingFor}`);
}
