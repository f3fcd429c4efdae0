import { checkPlaces, type ResetSummary, factoryReset as removeFiles } from '../state/factory-reset.ts';
import type { Places } from '../state/places.ts';
import type { FollowingIntegration } from './host-integration.ts';

/** What the end of a service depends on, as far as it has come. */
export interface Ending {
  /** False while something may run, so that the lock stays behind for the next service to find it. */
  backendStopped: boolean;
  /** Set once there is one. */
  integration?: FollowingIntegration;
}

/** What was asked for over the API. */
interface FactoryResetRequest {
  /** Downloads go too. */
  cache: boolean;
}

/** A factory reset at the end of a service: it happens when everything else has stopped, and before the lock is let go. */
export interface PendingReset {
  request(request: FactoryResetRequest): void;
  /** Does what was asked for, if anything was. Never throws: what failed is in the summary. */
  perform(ending: Ending): Promise<void>;
  /** Absent: none was asked for, or it has not happened yet. */
  summary(): ResetSummary | undefined;
}

/** Without a stopped backend nothing is removed: what finds it again would be lost. */
export function createPendingReset(here: Places): PendingReset {
  let wanted: FactoryResetRequest | undefined;
  let summary: ResetSummary | undefined;

  const refused = (reason: string): ResetSummary => ({
    removed: [],
    kept: [],
    failed: [{ path: here.data, reason }],
  });

  return {
    request(request) {
      wanted = request;
    },
    summary: () => summary,
    async perform({ backendStopped, integration }) {
      if (!wanted) return;
      if (!backendStopped) {
        summary = refused('the backend did not stop, and nothing was removed');
        return;
      }
      try {
        checkPlaces(here, wanted.cache);
        const failed = ((await integration?.undo()) ?? []).filter(({ state }) => state === 'failed');
        const done = await removeFiles(here, wanted);
        summary = {
          ...done,
          failed: [...failed.map(({ file, message = '' }) => ({ path: file, reason: message })), ...done.failed],
        };
      } catch (error) {
        summary = refused(error instanceof Error ? error.message : String(error));
      }
    },
  };
}
