import type { Clock } from '../../../os/clock.ts';
import type { MachineStart } from '../../driver.ts';

/** Measures the duration of consecutive phases. */
export interface Phases {
  /** Ends the phase that began with the last end, or at the beginning. */
  end(name: string): void;
  /** In whole milliseconds that add up to the total. */
  all(): MachineStart['phases'];
}

export function phases(clock: Pick<Clock, 'now'>): Phases {
  const begin = clock.now();
  const ends: { name: string; at: number }[] = [];
  return {
    end: (name) => void ends.push({ name, at: Math.round(clock.now() - begin) }),
    all: () => ends.map(({ name, at }, index) => ({ name, ms: at - (ends[index - 1]?.at ?? 0) })),
  };
}
