import type { DriverInfo } from '../drivers/driver.ts';
import { type Goal, goalOf } from '../plan/spec.ts';
import type { Desired } from './contract.ts';

/**
 * Keeps the backend from becoming what is wished for, and leaves the wish alone. `off`: nothing may run, because somebody works on
 * the data. `cluster reset`: everything below the cluster runs, and the cluster's data is deleted. `as it is`: what was wished for
 * before goes on, and what is wished for since waits.
 */
export interface Hold {
  keep: 'off' | 'cluster reset' | 'as it is';
  /** A sentence for people: why, and what ends it. */
  reason: string;
  /** Nothing is under way that would end it: it takes a person, and a restart of the service. */
  damaged?: true;
}

/** What to work toward: the wish, or what the hold allows. `before`: what it was until now. */
export function heldGoal({ settings, power, hold }: Desired, driver: DriverInfo, before?: Goal): Goal {
  if (!hold) return goalOf(settings, power, driver);
  if (hold.keep === 'as it is') return before ?? goalOf(settings, power, driver);
  if (hold.keep === 'off') return goalOf(settings, 'stopped', driver);
  const { cluster: _, ...below } = goalOf(settings, 'started', driver);
  return driver.hasCluster ? { ...below, resetCluster: true } : below;
}
