import { RdError } from '../../../errors.ts';
import type { EngineName } from '../../driver.ts';
import type { FaultRule } from './options.ts';

/** What replaces or follows the work of a step. */
export type Fault = { kind: 'error'; when: 'before' | 'after'; error: RdError } | { kind: 'hang' };

/** Decides for each step whether it fails. Called once per attempt. */
export type FaultSource = (part: 'machine' | EngineName | 'cluster', step: string) => Fault | undefined;

/** Faults configured in the environment; a rule for `engine` applies to both engines. Counts last as long as the source. */
export function listedFaults(rules: readonly FaultRule[]): FaultSource {
  const left = rules.map((rule) => ({ ...rule, times: typeof rule.effect === 'string' ? 0 : rule.effect.times }));
  return (part, step) => {
    for (const rule of left) {
      const names = rule.part === 'engine' ? ['moby', 'containerd'] : [rule.part];
      if (rule.step !== step || !names.includes(part)) continue;
      if (rule.effect === 'hang') return { kind: 'hang' };
      if (rule.effect === 'terminal') return failure('ERR_DRIVER_TERMINAL', part, step);
      if (rule.times > 0) {
        rule.times--;
        return failure('ERR_DRIVER_FAILED', part, step);
      }
    }
    return undefined;
  };
}

function failure(code: 'ERR_DRIVER_TERMINAL' | 'ERR_DRIVER_FAILED', part: string, step: string): Fault {
  const error = new RdError(code, `a simulated fault of ${part} ${step}.`, {
    advice: 'Take it out of RDCTL_SIMULATED_FAULTS and start the service again.',
  });
  return { kind: 'error', when: 'before', error };
}
