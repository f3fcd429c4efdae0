import type { BlastItem, Loss, Plan } from './change.ts';

/** Names of what a change can destroy, by which people consent to it: `--allow kubernetes-reset`. */
export const LOSSES = ['kubernetes-reset', 'machine-reset'] as const satisfies readonly Loss[];

/** What the modes of `PUT /v1/k8s_reset` destroy. */
export const LOSS_OF = { fast: 'kubernetes-reset', wipe: 'machine-reset' } as const satisfies Record<string, Loss>;

export type { Consent } from './history.gen.ts';

/** What was allowed in advance: `all` of it, or by name. */
export type Allowed = 'all' | readonly Loss[];

type Destroyed = Extract<BlastItem, { lost: true }>;

/** What a plan destroys. */
export function lostItems({ blastRadius }: Pick<Plan, 'blastRadius'>): Destroyed[] {
  return blastRadius.filter((item) => item.lost);
}

/** How the warning of a plan begins that destroys data without a snapshot of it. */
export const NO_SNAPSHOT = 'No snapshot is made first';

/** The consents that a plan needs. A reset without a listed item is one of the cluster. */
export function lossesOf(plan: Pick<Plan, 'blastRadius' | 'summary'>): Loss[] {
  const items = lostItems(plan);
  // Services of earlier releases name none.
  const names = items.map(({ consent = 'kubernetes-reset' }) => consent);
  return names.length === 0 && plan.summary.resets > 0 ? ['kubernetes-reset'] : [...new Set(names)];
}

/** The losses that were not allowed. */
export function missingConsent(losses: readonly Loss[], allowed: Allowed): Loss[] {
  return allowed === 'all' ? [] : losses.filter((loss) => !allowed.includes(loss));
}
