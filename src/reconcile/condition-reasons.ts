import type { Concern, ConditionType } from './status.ts';

interface Meaning {
  concern: Concern;
  status: 'True' | 'False' | 'Unknown';
  /** For display; `docs/conditions.md` has the same sentence. */
  meaning: string;
}

const UNKNOWN = {
  NotObserved: { concern: 'patience', status: 'Unknown', meaning: 'The service has not looked yet.' },
  ObservationFailed: {
    concern: 'attention',
    status: 'Unknown',
    meaning: 'The driver could not be asked; the message says why.',
  },
} as const;

/** Every condition with its possible reasons. */
export const CONDITION_REASONS = {
  MachineReady: {
    Running: { concern: 'none', status: 'True', meaning: 'The machine runs with the desired settings.' },
    PoweredOff: { concern: 'none', status: 'False', meaning: 'The backend is to be stopped, and the machine is off.' },
    Starting: { concern: 'patience', status: 'False', meaning: 'The machine is off and will be started.' },
    Stopping: {
      concern: 'patience',
      status: 'False',
      meaning: 'The backend is to be stopped, and the machine still runs.',
    },
    Restarting: {
      concern: 'patience',
      status: 'False',
      meaning: 'The machine runs with other settings and is stopped to be started again.',
    },
    Broken: {
      concern: 'attention',
      status: 'False',
      meaning: 'The machine is in a state in which it can only be stopped.',
    },
    StepFailed: {
      concern: 'attention',
      status: 'False',
      meaning: 'The last step of the machine failed; the message says why.',
    },
    ...UNKNOWN,
  },
  EngineReady: {
    Running: { concern: 'none', status: 'True', meaning: 'The chosen engine runs with the desired settings.' },
    PoweredOff: { concern: 'none', status: 'False', meaning: 'The backend is to be stopped, and no engine runs.' },
    WaitingForMachine: { concern: 'patience', status: 'False', meaning: 'The engine starts when the machine runs.' },
    Starting: { concern: 'patience', status: 'False', meaning: 'The engine is off and will be started.' },
    Stopping: {
      concern: 'patience',
      status: 'False',
      meaning: 'The backend is to be stopped, and an engine still runs.',
    },
    Restarting: {
      concern: 'patience',
      status: 'False',
      meaning: 'The engine runs with other settings and is stopped to be started again.',
    },
    Switching: { concern: 'patience', status: 'False', meaning: 'The other engine is stopped first.' },
    Unresponsive: {
      concern: 'attention',
      status: 'False',
      meaning: 'The engine has a process that does not answer; it is stopped.',
    },
    StepFailed: {
      concern: 'attention',
      status: 'False',
      meaning: 'The last step of an engine failed; the message says why.',
    },
    ...UNKNOWN,
  },
  ClusterReady: {
    Running: { concern: 'none', status: 'True', meaning: 'The cluster runs with the desired settings and answers.' },
    NotSupportedByDriver: {
      concern: 'none',
      status: 'False',
      meaning: 'The driver has no cluster; the settings of the cluster are only stored.',
    },
    SwitchedOff: { concern: 'none', status: 'False', meaning: '`kubernetes.enabled` is false, and no cluster runs.' },
    PoweredOff: { concern: 'none', status: 'False', meaning: 'The backend is to be stopped, and no cluster runs.' },
    WaitingForEngine: { concern: 'patience', status: 'False', meaning: 'The cluster starts when the engine runs.' },
    Starting: { concern: 'patience', status: 'False', meaning: 'The cluster is off and will be started.' },
    NotAnsweringYet: {
      concern: 'patience',
      status: 'False',
      meaning: 'The cluster has been started and does not answer yet.',
    },
    NotReadyInTime: {
      concern: 'attention',
      status: 'False',
      meaning: 'The cluster has been started and has not answered for ten minutes.',
    },
    Stopping: { concern: 'patience', status: 'False', meaning: 'The cluster is to be off and still runs.' },
    Restarting: { concern: 'patience', status: 'False', meaning: 'The cluster is stopped to be started again.' },
    Resetting: {
      concern: 'patience',
      status: 'False',
      meaning: 'The data of the installed, newer cluster is deleted before the start.',
    },
    Unresponsive: {
      concern: 'attention',
      status: 'False',
      meaning: 'The cluster has a process that does not answer; it is stopped.',
    },
    StepFailed: {
      concern: 'attention',
      status: 'False',
      meaning: 'The last step of the cluster failed; the message says why.',
    },
    ...UNKNOWN,
  },
  Converged: {
    UpToDate: { concern: 'none', status: 'True', meaning: 'Everything is as desired, and nothing is left to do.' },
    Working: { concern: 'patience', status: 'False', meaning: 'Something is left to do and is being done.' },
    WaitingForCluster: {
      concern: 'patience',
      status: 'False',
      meaning: 'Every step is done; the cluster does not answer yet.',
    },
    Held: {
      concern: 'patience',
      status: 'False',
      meaning:
        'Something works on the data of the backend, which stays off, or as it is, until then; the message says what.',
    },
    DataNotWhole: {
      concern: 'attention',
      status: 'False',
      meaning: 'The data of the backend needs a person, and nothing runs until then; the message says what to do.',
    },
    Retrying: { concern: 'attention', status: 'False', meaning: 'A step failed and will be tried again shortly.' },
    Failed: {
      concern: 'attention',
      status: 'False',
      meaning: 'Something failed for good; it waits for a change of the desired state.',
    },
    NotObserved: UNKNOWN.NotObserved,
  },
} as const satisfies Record<ConditionType, Record<string, Meaning>>;

/** The reasons of a condition. */
export type ReasonOf<T extends ConditionType> = keyof (typeof CONDITION_REASONS)[T] & string;

/** Status, concern and sentence of a reason. */
export function meaningOf<T extends ConditionType>(type: T, reason: ReasonOf<T>): Meaning {
  const reasons: Record<string, Meaning> = CONDITION_REASONS[type];
  return reasons[reason] ?? { status: 'Unknown', concern: 'attention', meaning: reason };
}
