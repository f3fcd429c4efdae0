import type { Change, Plan } from '../plan/change.ts';
import { summarise } from '../plan/summary.ts';

/** A port forward as a profile asks for it. */
export interface WantedForward {
  namespace: string;
  service: string;
  k8sPort: number | string;
  hostPort: number;
}

/**
 * The plan with the port forwards of the profile. This version cannot make them, so each is a blocked change: the plan shows
 * them and an apply refuses them, instead of passing them over.
 */
export function withPortForwards(plan: Plan, forwards: readonly WantedForward[]): Plan {
  if (forwards.length === 0) return plan;
  const blocked = forwards.map(
    ({ namespace, service, k8sPort, hostPort }): Change => ({
      path: 'portForwards',
      key: `${namespace}/${service}:${k8sPort}`,
      action: 'create',
      after: hostPort,
      severity: 'none',
      reason: 'it cannot be made',
      blocked: { by: 'unsupported', message: 'Port forwards are checked but cannot be made by this version.' },
    }),
  );
  const changes = [...plan.changes, ...blocked];
  const summary = summarise({
    changes,
    blastRadius: plan.blastRadius,
    restart: plan.summary.restarts > 0,
    pending: plan.pendingRestart.length > 0,
  });
  return { ...plan, changes, summary };
}
