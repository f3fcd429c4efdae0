import type { Pace } from '../../../process/pace.ts';
import type { MachineStart } from '../../driver.ts';

/** Takes the times of what follows on each other. */
export interface Phases {
  /** What was done since the last end, or since the beginning. */
  end(name: string): void;
  /** In whole milliseconds, which add up to the whole. */
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
