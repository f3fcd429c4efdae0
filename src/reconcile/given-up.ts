import type { Observed } from '../plan/observed.ts';
import { type Step, stepName } from './step.ts';

/** What is left alone after a failure that waits for somebody: what failed, and what it has left behind. */
export interface GivenUp {
  /** A failure has ended the attempts; `step` is what it was about, if it was a step. */
  begin(step: Step | undefined, seen: Observed | undefined): void;
  /**
   * Told of each look since; true when what is due now has become due for another reason. The first look shows what the failure has
   * left. Something that is on is never stopped for such a reason: it may be all that still works.
   */
  isOther(step: Step | undefined, seen: Observed): boolean;
}

export function createGivenUp(): GivenUp {
  const left = new Set<string>();
  let looked = false;
  return {
    begin(step, seen) {
      left.clear();
      looked = false;
      if (step) left.add(reasonOf(step, seen));
    },
    isOther(step, seen) {
      const reason = step && reasonOf(step, seen);
      if (!looked) {
        looked = true;
        if (reason !== undefined) left.add(reason);
        return false;
      }
      return step !== undefined && reason !== undefined && !left.has(reason) && isHarmless(step, seen);
    },
  };
}

/** A machine is adjusted for whatever it lacks, one thing today and another tomorrow. */
function reasonOf(step: Step, seen: Observed | undefined): string {
  const lack = step.part === 'machine' && seen?.machine.state === 'on' ? (seen.machine.repair ?? '') : '';
  return `${stepName(step)} ${lack}`;
}

function isHarmless({ step: { do: what } }: Step, { machine }: Observed): boolean {
  return what === 'start' || what === 'adjust' || (what === 'stop' && machine.state === 'broken');
}
