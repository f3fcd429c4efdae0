import type { Pace } from '../../../process/pace.ts';
import type { MachineStart } from '../../driver.ts';

/** Measures the duration of consecutive phases. */
export interface Phases {
  /** Ends the phase that began with the last end, or at the beginning. */
  end(name: string): void;
  /** In whole milliseconds that add up to the total. */
  all(): MachineStart['phases'];
}

export function phases(pace: Pick<Pace, 'now'>): Phases {
  const begin = pace.now();
  const ends: { name: string; at: number }[] = [];
  return {
    end: (name) => void ends.push({ name, at: Math.round(pace.now() - begin) }),
    all: () => ends.map(({ name, at }, index) => ({ name, ms: at - (ends[index - 1]?.at ?? 0) })),
  };
}
