import { RdError } from '../../errors.ts';
import type { Clock } from '../../os/clock.ts';
import type { ForeseenDrift, Plan, PlanRequest } from '../../plan/change.ts';
import { foreseenDrift } from '../../plan/foresight.ts';
import type { Author } from '../../plan/history.ts';
import { commonFields } from '../../plan/kept.ts';
import type { Watched } from './report.ts';
import type { Writers } from './writers.ts';

/** A plan and the author of its write. */
interface PlannedWrite {
  plan: Plan;
  request: PlanRequest;
  by: Author;
  /** Name of the kept profile that the write updates. */
  kept?: string;
  /** Returns a request in canonical form. Throws `ERR_SETTINGS_INVALID`. */
  check(request: PlanRequest): PlanRequest;
  /** Plans a request as of the time after this write. */
  planAfter(request: PlanRequest): Plan;
}

/** Returns the differences from kept profiles that a write would cause. */
export type Foresight = (write: PlannedWrite) => ForeseenDrift[];

interface ForesightParts {
  watched: readonly Watched[];
  writers: Writers;
  clock: Clock;
  /** IANA name of the time zone of maintenance windows; by default the local one. */
  zone?: string | undefined;
}

export function createForesight({ watched, writers, clock, zone }: ForesightParts): Foresight {
  return ({ plan, request, by, kept, check, planAfter }) =>
    watched.flatMap(({ profile, fields }) => {
      if (profile.name === kept || commonFields(request, profile.request).length === 0) return [];
      const now = clock.now();
      const undoneBy = writers.undoing(profile);
      try {
        return foreseenDrift({
          ...{ profile, request, plan, now, zone },
          after: planAfter(check(profile.request)),
          by: { by, generation: plan.generation + 1, at: new Date(now).toISOString() },
          memory: new Map(Object.entries(fields)),
          writer: writers.last,
          ...(undoneBy ? { undoneBy } : {}),
        });
      } catch (error) {
        // A profile that cannot be compared reverts nothing, and the status names it.
        if (error instanceof RdError) return [];
        throw error;
      }
    });
}
