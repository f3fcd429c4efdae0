import type { DriverInfo } from '../drivers/driver.ts';
import { type Goal, goalOf } from '../plan/spec.ts';
import type { Desired } from './contract.ts';

/**
 * Keeps the backend from its desired state without changing that state. `off`: nothing may run, because its data is
 * being worked on. `cluster reset`: everything below the cluster runs, and the cluster's data is deleted. `as it is`:
 * the previous goal stays, and changes of the desired state wait.
 */
export interface Hold {
  keep: 'off' | 'cluster reset' | 'as it is';
  /** A sentence for display: the reason, and what ends it. */
  reason: string;
  /** No operation will end it: it needs user action, and a restart of the service. */
  damaged?: true;
}

/** The goal: the desired state, or what the hold permits. `before`: the goal until now. */
export function heldGoal({ settings, power, hold }: Desired, driver: DriverInfo, before?: Goal): Goal {
  if (!hold) return goalOf(settings, power, driver);
  if (hold.keep === 'as it is') return before ?? goalOf(settings, power, driver);
  if (hold.keep === 'off') return goalOf(settings, 'stopped', driver);
  const { cluster: _, ...below } = goalOf(settings, 'started', driver);
  return driver.hasCluster ? { ...below, resetCluster: true } : below;
}
