import type { Driver, DriverInfo, MachineStep } from '../drivers/driver.ts';
import { machineMustStop } from '../plan/consequences.ts';
import { machineDrift } from '../plan/drift.ts';
import { isUp, type Observed } from '../plan/observed.ts';
import type { Goal } from '../plan/spec.ts';

/**
 * Pure. The machine stops after, and starts before, everything in it. A broken or halted one is stopped at once:
 * nothing in it can be asked to stop.
 */
export function nextMachineStep(goal: Goal, seen: Observed, driver: DriverInfo): MachineStep | undefined {
  if (seen.machine.state === 'broken') return { do: 'stop' };
  if (seen.machine.state === 'on') {
    if (machineMustStop(goal, seen, driver)) {
      return isUp(seen) && !seen.machine.halted ? undefined : { do: 'stop' };
    }
    const { live } = machineDrift(seen.machine, goal.machine, driver);
    const adjust = live.length > 0 || seen.machine.repair !== undefined;
    return adjust ? { do: 'adjust', spec: goal.machine } : undefined;
  }
  // Clear parts that claim to run in a stopped machine first.
  return goal.on && !isUp(seen) ? { do: 'start', spec: goal.machine } : undefined;
}

export async function performMachine(
  step: MachineStep,
  driver: Driver,
  signal: AbortSignal,
  progress: () => void,
): Promise<void> {
  await driver.machine.perform(step, signal, progress);
}
