import { RdError } from '../../../errors.ts';
import type { EngineName } from '../../driver.ts';
import type { FirstWorkload } from './model.ts';

export type Env = Readonly<Record<string, string | undefined>>;
type FaultPart = 'machine' | 'engine' | 'moby' | 'containerd' | 'cluster';

/** Makes one kind of step fail: this many times, permanently, or by hanging. */
export interface FaultRule {
  part: FaultPart;
  /** Name of a step, or `observe`. */
  step: string;
  effect: { times: number } | 'terminal' | 'hang';
}

/** Simulation options from the environment. */
export interface SimulationOptions {
  /** Milliseconds for every step; undefined: the default of each kind. */
  latencyMs: number | undefined;
  faults: readonly FaultRule[];
  firstWorkload: FirstWorkload;
}

const PARTS: readonly string[] = ['machine', 'engine', 'moby', 'containerd', 'cluster'] satisfies FaultPart[];
const STEPS: readonly string[] = ['start', 'stop', 'adjust', 'reset', 'observe'];
const FAULT = /^([a-z]+)\.([a-z]+):(\d{1,6}|terminal|hang)$/;

/**
 * Reads
 * - `RDCTL_SIMULATED_LATENCY_MS`: `0` to `3600000`;
 * - `RDCTL_SIMULATED_FAULTS`: `engine.start:2,machine.stop:terminal,cluster.start:hang`;
 * - `RDCTL_SIMULATED_WORKLOAD`: `containers=2,images=5`, the content of an engine after its first start.
 * Throws `ERR_USAGE` naming the variable.
 */
export function simulationOptions(env: Env): SimulationOptions {
  return {
    latencyMs: latency(env.RDCTL_SIMULATED_LATENCY_MS),
    faults: items(env.RDCTL_SIMULATED_FAULTS).map(fault),
    firstWorkload: workload(items(env.RDCTL_SIMULATED_WORKLOAD)),
  };
}

function items(text: string | undefined): string[] {
  return (text ?? '').split(',').flatMap((item) => (item.trim() === '' ? [] : [item.trim()]));
}

function latency(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined;
  const value = /^\d{1,7}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 0 && value <= 3_600_000) return value;
  throw invalidVariable('RDCTL_SIMULATED_LATENCY_MS', text, 'Write milliseconds between 0 and 3600000.');
}

function fault(item: string): FaultRule {
  const [, part = '', step = '', effect = ''] = FAULT.exec(item) ?? [];
  if (!isPart(part) || !STEPS.includes(step)) {
    throw invalidVariable(
      'RDCTL_SIMULATED_FAULTS',
      item,
      'Write PART.STEP:EFFECT, such as engine.start:2 or machine.start:terminal.',
    );
  }
  return { part, step, effect: effect === 'terminal' || effect === 'hang' ? effect : { times: Number(effect) } };
}

function workload(parts: readonly string[]): FirstWorkload {
  const workload: FirstWorkload = { images: 0, containers: 0 };
  for (const part of parts) {
    const [, what, count] = /^(images|containers)=(\d{1,5})$/.exec(part) ?? [];
    if (what !== 'images' && what !== 'containers') {
      throw invalidVariable('RDCTL_SIMULATED_WORKLOAD', part, 'Write containers=NUMBER,images=NUMBER.');
    }
    workload[what] = Number(count);
  }
  return workload;
}

function isPart(text: string): text is FaultPart {
  return PARTS.includes(text);
}

function invalidVariable(variable: string, text: string, advice: string): RdError {
  return new RdError('ERR_USAGE', `${variable} has an invalid part: "${text}".`, { advice });
}

/** The event that replaces or follows the work of a step. */
export type Fault = { kind: 'error'; when: 'before' | 'after'; error: RdError } | { kind: 'hang' };

/** Decides for each step whether it fails. Called once per attempt. */
export type FaultSource = (part: 'machine' | EngineName | 'cluster', step: string) => Fault | undefined;

/** Returns the faults configured in the environment; a rule for `engine` applies to both engines. Counts last as long as the source. */
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
    advice: 'Remove it from RDCTL_SIMULATED_FAULTS and restart the service.',
  });
  return { kind: 'error', when: 'before', error };
}
