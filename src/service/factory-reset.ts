import { type ResetSummary, factoryReset as removeFiles } from '../storage/factory-reset.ts';
import type { Places } from '../storage/places.ts';
import type { Undo } from '../storage/teardown.ts';
import type { FollowingIntegration } from './host-integration.ts';

/** What was asked for over the API. */
interface FactoryResetRequest {
  /** Downloads go too. */
  cache: boolean;
}

/** A factory reset at the end of a service: it happens when everything else has stopped, and before the lock is let go. */
export interface PendingReset {
  request(request: FactoryResetRequest): void;
  /** Absent: none was asked for, or it has not happened yet. */
  summary(): ResetSummary | undefined;
}

/**
 * Puts the place for a factory reset into the list of what undoes a service. To be called while the list holds the lock alone:
 * whatever is begun later is undone before.
 */
export function prepareFactoryReset(
  undo: Undo[],
  here: Places,
  integration: () => Pick<FollowingIntegration, 'undo'> | undefined,
): PendingReset {
  let wanted: FactoryResetRequest | undefined;
  let summary: ResetSummary | undefined;
  undo.push([
    'factory reset',
    async () => {
      if (!wanted) return;
      const failed = ((await integration()?.undo()) ?? []).filter(({ state }) => state === 'failed');
      const done = await removeFiles(here, wanted);
      summary = {
        ...done,
        failed: [...failed.map(({ file, message = '' }) => ({ path: file, reason: message })), ...done.failed],
      };
    },
  ]);
  return {
    request(request) {
      wanted = request;
    },
    summary: () => summary,
  };
}
