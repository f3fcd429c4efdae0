import { RdError } from '../errors.ts';
import type { Clock } from '../os/clock.ts';
import { refuseBlocked } from '../plan/blocks.ts';
import { type Change, type Plan, type PlanRequest, SEVERITIES } from '../plan/change.ts';
import { forwardsWithout } from '../plan/port-forwards.ts';
import { SERVICE_START } from '../plan/runtime-changes.ts';
import { extendedPlan } from '../plan/summary.ts';
import type { ApplyStep, StatusDocument } from '../reconcile/status-document.ts';
import { removeLeaf } from '../settings/leaf-paths.ts';
import { carryOut, waitForEarlierApply, withOwnPhases } from './carry-out.ts';
import type { Client, SettingsReply } from './client.ts';

/** Maximum replans after concurrent settings changes. */
const MOST_PLANS = 5;

/** Progress of an apply, in order, for the view. */
export type ApplyEvent =
  | { type: 'planned'; plan: Plan }
  /** Left out because of a lock (`skipLocked`) or the driver (`skipUnsupported`). */
  | { type: 'skipped'; changes: readonly Change[] }
  /** The settings changed between plan and write, so a new plan is made. */
  | { type: 'moved' }
  /** An earlier apply, possibly abandoned by its client, is still running in the service and is waited for. */
  | { type: 'earlier' }
  | { type: 'sent'; what: 'settings' | 'power'; ignoredKeys: readonly string[] }
  /** Nothing differs, and the backend is in state ERROR: it is started once more. */
  | { type: 'retrying' }
  /** A step began. For a forward in another application: it was sent, `again` because it may have existed. */
  | { type: 'step'; step: ApplyStep; again?: true }
  | { type: 'progress'; status: StatusDocument };

export interface ApplyInput {
  client: Client;
  /** Read before the first plan. */
  status: StatusDocument;
  request: PlanRequest;
  /** Apply what locks allow and list the rest, instead of failing. */
  skipLocked: boolean;
  /** The same for settings that the driver does not support. */
  skipUnsupported?: boolean;
  /** Wait until the service has converged. */
  wait: boolean;
  /**
   * The service was started for this apply: `again` after one that was not stopped cleanly, `idle` with its backend off
   * throughout.
   */
  started?: 'again' | 'idle';
  /** Limit for the wait. */
  timeoutMs: number;
  /** Time left when the wait begins, if the limit started earlier. */
  leftMs?(): number;
  clock: Clock;
  signal: AbortSignal;
  /** Called before anything is destroyed, and again only when a replan is worse. */
  consent(plan: Plan): Promise<boolean>;
  /** Last check of the plan before the first write; may throw to stop. Also called when nothing will be written. */
  inspect?(plan: Plan): Promise<void>;
  onEvent(event: ApplyEvent): void;
  /** Apply a saved plan exactly: drift is an error (`ERR_PLAN_STALE`), never a replan. */
  exact?: boolean;
}

/** The result of an apply. `outcome` is `unchanged` when nothing was sent. */
export interface ApplyOutcome {
  outcome: 'unchanged' | 'applied' | 'sent';
  plan: Plan;
  skipped: readonly Change[];
  /** Writes that reached the service. */
  writes: number;
  /** Its phases are those of this apply. */
  status: StatusDocument;
  /** The backend is stopped, and the profile does not manage power. */
  staysStopped: boolean;
  /** Milliseconds from the first write to the end, without the time spent at the prompt. */
  ms: number;
}

/**
 * Plans, asks for consent, and has the plan carried out: by the service, which continues without this client, or step
 * by step where another application only accepts settings. Then waits. A backend that gave up is retried. Throws
 * `ERR_SETTING_LOCKED`, `ERR_SETTING_UNSUPPORTED`, `ERR_CONSENT_NEEDED`, `ERR_PLAN_STALE` before anything is written,
 * and the errors of `waitConverged` and of the steps afterwards.
 */
export async function applyDesired(input: ApplyInput): Promise<ApplyOutcome> {
  const { clock, onEvent } = input;
  let approved: Plan | undefined;
  let begun: number | undefined;
  let found = input.status;
  for (let attempt = 1; attempt <= MOST_PLANS; attempt += 1) {
    if (input.signal.aborted) throw new RdError('ERR_CANCELLED', 'Interrupted before anything was changed.');
    if (found.apply?.state === 'running') found = await waitForEarlierApply(input);
    const made = await makePlan(input);
    const { plan, request, skipped } = made;
    onEvent({ type: 'planned', plan });
    if (skipped.length > 0) onEvent({ type: 'skipped', changes: skipped });
    refuseBlocked(plan);
    if (needsConsent(plan) && (!approved || isWorse(plan, approved)) && !(await input.consent(plan))) {
      throw consentNeeded(plan);
    }
    approved = plan;
    await input.inspect?.(plan);
    begun ??= clock.now();
    const done = made.live
      ? await (await import('./foreign-apply.ts')).carryOutForeign(input, { plan, request, live: made.live })
      : await carryOut(input, plan, request, found);
    if (done === 'busy') {
      found = await waitForEarlierApply(input);
      continue;
    }
    if (done === 'moved' && input.exact) {
      throw new RdError('ERR_PLAN_STALE', 'The settings changed since the plan was checked; nothing was changed.', {
        advice: 'Make a new plan.',
      });
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
      status: withOwnPhases(status, found),
      staysStopped,
      ms: clock.now() - begun,
    };
  }
  throw new RdError('ERR_PLAN_STALE', `The settings changed under each of ${MOST_PLANS} plans; nothing was changed.`, {
    advice: 'See who else changes them, and apply again.',
  });
}

/** True when a plan destroys data irrecoverably. */
function needsConsent(plan: Plan): boolean {
  return plan.summary.resets > 0 || plan.blastRadius.some((item) => item.lost);
}

/** True when a plan costs more than the agreed one. */
export function isWorse(plan: Plan, agreed: Plan): boolean {
  const rank = (one: Plan) => SEVERITIES.indexOf(one.summary.severity);
  const lost = (one: Plan) => one.blastRadius.filter((item) => item.lost).map((item) => item.what);
  const known = lost(agreed);
  return (
    rank(plan) > rank(agreed) ||
    plan.summary.resets > agreed.summary.resets ||
    lost(plan).some((what) => !known.includes(what))
  );
}

function consentNeeded(plan: Plan): RdError {
  return new RdError('ERR_CONSENT_NEEDED', 'This plan destroys data, and nobody agreed to that; nothing was changed.', {
    details: plan.blastRadius.filter((item) => item.lost).map((item) => item.what),
    advice: 'Look at it with `rdctl plan`, then apply with --allow-reset.',
  });
}

async function makePlan(input: ApplyInput): Promise<{
  plan: Plan;
  request: PlanRequest;
  skipped: readonly Change[];
  /** For another application: the settings before the plan, whose stale tag fails a write after a change. */
  live?: SettingsReply;
}> {
  const { client } = input;
  const live = client.foreign ? { live: await client.settings() } : {};
  const made = async (request: PlanRequest) => {
    const plan = await client.plan(request);
    // For a stop, the service is only a means: it does not bring back what ran.
    const again = input.started === 'again' && request.state !== 'stopped';
    return again ? extendedPlan(plan, { before: [SERVICE_START] }) : plan;
  };
  const plan = await made(input.request);
  const skipped = plan.changes.filter(({ blocked }) =>
    blocked?.by === 'lock' ? input.skipLocked : blocked && input.skipUnsupported,
  );
  if (skipped.length === 0) return { plan, request: input.request, skipped, ...live };
  const request = withoutChanges(input.request, skipped);
  return { plan: await made(request), request, skipped, ...live };
}

/** The request without what these changes ask for; a map is dropped as a whole, because it locks as a whole. */
function withoutChanges(request: PlanRequest, changes: readonly Change[]): PlanRequest {
  const paths = new Set(changes.map((change) => change.path));
  const settings = structuredClone(request.settings);
  for (const path of paths) if (path !== 'state') removeLeaf(settings, path);
  const { wishes, portForwards } = request;
  return {
    settings,
    state: paths.has('state') ? 'unmanaged' : request.state,
    prune: request.prune.filter((path) => !paths.has(path)),
    ...(wishes ? { wishes: wishes.filter((path) => !paths.has(path)) } : {}),
    ...(portForwards ? { portForwards: forwardsWithout(portForwards, changes) } : {}),
  };
}
