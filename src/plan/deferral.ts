import { RdError } from '../errors.ts';
import {
  isOpen,
  type MaintenanceWindow,
  momentText,
  nextOpening,
  parseWindow,
} from '../settings/maintenance-window.ts';
import type { Change, Plan } from './change.ts';
import { changeName } from './kept.ts';
import { type PartialRequest, withoutFields } from './leave-out.ts';
import { isRuntimeChange } from './runtime-changes.ts';

/**
 * Returns when a restart that has been due since `since` may run, in milliseconds; undefined means now. `zone`: IANA name, by default the local time
 * zone.
 */
export function deferralEnd(
  { window, maxDeferMs }: MaintenanceWindow,
  since: number,
  now: number,
  zone?: string,
): number | undefined {
  const spans = parseWindow(window);
  const latest = since + maxDeferMs;
  if (!Array.isArray(spans) || now >= latest || isOpen(spans, now, zone)) return undefined;
  return Math.min(nextOpening(spans, now, zone) ?? latest, latest);
}

/** The part of a plan that waits for a maintenance window. */
interface Deferral {
  /** Milliseconds since 1970. */
  until: number;
  changes: Change[];
}

/** Returns the changes of a plan that restart while its window is closed, or undefined if nothing waits. */
export function deferralOf(
  plan: Plan,
  maintenance: MaintenanceWindow | undefined,
  now: number,
  zone?: string,
): Deferral | undefined {
  const until = maintenance && deferralEnd(maintenance, now, now, zone);
  if (until === undefined) return undefined;
  const changes = openChanges(plan).filter(({ severity }) => severity === 'restart' || severity === 'reset');
  return changes.length === 0 ? undefined : { until, changes };
}

/** Returns the changes of settings and power that are not blocked. */
export function openChanges({ changes }: Plan): Change[] {
  return changes.filter((change) => !change.blocked && !isRuntimeChange(change));
}

/** Returns the plan with the changes that its window defers marked. */
export function withDeferral(plan: Plan, maintenance: MaintenanceWindow | undefined, now: number, zone?: string): Plan {
  const deferral = deferralOf(plan, maintenance, now, zone);
  if (!deferral) return plan;
  const { until, changes } = deferral;
  return { ...plan, deferred: { until: new Date(until).toISOString(), changes: changes.map(changeName) } };
}

/** Throws `ERR_CONSENT_NEEDED` if deferred changes would destroy data in a window, unattended. */
export function refuseUnattended({ until, changes }: Deferral, now: number, zone?: string): void {
  const resets = changes.filter(({ severity }) => severity === 'reset');
  if (resets.length === 0) return;
  const when = momentText(until, now, zone);
  throw new RdError(
    'ERR_CONSENT_NEEDED',
    `This plan destroys data, which the service does not do on its own in the window of ${when}; nothing was changed.`,
    {
      details: resets.map(changeName),
      advice: 'Apply with --now --allow-reset to do it immediately, or leave it out of the profile.',
    },
  );
}

/** The part of a request that makes some of its changes. */
interface RequestPart {
  request: PartialRequest;
  plan: Plan;
  /** Empty if there is nothing to do. */
  changes: Change[];
}

/**
 * Returns the part of a request that makes these changes, without those that would cost more than `most` if only these were made, because the cost of
 * a change can depend on others. `planOf`: returns the plan that a request would have now.
 */
export function affordablePart(
  whole: PartialRequest,
  wanted: readonly Change[],
  most: 'live' | 'restart',
  planOf: (request: PartialRequest) => Plan,
): RequestPart {
  const isCostly = ({ severity }: Change) => severity === 'reset' || (severity === 'restart' && most === 'live');
  const all = planOf(whole).changes;
  let changes = [...wanted];
  for (;;) {
    const names = new Set(changes.map(changeName));
    const request = withoutFields(
      whole,
      all.filter((change) => !names.has(changeName(change))),
    );
    const plan = planOf(request);
    const costly = new Set(openChanges(plan).filter(isCostly).map(changeName));
    const left = changes.filter((change) => !costly.has(changeName(change)));
    if (left.length === changes.length) return { request, plan, changes };
    changes = left;
  }
}
