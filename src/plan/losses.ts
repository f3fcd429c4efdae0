import type { BlastItem, Loss, Plan } from './change.ts';

/** Names of the losses that users consent to: `--allow kubernetes-reset`. */
export const LOSSES = ['kubernetes-reset', 'machine-reset'] as const satisfies readonly Loss[];

/** The loss that each mode of `PUT /v1/k8s_reset` causes. */
export const LOSS_OF = { fast: 'kubernetes-reset', wipe: 'machine-reset' } as const satisfies Record<string, Loss>;

export type { Consent } from './history.gen.ts';

/** The losses allowed in advance: `all`, or by name. */
export type Allowed = 'all' | readonly Loss[];

type Destroyed = Extract<BlastItem, { lost: true }>;

/** Lists the data that a plan destroys. */
export function lostItems({ blastRadius }: Pick<Plan, 'blastRadius'>): Destroyed[] {
  return blastRadius.filter((item) => item.lost);
}

/** The beginning of a plan's warning that it destroys data without a snapshot. */
export const NO_SNAPSHOT = 'No snapshot is made first';

/** Returns the consents that a plan needs. A reset without a listed item counts as one of the cluster. */
export function lossesOf(plan: Pick<Plan, 'blastRadius' | 'summary'>): Loss[] {
  const items = lostItems(plan);
  // Services of earlier releases omit the name.
  const names = items.map(({ consent = 'kubernetes-reset' }) => consent);
  return names.length === 0 && plan.summary.resets > 0 ? ['kubernetes-reset'] : [...new Set(names)];
}

/** Returns the losses that were not allowed. */
export function missingConsent(losses: readonly Loss[], allowed: Allowed): Loss[] {
  return allowed === 'all' ? [] : losses.filter((loss) => !allowed.includes(loss));
}
