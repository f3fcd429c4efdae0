import { busyEngines, clusterHasProcess, isUp } from '../plan/backend.ts';
import type { Consequences } from '../plan/consequences.ts';
import { CLUSTER_ANSWER, type Failure } from './attempts.ts';
import type { Concern, Condition, ConditionType, Hold } from './contract.ts';
import { isReady, nextStep } from './step.ts';

interface Meaning {
  concern: Concern;
  status: 'True' | 'False' | 'Unknown';
  /** For display; `docs/conditions.md` has the same sentence. */
  meaning: string;
}

const UNKNOWN = {
  NotObserved: { concern: 'patience', status: 'Unknown', meaning: 'The service has not observed it yet.' },
  ObservationFailed: {
    concern: 'attention',
    status: 'Unknown',
    meaning: 'The driver could not be observed; the message says why.',
  },
} as const;

const good = (meaning: string): Meaning => ({ concern: 'none', status: 'True', meaning });
const idle = (meaning: string): Meaning => ({ concern: 'none', status: 'False', meaning });
const pending = (meaning: string): Meaning => ({ concern: 'patience', status: 'False', meaning });
const failing = (meaning: string): Meaning => ({ concern: 'attention', status: 'False', meaning });
const KEEPS_ENDING = {
  KeepsEnding: failing('It ended again soon after its start; it is started once more after a pause.'),
};

/** Every condition with its possible reasons. */
export const CONDITION_REASONS = {
  MachineReady: {
    Running: good('The machine runs with the desired settings.'),
    PoweredOff: idle('The backend should be stopped, and the machine is off.'),
    Starting: pending('The machine is off and will be started.'),
    Stopping: pending('The backend should be stopped, and the machine is still running.'),
    Restarting: pending('The machine runs with outdated settings and is being restarted.'),
    Broken: failing('The machine is in a state that it can only be stopped from.'),
    StepFailed: failing('The last step of the machine failed; the message says why.'),
    ...KEEPS_ENDING,
    ...UNKNOWN,
  },
  EngineReady: {
    Running: good('The chosen engine runs with the desired settings.'),
    PoweredOff: idle('The backend should be stopped, and no engine is running.'),
    WaitingForMachine: pending('The engine starts when the machine runs.'),
    Starting: pending('The engine is off and will be started.'),
    Stopping: pending('The backend should be stopped, and an engine is still running.'),
    Restarting: pending('The engine runs with outdated settings and is being restarted.'),
    Switching: pending('The other engine is being stopped first.'),
    Unresponsive: failing("The engine's process does not respond; it is being stopped."),
    StepFailed: failing('The last step of an engine failed; the message says why.'),
    ...KEEPS_ENDING,
    ...UNKNOWN,
  },
  ClusterReady: {
    Running: good('The cluster runs with the desired settings and answers.'),
    NotSupportedByDriver: idle('The driver has no cluster; cluster settings are only stored.'),
    SwitchedOff: idle('`kubernetes.enabled` is false, and no cluster runs.'),
    PoweredOff: idle('The backend should be stopped, and no cluster is running.'),
    WaitingForEngine: pending('The cluster starts when the engine runs.'),
    Starting: pending('The cluster is off and will be started.'),
    NotAnsweringYet: pending('The cluster has been started and does not respond yet.'),
    NotReadyInTime: failing('The cluster has been started and has not responded for ten minutes.'),
    Stopping: pending('The cluster should be off and is still running.'),
    Restarting: pending('The cluster is being restarted.'),
    Resetting: pending('The data of the installed, newer cluster is being deleted before the start.'),
    Unresponsive: failing("The cluster's process does not respond; it is being stopped."),
    StepFailed: failing('The last step of the cluster failed; the message says why.'),
    ...KEEPS_ENDING,
    ...UNKNOWN,
  },
  Converged: {
    UpToDate: good('Everything is in the desired state.'),
    Working: pending('Still converging.'),
    WaitingForCluster: pending('Every step is done; the cluster does not respond yet.'),
    Held: pending(
      "Another operation is using the backend's data; the backend does not change until it is done. The message names the operation.",
    ),
    DataNotWhole: failing(
      "The backend's data needs manual repair before anything can run; the message says what to do.",
    ),
    ServiceStopping: pending('The service is stopping, and the backend with it; the next start continues.'),
    Retrying: failing('A step failed and will be tried again shortly.'),
    Failed: failing('A step failed permanently; the service waits for a change of the desired state.'),
    NotObserved: UNKNOWN.NotObserved,
  },
} as const satisfies Record<ConditionType, Record<string, Meaning>>;

/** The reasons of a condition. */
type ReasonOf<T extends ConditionType> = keyof (typeof CONDITION_REASONS)[T] & string;

/** Returns the status, concern and sentence of a reason. */
function meaningOf<T extends ConditionType>(type: T, reason: ReasonOf<T>): Meaning {
  const reasons: Record<string, Meaning> = CONDITION_REASONS[type];
  return reasons[reason] ?? { status: 'Unknown', concern: 'attention', meaning: reason };
}

/** The inputs to the conditions. */
export interface ConditionInput {
  /** Consequences of the last observation; undefined until the first successful one. */
  consequences: Consequences | undefined;
  /** The driver has a cluster. */
  hasCluster: boolean;
  failure: Failure | undefined;
  /** The current generation has been observed, and no step is running. */
  fresh: boolean;
  generation: number;
  /** RFC 3339. */
  now: string;
  hold?: Hold;
}

/** Returns the four conditions, in order. A transition time is kept while the status stays the same. */
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

function messageOf(reason: string, meaning: string, { failure, consequences, hold }: ConditionInput): string {
  if ((reason === 'Held' || reason === 'DataNotWhole') && hold) return hold.reason;
  const machine = consequences?.observed.machine;
  const cluster = consequences?.observed.cluster;
  if (reason === 'NotAnsweringYet' && cluster?.state === 'running' && cluster.message !== undefined)
    return `${meaning.slice(0, -1)}: ${cluster.message.replace(/\.$/, '')}.`;
  if (reason === 'Broken' && machine?.state === 'broken') return `${meaning} ${machine.message}`;
  if (
    !failure ||
    !['StepFailed', 'KeepsEnding', 'NotReadyInTime', 'ObservationFailed', 'Failed', 'Retrying'].includes(reason)
  )
    return meaning;
  const advice = failure.error.advice ?? 'Check the service log, fix the problem, and start again.';
  const isStep = !failure.what.endsWith(' run');
  const attempts = failure.attempts > 1 && isStep ? ` (${failure.attempts} attempts)` : '';
  const what = `${failure.error.message.replace(/\.$/, '')}${attempts}.`;
  if (!failure.terminal) return `${what} ${isStep ? 'Retrying.' : `It is started again after a pause. ${advice}`}`;
  return `${what} ${advice}`;
}

function machineReason(input: ConditionInput): ReasonOf<'MachineReady'> {
  if (!input.consequences || isUnobservable(input)) return unknown(input);
  const { goal, observed, machine } = input.consequences;
  const { state } = observed.machine;
  if (state === 'on' && !machine.mustStop) return 'Running';
  const failed = failedAt('machine', input);
  if (failed) return failed;
  if (state === 'broken') return 'Broken';
  if (state === 'on') return goal.on ? 'Restarting' : 'Stopping';
  return goal.on ? 'Starting' : 'PoweredOff';
}

function engineReason(input: ConditionInput): ReasonOf<'EngineReady'> {
  if (!input.consequences || isUnobservable(input)) return unknown(input);
  const { goal, observed, machine, engines } = input.consequences;
  const { name } = goal.engine;
  const { state } = observed.engines[name];
  if (state === 'running' && !engines[name].mustStop) return 'Running';
  const failed = failedAt('engine', input);
  if (failed) return failed;
  if (!goal.on) return busyEngines(observed).length > 0 ? 'Stopping' : 'PoweredOff';
  if (state === 'unresponsive') return 'Unresponsive';
  if (state === 'running') return 'Restarting';
  if (busyEngines(observed).length > 0) return 'Switching';
  return observed.machine.state === 'on' && !machine.mustStop ? 'Starting' : 'WaitingForMachine';
}

function clusterReason(input: ConditionInput): ReasonOf<'ClusterReady'> {
  if (!input.hasCluster) return 'NotSupportedByDriver';
  if (!input.consequences || isUnobservable(input)) return unknown(input);
  const { goal, observed, cluster: due } = input.consequences;
  const { cluster } = observed;
  if (cluster.state === 'running' && cluster.ready && !due.mustStop) return 'Running';
  if (input.failure?.what === CLUSTER_ANSWER) return 'NotReadyInTime';
  const failed = failedAt('cluster', input);
  if (failed) return failed;
  if (!goal.on || !goal.cluster) {
    if (clusterHasProcess(observed)) return 'Stopping';
    return goal.on ? 'SwitchedOff' : 'PoweredOff';
  }
  if (cluster.state === 'unresponsive') return 'Unresponsive';
  if (cluster.state === 'running') return due.mustStop ? 'Restarting' : 'NotAnsweringYet';
  if (engineReason(input) !== 'Running') return 'WaitingForEngine';
  return due.mustReset ? 'Resetting' : 'Starting';
}

function convergedReason(input: ConditionInput): ReasonOf<'Converged'> {
  const { consequences, failure, fresh, hold } = input;
  if (failure) return failure.terminal ? 'Failed' : 'Retrying';
  if (hold?.stopping) return 'ServiceStopping';
  if (hold) return hold.damaged ? 'DataNotWhole' : 'Held';
  if (!consequences) return 'NotObserved';
  const { goal, observed } = consequences;
  if (!fresh || nextStep(consequences) || (!goal.on && isUp(observed))) return 'Working';
  return isReady(goal, observed) ? 'UpToDate' : 'WaitingForCluster';
}

function isUnobservable({ failure }: ConditionInput): boolean {
  return failure?.what === 'observation';
}

function unknown({ failure }: ConditionInput): 'ObservationFailed' | 'NotObserved' {
  return failure ? 'ObservationFailed' : 'NotObserved';
}

function failedAt(part: string, { failure }: ConditionInput): 'StepFailed' | 'KeepsEnding' | undefined {
  if (failure?.what === `${part} run`) return 'KeepsEnding';
  return failure?.what.startsWith(`${part} `) ? 'StepFailed' : undefined;
}
