import type { Observed } from '../plan/observed.ts';
import { type Step, stepName } from './step.ts';

/** What the loop leaves alone after a terminal failure: the failed step, and what it left behind. */
export interface GivenUp {
  /** A failure has ended the attempts; `step` is the failed one, if it was a step. */
  begin(step: Step | undefined, seen: Observed | undefined): void;
  /**
   * Called with each observation since; true when the due step is due for another reason. The first observation shows
   * what the failure left behind. Nothing that is on is ever stopped for such a reason: it may be all that still works.
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

/** A machine is adjusted for varying reasons. */
function reasonOf(step: Step, seen: Observed | undefined): string {
  const lack = step.part === 'machine' && seen?.machine.state === 'on' ? (seen.machine.repair ?? '') : '';
  return `${stepName(step)} ${lack}`;
}

function isHarmless({ step: { do: what } }: Step, { machine }: Observed): boolean {
  return what === 'start' || what === 'adjust' || (what === 'stop' && machine.state === 'broken');
}
