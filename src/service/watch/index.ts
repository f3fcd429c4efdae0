import type { ApiContext, Log, Planner, Watch } from '../../api/context.ts';
import type { FollowingIntegration } from '../../features/host-integration/integration.ts';
import type { Maintenance } from '../../features/snapshots/maintenance.ts';
import { systemClock } from '../../os/clock.ts';
import type { DesiredStore } from '../../state/desired-store.ts';
import { readHistory } from '../../state/history-file.ts';
import { loadKept, saveKept } from '../../state/kept-file.ts';
import type { Places } from '../../state/places.ts';
import type { ServiceOptions } from '../options.ts';
import { createWatch, type WatchFeed } from './watch.ts';

interface Parts {
  options: ServiceOptions;
  places: Places;
  planner: Planner;
  applies: ApiContext['applies'];
  store: DesiredStore;
  maintenance: Pick<Maintenance, 'doing'>;
  integration: FollowingIntegration;
  notice(text: string): void;
  log: Log;
  onChange(): void;
  /** The oldest version that an automatic return may go back to. */
  oldestReturn(): number;
}

/** The kept profiles of this home. Throws `ERR_IO` where their file cannot be read. */
export async function openWatch(parts: Parts): Promise<Watch & WatchFeed> {
  const { options, places, planner, applies, store, maintenance, integration, notice, log, onChange, oldestReturn } =
    parts;
  const { records, notice: found } = await loadKept(places.keptFile, systemClock.now);
  if (found !== undefined) notice(found);
  return createWatch({
    ...{ planner, records, applies, log, onChange, oldestReturn },
    save: (next) => saveKept(places.keptFile, next),
    files: integration,
    entries: records.length === 0 ? [] : await readHistory(places.historyFile),
    idle: options.idle ?? false,
    startedForApply: options.power === 'stopped',
    maintenance: () => maintenance.doing(),
    generation: () => store.snapshot().desired.generation,
    clock: systemClock,
  });
}
