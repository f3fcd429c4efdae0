import type { Pace } from '../../../../process/pace.ts';
import type { Connection } from '../guest.ts';
import type { Monitor } from '../monitor.ts';

/** What a change of a running machine needs. */
export interface LiveParts {
  monitor: Pick<Monitor, 'use'>;
  guest: Pick<Connection, 'run'>;
  pace: Pace;
  /** Hears that a change which may take long has come nearer to its end. */
  progress?: (() => void) | undefined;
}
