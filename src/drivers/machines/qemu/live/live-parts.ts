import type { Clock } from '../../../../os/clock.ts';
import type { Connection } from '../guest.ts';
import type { Monitor } from '../monitor.ts';

/** Dependencies of a live change. */
export interface LiveParts {
  monitor: Pick<Monitor, 'use'>;
  guest: Pick<Connection, 'run'>;
  clock: Clock;
  /** Called on progress of a long-running change. */
  progress?: (() => void) | undefined;
}
