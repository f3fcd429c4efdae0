import type { DriverInfo } from '../drivers/driver.ts';
import { clusterMustReset, clusterMustStop, engineMustStop, machineMustStop } from '../plan/consequences.ts';
import { busyEngines, clusterHasProcess, isUp, type Observed } from '../plan/observed.ts';
import type { Goal } from '../plan/spec.ts';
import type { Failure } from './backoff.ts';
import { CLUSTER_ANSWER } from './cluster-wait.ts';
import { meaningOf, type ReasonOf } from './condition-reasons.ts';
import type { Hold } from './hold.ts';
import type { Condition, ConditionType } from './status.ts';
import { isReady, nextStep } from './step.ts';

/** The inputs to the conditions. */
export interface ConditionInput {
  goal: Goal;
  seen: Observed | undefined;
  driver: DriverInfo;
  failure: Failure | undefined;
  /** The current generation has been observed, and no step is running. */
  fresh: boolean;
  generation: number;
  /** RFC 3339. */
  now: string;
  hold?: Hold;
}

/** The four conditions, in order. A transition time is kept while the status stays the same. */
export function conditionsOf(input: ConditionInput, previous: readonly Condition[]): Condition[] {
  return [
    condition('MachineReady', machineReason(input), input, previous),
    condition('EngineReady', engineReason(input), input, previous),
    condition('ClusterReady', clusterReason(input), input, previous),
    condition('Converged', convergedReason(input), input, previous),
  ];
}

function condition<T extends ConditionType>(
  type: T,
  reason: ReasonOf<T>,
  input: ConditionInput,
  previous: readonly Condition[],
): Condition {
  const { status, concern, meaning } = meaningOf(type, reason);
  const before = previous.find((candidate) => candidate.type === type);
  return {
    type,
    status,
    reason,
    concern,
    message: messageOf(reason, meaning, input),
    observedGeneration: input.generation,
    lastTransitionTime: before?.status === status ? before.lastTransitionTime : input.now,
  };
}

function messageOf(reason: string, meaning: string, { failure, seen, hold }: ConditionInput): string {
  if ((reason === 'Held' || reason === 'DataNotWhole') && hold) return hold.reason;
  if (reason === 'Broken' && seen?.machine.state === 'broken') return `${meaning} ${seen.machine.message}`;
  if (!failure || !['StepFailed', 'NotReadyInTime', 'ObservationFailed', 'Failed', 'Retrying'].includes(reason))
    return meaning;
  const advice = failure.error.advice ?? 'Read the log of the service, put right what it names, and start again.';
  const attempts = failure.attempts > 1 ? ` (${failure.attempts} attempts)` : '';
  const what = `${failure.error.message.replace(/\.$/, '')}${attempts}.`;
  return `${what} ${failure.terminal ? advice : 'It is tried again.'}`;
}

function machineReason(input: ConditionInput): ReasonOf<'MachineReady'> {
  const { goal, seen, driver } = input;
  if (!seen || blind(input)) return unknown(input);
  if (seen.machine.state === 'on' && !machineMustStop(goal, seen, driver)) return 'Running';
  if (failedAt('machine', input)) return 'StepFailed';
  if (seen.machine.state === 'broken') return 'Broken';
  if (seen.machine.state === 'on') return goal.on ? 'Restarting' : 'Stopping';
  return goal.on ? 'Starting' : 'PoweredOff';
}

function engineReason(input: ConditionInput): ReasonOf<'EngineReady'> {
  const { goal, seen, driver } = input;
  if (!seen || blind(input)) return unknown(input);
  const { name } = goal.engine;
  const { state } = seen.engines[name];
  if (state === 'running' && !engineMustStop(name, goal, seen, driver)) return 'Running';
  if (failedAt('engine', input)) return 'StepFailed';
  if (!goal.on) return busyEngines(seen).length > 0 ? 'Stopping' : 'PoweredOff';
  if (state === 'unresponsive') return 'Unresponsive';
  if (state === 'running') return 'Restarting';
  if (busyEngines(seen).length > 0) return 'Switching';
  return seen.machine.state === 'on' && !machineMustStop(goal, seen, driver) ? 'Starting' : 'WaitingForMachine';
}

function clusterReason(input: ConditionInput): ReasonOf<'ClusterReady'> {
  const { goal, seen, driver } = input;
  if (!driver.hasCluster) return 'NotSupportedByDriver';
  if (!seen || blind(input)) return unknown(input);
  const { cluster } = seen;
  if (cluster.state === 'running' && cluster.ready && !clusterMustStop(goal, seen, driver)) return 'Running';
  if (input.failure?.what === CLUSTER_ANSWER) return 'NotReadyInTime';
  if (failedAt('cluster', input)) return 'StepFailed';
  if (!goal.on || !goal.cluster) {
    if (clusterHasProcess(seen)) return 'Stopping';
    return goal.on ? 'SwitchedOff' : 'PoweredOff';
  }
  if (cluster.state === 'unresponsive') return 'Unresponsive';
  if (cluster.state === 'running') return clusterMustStop(goal, seen, driver) ? 'Restarting' : 'NotAnsweringYet';
  if (engineReason(input) !== 'Running') return 'WaitingForEngine';
  return clusterMustReset(goal, seen) ? 'Resetting' : 'Starting';
}

function convergedReason(input: ConditionInput): ReasonOf<'Converged'> {
  const { goal, seen, driver, failure, fresh, hold } = input;
  if (failure) return failure.terminal ? 'Failed' : 'Retrying';
  if (hold) return hold.damaged ? 'DataNotWhole' : 'Held';
  if (!seen) return 'NotObserved';
  if (!fresh || nextStep(goal, seen, driver) || (!goal.on && isUp(seen))) return 'Working';
  return isReady(goal, seen) ? 'UpToDate' : 'WaitingForCluster';
}

function blind({ failure }: ConditionInput): boolean {
  return failure?.what === 'observation';
}

function unknown({ failure }: ConditionInput): 'ObservationFailed' | 'NotObserved' {
  return failure ? 'ObservationFailed' : 'NotObserved';
}

function failedAt(part: string, { failure }: ConditionInput): boolean {
  return failure?.what.startsWith(`${part} `) === true;
}
