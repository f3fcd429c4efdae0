import type { Change, Plan } from '../../src/plan/change.ts';
import { summarize } from '../../src/plan/summary.ts';
import type { LoopStatus } from '../../src/reconcile/contract.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';

/** A change of the engine that costs a restart. */
export const ENGINE_CHANGE: Change = {
  path: 'containerEngine.name',
  action: 'replace',
  before: 'moby',
  after: 'containerd',
  severity: 'restart',
  reason: 'stops moby and starts containerd',
};

/** A plan on the simulated driver, with a summary of its parts. */
export function planWith(changes: Change[], rest: Partial<Omit<Plan, 'changes' | 'summary'>> = {}): Plan {
  const { blastRadius = [], pendingRestart = [] } = rest;
  return {
    kind: 'Plan',
    formatVersion: 1,
    target: { product: 'rdctl', home: '/home/user/.local/share/rdctl', driver: 'simulated', simulated: true },
    basis: 'service',
    generation: 3,
    warnings: [],
    ...rest,
    changes,
    blastRadius,
    pendingRestart,
    summary: summarize({
      changes,
      blastRadius,
      restart: changes.some((change) => !change.blocked && change.severity === 'restart'),
      pending: pendingRestart.length > 0,
    }),
  };
}

/** A converged status with moby running, with these differences. */
export function statusWith(rest: Partial<StatusDocument> = {}): StatusDocument & LoopStatus {
  return {
    kind: 'Status',
    formatVersion: 1,
    product: 'rdctl',
    version: '0.1.0',
    pid: 4711,
    home: '/home/user/.local/share/rdctl',
    startedAt: '2026-01-02T03:04:05.000Z',
    driver: { name: 'simulated', simulated: true, reason: 'asked for' },
    engine: { name: 'moby', state: 'running', endpoint: 'unix:///run/docker.sock', version: '27.5.1' },
    power: 'started',
    generation: 3,
    observedGeneration: 3,
    converged: true,
    backendState: 'STARTED',
    conditions: [],
    machine: { state: 'off' },
    engines: { moby: { state: 'stopped' }, containerd: { state: 'stopped' } },
    cluster: { state: 'absent' },
    phases: [],
    counters: { steps: 0, restarts: 0, resets: 0, failures: 0, settingsPuts: 0, settingsWrites: 0 },
    notices: [],
    ...rest,
  };
}
