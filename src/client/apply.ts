import type { Clock } from '../clock.ts';
import { RdError } from '../errors.ts';
import { refuseBlocked } from '../plan/blocks.ts';
import { type Change, type Plan, type PlanRequest, SEVERITIES } from '../plan/change.ts';
import { extendedPlan } from '../plan/extended-plan.ts';
import { extensionSteps } from '../plan/extension-changes.ts';
import { forwardsWithout } from '../plan/port-forwards.ts';
import { SERVICE_START } from '../plan/runtime-changes.ts';
import type { Phase } from '../reconcile/status.ts';
import type { ApplyStep, StatusDocument } from '../reconcile/status-document.ts';
import { removeLeaf } from '../settings/leaf-paths.ts';
import type { Client, SettingsReply } from './client.ts';
import { hasConverged, waitConverged, watched } from './converge.ts';

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
      ? await carryOutForeign(input, { plan, request, live: made.live })
      : await carryOut(input, plan, request, found);
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

interface Done {
  status: StatusDocument;
  writes: number;
}

/** Has the service carry out the plan, and waits for convergence as requested. */
async function carryOut(
  input: ApplyInput,
  plan: Plan,
  request: PlanRequest,
  found: StatusDocument,
): Promise<Done | 'moved'> {
  const { client, onEvent, signal } = input;
  const gaveUp = found.backendState === 'ERROR' && found.power === 'started';
  const { generation: planned } = plan;
  if (plan.changes.length === 0 && !gaveUp) {
    const asFound = input.started === 'idle' || hasConverged(found, planned);
    return { status: asFound ? found : await settle(input, { generation: planned, found }), writes: 0 };
  }
  if (plan.tag === undefined) {
    throw new RdError('ERR_NOT_FOUND', 'The running service is an older release, which cannot carry out a plan.', {
      advice: 'Stop it with `rdctl shutdown` and apply again: that starts the new release.',
    });
  }
  const reply = await client.apply(request, plan.tag, { signal }).catch((error: unknown) => {
    if (error instanceof RdError && STALE_PLAN_ERRORS.has(error.code)) return 'moved' as const;
    throw error;
  });
  if (reply === 'moved') return reply;
  for (const what of reply.sent) {
    onEvent(what === 'retry' ? { type: 'retrying' } : { type: 'sent', what, ignoredKeys: [] });
  }
  const { generation } = reply;
  const status = await settle(input, { generation, found, ...(reply.continues ? { work: generation } : {}) });
  const steps = status.apply?.generation === generation ? status.apply.steps.length : 0;
  return { status, writes: reply.sent.length + steps };
}

/** A concurrent write, or an earlier apply still running: either way a new plan would differ. */
const STALE_PLAN_ERRORS: ReadonlySet<string> = new Set(['ERR_PLAN_STALE', 'ERR_BACKEND_LOCKED']);

/** `work`: the generation of an apply whose steps must finish as well. */
interface Aim {
  generation: number;
  found: StatusDocument;
  work?: number;
}

/** Waits and returns the status to report. Throws a step's failure once everything else has converged. */
async function settle(input: ApplyInput, { generation, found, work }: Aim): Promise<StatusDocument> {
  const { client, clock, signal, onEvent, started } = input;
  const idle = started === 'idle';
  if (idle ? work === undefined : !input.wait) return client.status();
  let shown = 0;
  const feed = watched(client, { clock, signal });
  try {
    const status = await waitConverged({
      feed,
      generation,
      ...(idle ? { converged: () => true } : {}),
      isOver: (now) => work === undefined || isWorkOver(now, work),
      timeoutMs: input.leftMs?.() ?? input.timeoutMs,
      askedMs: input.timeoutMs,
      clock,
      signal,
      onStatus(next) {
        if (work !== undefined && next.apply?.generation === work) {
          for (const step of next.apply.steps.slice(shown)) onEvent({ type: 'step', step });
          shown = Math.max(shown, next.apply.steps.length);
        }
        onEvent({ type: 'progress', status: withOwnPhases(next, found) });
      },
    });
    if (status.apply?.generation === work && status.apply?.error) throw stepFailure(status.apply.error);
    return status;
  } finally {
    feed.close();
  }
}

/** Throws when the service was restarted meanwhile and has lost the steps. */
function isWorkOver({ apply, generation }: StatusDocument, work: number): boolean {
  if (apply && apply.generation >= work) return apply.generation > work || apply.state !== 'running';
  if (generation <= work) return false;
  throw new RdError('ERR_CONNECTION', 'The service was started anew while it was at work.', {
    advice: 'What was written is kept. Apply again: it finishes.',
  });
}

function stepFailure({ code, message, ...rest }: NonNullable<NonNullable<StatusDocument['apply']>['error']>): RdError {
  return new RdError(code, message, rest);
}

/** Waits for the steps of an earlier apply, so that the next plan sees their result. */
async function waitForEarlierApply(input: ApplyInput): Promise<StatusDocument> {
  const { client, clock, signal, onEvent } = input;
  onEvent({ type: 'earlier' });
  const feed = watched(client, { clock, signal });
  try {
    return await waitConverged({
      feed,
      generation: 0,
      converged: () => true,
      clock,
      signal,
      isOver: ({ apply }) => apply?.state !== 'running',
      timeoutMs: input.leftMs?.() ?? input.timeoutMs,
      askedMs: input.timeoutMs,
      onStatus: (status) => onEvent({ type: 'progress', status: withOwnPhases(status, input.status) }),
    });
  } finally {
    feed.close();
  }
}

/** Carries out the plan step by step. Extensions need a running engine, so a plan with extensions always waits. */
async function carryOutForeign(
  input: ApplyInput,
  made: { plan: Plan; request: PlanRequest; live: SettingsReply },
): Promise<Done | 'moved'> {
  const { changeForeignExtensions, sendForeignForwards, writeForeign } = await import('./foreign-apply.ts');
  const begun = input.clock.now();
  const leftMs = input.leftMs ?? (() => input.timeoutMs - (input.clock.now() - begun));
  const sent = await writeForeign(input, made);
  if (sent.moved) return 'moved';
  let writes = sent.count;
  const extensions = extensionSteps(made.plan).length > 0;
  const { client, onEvent, signal } = input;
  let status = await client.status();
  // Converged settings but an abandoned attempt: its cause may be gone, so retry once.
  if (writes === 0 && status.backendState === 'ERROR' && status.power === 'started') {
    onEvent({ type: 'retrying' });
    await client.setBackendState('STARTED', { signal });
    writes += 1;
    status = await client.status();
  }
  const waiting = { ...input, wait: input.wait || extensions, leftMs };
  const settled = () => settle(waiting, { generation: status.generation, found: status });
  status = await settled();
  await sendForeignForwards(input, made.request);
  // Last, so that a failure here leaves everything else applied.
  if (extensions) {
    writes += await changeForeignExtensions(input, made.plan, leftMs);
    status = await client.status();
    status = await settled();
  }
  return { status, writes };
}

/**
 * Removes from a status the phases that were over when `found` was read: a service also reports those of earlier
 * changes. A phase in progress stays, because the apply waits for it.
 */
function withOwnPhases(status: StatusDocument, found: StatusDocument): StatusDocument {
  const nameOf = ({ name, startedAt }: Phase) => `${name} ${startedAt}`;
  const earlier = new Set(found.phases.filter(({ ms }) => ms !== undefined).map(nameOf));
  return { ...status, phases: status.phases.filter((phase) => !earlier.has(nameOf(phase))) };
}
