import type { ConditionType } from './status.ts';

interface Meaning {
  status: 'True' | 'False' | 'Unknown';
  /** For people; the same sentence is in `docs/conditions.md`. */
  meaning: string;
}

const UNKNOWN = {
  NotObserved: { status: 'Unknown', meaning: 'The service has not looked yet.' },
  ObservationFailed: { status: 'Unknown', meaning: 'The driver could not be asked; the message says why.' },
} as const;

/** Every condition with every reason that it can give. */
export const CONDITION_REASONS = {
  MachineReady: {
    Running: { status: 'True', meaning: 'The machine runs with the desired settings.' },
    PoweredOff: { status: 'False', meaning: 'The backend is to be stopped, and the machine is off.' },
    Starting: { status: 'False', meaning: 'The machine is off and will be started.' },
    Stopping: { status: 'False', meaning: 'The backend is to be stopped, and the machine still runs.' },
    Restarting: {
      status: 'False',
      meaning: 'The machine runs with other settings and is stopped to be started again.',
    },
    Broken: { status: 'False', meaning: 'The machine is in a state in which it can only be stopped.' },
    StepFailed: { status: 'False', meaning: 'The last step of the machine failed; the message says why.' },
    ...UNKNOWN,
  },
  EngineReady: {
    Running: { status: 'True', meaning: 'The chosen engine runs with the desired settings.' },
    PoweredOff: { status: 'False', meaning: 'The backend is to be stopped, and no engine runs.' },
    WaitingForMachine: { status: 'False', meaning: 'The engine starts when the machine runs.' },
    Starting: { status: 'False', meaning: 'The engine is off and will be started.' },
    Stopping: { status: 'False', meaning: 'The backend is to be stopped, and an engine still runs.' },
    Restarting: { status: 'False', meaning: 'The engine runs with other settings and is stopped to be started again.' },
    Switching: { status: 'False', meaning: 'The other engine is stopped first.' },
    Unresponsive: { status: 'False', meaning: 'The engine has a process that does not answer; it is stopped.' },
    StepFailed: { status: 'False', meaning: 'The last step of an engine failed; the message says why.' },
    ...UNKNOWN,
  },
  ClusterReady: {
    Running: { status: 'True', meaning: 'The cluster runs with the desired settings and answers.' },
    NotSupportedByDriver: {
      status: 'False',
      meaning: 'The driver has no cluster; the settings of the cluster are only stored.',
    },
    SwitchedOff: { status: 'False', meaning: '`kubernetes.enabled` is false, and no cluster runs.' },
    PoweredOff: { status: 'False', meaning: 'The backend is to be stopped, and no cluster runs.' },
    WaitingForEngine: { status: 'False', meaning: 'The cluster starts when the engine runs.' },
    Starting: { status: 'False', meaning: 'The cluster is off and will be started.' },
    NotAnsweringYet: { status: 'False', meaning: 'The cluster has been started and does not answer yet.' },
    Stopping: { status: 'False', meaning: 'The cluster is to be off and still runs.' },
    Restarting: { status: 'False', meaning: 'The cluster is stopped to be started again.' },
    Resetting: { status: 'False', meaning: 'The data of the installed, newer cluster is deleted before the start.' },
    Unresponsive: { status: 'False', meaning: 'The cluster has a process that does not answer; it is stopped.' },
    StepFailed: { status: 'False', meaning: 'The last step of the cluster failed; the message says why.' },
    ...UNKNOWN,
  },
  Converged: {
    UpToDate: { status: 'True', meaning: 'Everything is as desired, and nothing is left to do.' },
    Working: { status: 'False', meaning: 'Something is left to do and is being done.' },
    WaitingForCluster: { status: 'False', meaning: 'Every step is done; the cluster does not answer yet.' },
    Retrying: { status: 'False', meaning: 'A step failed and will be tried again shortly.' },
    Failed: { status: 'False', meaning: 'A step failed for good; nothing is tried until the desired state changes.' },
    NotObserved: UNKNOWN.NotObserved,
  },
} as const satisfies Record<ConditionType, Record<string, Meaning>>;

/** The reasons that a condition can give. */
export type ReasonOf<T extends ConditionType> = keyof (typeof CONDITION_REASONS)[T] & string;

/** Status and sentence that go with a reason. */
export function meaningOf<T extends ConditionType>(type: T, reason: ReasonOf<T>): Meaning {
  const reasons: Record<string, Meaning> = CONDITION_REASONS[type];
  return reasons[reason] ?? { status: 'Unknown', meaning: reason };
}
