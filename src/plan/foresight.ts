import { defined, type JsonValue } from '../json.ts';
import type { Change, ForeseenDrift, Plan, PlanRequest, Sensitive } from './change.ts';
import type { PlannedDeed } from './deed.ts';
import { openChanges } from './deferral.ts';
import { type FieldMemory, type JudgeInput, judge, type Writer } from './healing.ts';
import { changeName, commonFields } from './kept.ts';
import { type PartialRequest, withoutFields } from './leave-out.ts';
import { tagOf } from './plan.ts';
import { extendPlan } from './summary.ts';

interface ForesightInput extends Pick<JudgeInput, 'profile' | 'memory' | 'writer' | 'undoneBy' | 'now' | 'zone'> {
  request: PlanRequest;
  /** The plan of the request. */
  plan: Plan;
  /** The changes that the kept profile would make once that plan is written. */
  after: Pick<Plan, 'changes'>;
  /** The caller that carries the plan out. */
  by: Writer;
}

/**
 * Predicts the drift that a plan causes from a kept profile, and the service's response to it. A field that the plan leaves unchanged counts if the
 * profile is about to change it. Pure.
 */
export function foreseenDrift({ request, plan, after, by, ...kept }: ForesightInput): ForeseenDrift[] {
  const { profile } = kept;
  const common = new Set(commonFields(request, profile.request));
  const changed = new Set(openChanges(plan).map(changeName));
  const { drift } = judge({
    ...kept,
    plan: after,
    memory: withoutFailures(kept.memory),
    writer: (name) => (changed.has(name) ? by : kept.writer(name)),
  });
  return drift.flatMap((each) => {
    const { path, key, after: wanted, heal, state, until, message, place } = each;
    const name = changeName(each);
    if (!common.has(name) && !common.has(path)) return [];
    if (!changed.has(name) && state !== 'healing' && state !== 'deferred') return [];
    return [
      {
        ...{ profile: profile.name, path },
        ...defined({ key, after: wanted }),
        ...{ heal, state },
        ...defined({ until, message, place }),
      },
    ];
  });
}

/** A failed heal is retried later. */
function withoutFailures(memory: JudgeInput['memory']): Map<string, FieldMemory> {
  return new Map([...memory].map(([name, { failed: _, ...field }]) => [name, field]));
}

/**
 * Returns the plan of an apply, blocking the changes that a kept profile would revert at once. `planOf`: returns the plan that a request would have
 * now.
 */
export function withSetBackBlocked(
  planned: PlannedDeed,
  request: PartialRequest,
  planOf: (request: PartialRequest) => PlannedDeed,
): PlannedDeed {
  const { plan } = planned;
  const setBack = new Map(
    (plan.drift ?? []).filter(({ state }) => state === 'healing').map((drift) => [changeName(drift), drift]),
  );
  const blocked = openChanges(plan).flatMap((change): Change[] => {
    const drift = setBack.get(changeName(change));
    return drift ? [blockedChange(change, drift)] : [];
  });
  if (blocked.length === 0) return planned;
  const left = planOf(withoutFields(request, blocked));
  const whole = extendPlan(left.plan, { after: blocked });
  const rest = {
    ...(plan.drift ? { drift: plan.drift } : {}),
    ...(plan.tag === undefined ? {} : { tag: tagOf(whole) }),
  };
  return { plan: { ...whole, ...rest }, deed: left.deed };
}

function blockedChange({ action, ...change }: Change, { profile, after, place }: ForeseenDrift): Change {
  const value = after === undefined ? 'removes it again' : `sets it back${valueText(after)}`;
  return {
    ...change,
    action: action === 'replace' ? 'update' : action,
    severity: 'none',
    reason: 'not available',
    blocked: {
      by: 'kept',
      message: `The kept profile ${profile} ${value}${place === undefined ? '' : ` (${place})`}.`,
      advice: `Leave out what ${profile} keeps, change it there and apply that profile, or end its keeping with \`rdctl release ${profile}\`.`,
    },
  };
}

function valueText(value: JsonValue | Sensitive): string {
  const isSecret = typeof value === 'object' && value !== null && 'sensitive' in value;
  return isSecret ? '' : ` to ${JSON.stringify(value)}`;
}
