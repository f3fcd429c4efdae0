import type { Driver, DriverInfo } from '../drivers/driver.ts';
import { RdError } from '../errors.ts';
import { clusterDrift, engineDrift, machineDrift } from '../plan/drift.ts';
import type { Observed } from '../plan/observed.ts';
import type { Goal } from '../plan/spec.ts';
import { performCluster } from './cluster.ts';
import { performEngine } from './engine.ts';
import { performMachine } from './machine.ts';
import type { Step } from './step.ts';

/** Dispatches a step to its driver; throws the driver's errors. `progress`: as the driver's. */
export async function perform(
  step: Step,
  seen: Observed,
  driver: Driver,
  signal: AbortSignal,
  progress: () => void,
): Promise<void> {
  switch (step.part) {
    case 'machine':
      return performMachine(step.step, driver, signal, progress);
    case 'engine':
      return performEngine(step, driver, signal);
    case 'cluster':
      return performCluster(step.step, seen, driver, signal);
  }
}

/** A driver's error, prefixed with the step. Anything but an `RdError` is a bug and becomes `ERR_INTERNAL`. */
export function failureOf(what: string, driver: Driver, error: unknown): RdError {
  const text = error instanceof Error ? error.message : String(error);
  const known = error instanceof RdError ? error : undefined;
  return new RdError(known?.code ?? 'ERR_INTERNAL', `${what} failed with the ${driver.name} driver: ${text}`, {
    cause: error,
    ...(known?.advice === undefined ? {} : { advice: known.advice }),
    ...(known === undefined ? {} : { details: known.details }),
  });
}

/**
 * True for a start that is obsolete, because the power or the settings have changed since it began. Only such a step is
 * cancelled: its result would be stopped next anyway. A stop, a reset or an adjustment runs to its end, since half of
 * one is worse than either side of it.
 */
export function isFutile(step: Step, goal: Goal, driver: DriverInfo): boolean {
  if (step.step.do !== 'start') return false;
  if (!goal.on) return true;
  switch (step.part) {
    case 'machine':
      return machineDrift(step.step, goal.machine, driver).restart.length > 0;
    case 'engine':
      return step.engine !== goal.engine.name || engineDrift(step.step.spec, goal.engine, driver).restart.length > 0;
    case 'cluster':
      return !goal.cluster || clusterDrift(step.step.spec, goal.cluster, driver).restart.length > 0;
  }
}
