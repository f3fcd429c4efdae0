import { RdError } from '../errors.ts';
import { refuseBlocked } from '../plan/blocks.ts';
import { type Change, type Loss, type Plan, type PlanRequest, SEVERITIES } from '../plan/change.ts';
import { type Consent, lossesOf, lostItems } from '../plan/losses.ts';
import { forwardsWithout } from '../plan/port-forwards.ts';
import { SERVICE_START } from '../plan/runtime-changes.ts';
import { extendPlan } from '../plan/summary.ts';
import { partsOf, treeOf } from '../settings/blocks.ts';
import { removeLeaf } from '../settings/leaf-paths.ts';
import {
  type ApplyInput,
  type ApplyOutcome,
  carryOut,
  type MadePlan,
  waitForEarlierApply,
  withOwnPhases,
} from './carry-out.ts';

/** Maximum replans after concurrent settings changes. */
const MAX_PLANS = 5;

/**
 * Plans, asks for consent, and has the plan carried out: by the service, which continues without this client, or step by step if another application
 * only accepts settings. Then waits. A backend that gave up is retried.
 * Throws `ERR_SETTING_LOCKED`, `ERR_SETTING_UNSUPPORTED`, `ERR_SETTING_KEPT`, `ERR_CONSENT_NEEDED`, `ERR_PLAN_STALE` before anything is written, and
 * the errors of `waitConverged` and of the steps afterwards.
 */
export async function applyDesired(input: ApplyInput): Promise<ApplyOutcome> {
  const { clock, onEvent } = input;
  let approved: Plan | undefined;
  let consent: Consent | undefined;
  let begun: number | undefined;
  let found = input.status;
  for (let attempt = 1; attempt <= MAX_PLANS; attempt += 1) {
    if (input.signal.aborted) throw new RdError('ERR_CANCELLED', 'Interrupted before anything was changed.');
    if (found.apply?.state === 'running') found = await waitForEarlierApply(input);
    const made = await makePlan(input);
    const { plan, request, skipped } = made;
    onEvent({ type: 'planned', plan });
    if (skipped.length > 0) onEvent({ type: 'skipped', changes: skipped });
    refuseBlocked(plan);
    if (needsConsent(plan) && (!approved || isWorse(plan, approved))) {
      const answer = await input.consent(plan);
      if ('missing' in answer) throw consentNeeded(plan, answer.missing);
      consent = answer;
    }
    approved = plan;
    await input.inspect?.(plan, made.live);
    begun ??= clock.now();
    const done = input.client.carryOut
      ? await input.client.carryOut(input, made)
      : await carryOut(input, { ...made, ...(consent ? { consent } : {}) }, found);
    if (done === 'busy') {
      found = await waitForEarlierApply(input);
      continue;
    }
    if (done === 'moved' && input.exact) {
      throw new RdError(
        'ERR_PLAN_STALE',
        'The settings or the power state changed since the plan was checked; nothing was changed.',
        {
          advice: 'Make a new plan.',
        },
      );
    }
    if (done === 'moved') {
      onEvent({ type: 'moved' });
      continue;
    }
    const { status, writes } = done;
    const unchanged = writes === 0 && plan.changes.length === 0;
    const outcome = unchanged ? 'unchanged' : input.wait || input.started === 'idle' ? 'applied' : 'sent';
    const staysStopped = request.state === 'unmanaged' && (input.started === 'idle' || status.power === 'stopped');
    return {
      outcome,
      plan,
      skipped,
      writes,
      ...(input.keep ? { kept: input.keep.name } : {}),
      status: withOwnPhases(status, found),
      staysStopped,
      ms: clock.now() - begun,
    };
  }
  throw new RdError(
    'ERR_PLAN_STALE',
    `The settings changed during each of ${MAX_PLANS} attempts; nothing was changed.`,
    {
      advice: 'Find out what else is changing the settings, then apply again.',
    },
  );
}

/** True when a plan destroys data irrecoverably. */
function needsConsent(plan: Plan): boolean {
  return lossesOf(plan).length > 0;
}

/** True when a plan costs more than the agreed one. */
export function isWorse(plan: Plan, agreed: Plan): boolean {
  const rank = (one: Plan) => SEVERITIES.indexOf(one.summary.severity);
  const lost = (one: Plan) => lostItems(one).map((item) => item.what);
  const known = lost(agreed);
  return (
    rank(plan) > rank(agreed) ||
    plan.summary.resets > agreed.summary.resets ||
    lost(plan).some((what) => !known.includes(what))
  );
}

function consentNeeded(plan: Plan, missing: readonly Loss[]): RdError {
  return new RdError('ERR_CONSENT_NEEDED', 'This plan destroys data and requires consent; nothing was changed.', {
    details: lostItems(plan)
      .filter(({ consent = 'kubernetes-reset' }) => missing.includes(consent))
      .map(({ what, consent = 'kubernetes-reset' }) => `${what} (${consent})`),
    advice: `Review it with \`rdctl plan\`, then add ${missing.map((name) => `--allow ${name}`).join(' ')}, or --allow-reset for all of it.`,
  });
}

type Skips = Pick<ApplyInput, 'skipLocked' | 'skipUnsupported'>;

/**
 * Refuses a plan with blocked changes that are not to be skipped. Throws `ERR_SETTING_LOCKED`, `ERR_SETTING_UNSUPPORTED`,
 * `ERR_SETTING_KEPT`.
 */
export function refuseUnskipped(plan: Plan, skips: Skips): void {
  refuseBlocked({ ...plan, changes: plan.changes.filter((change) => !isSkipped(change, skips)) });
}

function isSkipped({ blocked }: Change, { skipLocked, skipUnsupported }: Skips): boolean {
  return blocked?.by === 'lock' ? skipLocked : blocked?.by === 'unsupported' && skipUnsupported === true;
}

/** Plans the rest of the request, and returns the plan with the state that it was compared with. */
async function makePlan(input: ApplyInput): Promise<MadePlan> {
  const { client, request, started, keep, how } = input;
  const maintenance = keep?.now ? undefined : keep?.maintenance;
  const made = async (asked: PlanRequest) => {
    const { plan, ...rest } = await client.planWithLive(asked, {
      ...(maintenance ? { maintenance } : {}),
      ...(keep ? { kept: keep.name } : {}),
      ...(how ? { how } : {}),
    });
    // A stop needs the service only as a means, so what ran before is not started again.
    const again = started === 'again' && asked.state !== 'stopped';
    return { plan: again ? extendPlan(plan, { before: [SERVICE_START] }) : plan, ...rest, request: asked };
  };
  const whole = await made(request);
  const skipped = whole.plan.changes.filter((change) => isSkipped(change, input));
  return skipped.length === 0 ? { ...whole, skipped } : { ...(await made(withoutChanges(request, skipped))), skipped };
}

/** Returns a request, which has no `leaveOut`, without the fields of these changes. A map is dropped as a whole, because it locks as a whole. */
function withoutChanges(request: PlanRequest, changes: readonly Change[]): PlanRequest {
  const paths = new Set(changes.map((change) => change.path));
  const tree = structuredClone(treeOf(request));
  for (const path of paths) if (path !== 'state') removeLeaf(tree, path);
  const { wishes, portForwards } = request;
  return {
    ...request,
    ...partsOf(tree),
    state: paths.has('state') ? 'unmanaged' : request.state,
    prune: request.prune.filter((path) => !paths.has(path)),
    ...(wishes ? { wishes: wishes.filter((path) => !paths.has(path)) } : {}),
    ...(portForwards ? { portForwards: forwardsWithout(portForwards, changes) } : {}),
  };
}
