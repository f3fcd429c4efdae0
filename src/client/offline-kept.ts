import { isDeepStrictEqual } from 'node:util';
import type { ForeseenDrift, Plan, PlanRequest } from '../plan/change.ts';
import type { Deed, PlannedDeed } from '../plan/deed.ts';
import { foreseenDrift, withSetBackBlocked } from '../plan/foresight.ts';
import { changeName, commonFields, type PlannedHow } from '../plan/kept.ts';
import type { PartialRequest } from '../plan/leave-out.ts';
import type { ForwardsReport } from '../plan/port-forwards.ts';
import type { KeptRecord } from '../state/kept-file.ts';
import type { StoredSettings } from './offline.ts';

/** The stored state of a home whose service does not run. */
export interface StoredHome {
  settings: StoredSettings;
  forwards: ForwardsReport;
}

interface KeptFacts {
  records: readonly KeptRecord[];
  /** Name of the kept profile that an apply would update. */
  kept: string | undefined;
  how: PlannedHow;
  /** Current time in milliseconds since the epoch. */
  now: number;
  /** IANA name of the time zone of maintenance windows; by default the local one. */
  zone?: string | undefined;
  planOf(request: PartialRequest, home: StoredHome): PlannedDeed;
}

/** Adds to the estimated plan the differences from kept profiles that the next service will report. */
export function withKept({ plan, deed }: PlannedDeed, request: PlanRequest, home: StoredHome, facts: KeptFacts): Plan {
  const { records, kept, how, now, zone, planOf } = facts;
  const drift = records.flatMap(({ profile, fields }): ForeseenDrift[] => {
    if (profile.name === kept || commonFields(request, profile.request).length === 0) return [];
    const generation = (home.settings.generation ?? profile.generation) + 1;
    return foreseenDrift({
      ...{ profile, request, plan, now, zone },
      after: { changes: setBack(planOf(profile.request, homeAfter(deed, home)).plan, plan) },
      by: { by: { how }, generation, at: new Date(now).toISOString() },
      memory: new Map(Object.entries(fields)),
      writer: () => undefined,
    });
  });
  if (drift.length === 0) return plan;
  const foreseen = { ...plan, drift };
  if (how !== 'apply') return foreseen;
  return withSetBackBlocked({ plan: foreseen, deed }, request, (other) => planOf(other, home)).plan;
}

function homeAfter({ next, after }: Deed, { settings: stored, forwards }: StoredHome): StoredHome {
  const left = next.power === undefined ? {} : { left: next.power === 'started' };
  const settings = { ...stored, ...next, settings: after.settings, ...left };
  return { settings, forwards: after.forwards ?? forwards };
}

/**
 * Returns the changes with which a kept profile would revert a plan. Reverting what has just been written costs nothing, because nothing has
 * restarted yet.
 */
function setBack({ changes }: Plan, plan: Plan): Plan['changes'] {
  const before = new Map(plan.changes.map((change) => [changeName(change), change.before]));
  return changes.map((change) => {
    const name = changeName(change);
    const isAsBefore = before.has(name) && isDeepStrictEqual(before.get(name), change.after);
    return isAsBefore ? { ...change, severity: 'none' as const } : change;
  });
}
