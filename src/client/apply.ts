import { RdError } from '../errors.ts';
import { type Change, type Plan, type PlanRequest, SEVERITIES } from '../plan/change.ts';
import { extendedPlan } from '../plan/extended-plan.ts';
import { patchOf } from '../plan/patch.ts';
import { SERVICE_START } from '../plan/runtime-changes.ts';
import type { Clock } from '../reconcile/clock.ts';
import type { StatusDocument } from '../reconcile/status-document.ts';
import { fillDefaults } from '../settings/defaults.ts';
import { applyExtensions, changesExtensions } from './apply-extensions.ts';
import { applyForwards, type ForwardsSent, planForwards } from './apply-forwards.ts';
import { refuseBlocked } from './blocked.ts';
import type { Client, SettingsReply, WriteReply } from './client.ts';
import { hasConverged, waitConverged } from './converge.ts';
import { ANY_HOST } from './offline.ts';
import { withOwnPhases } from './own-phases.ts';
import { leavingForwards, mentionsForwards, type WantedForwards } from './port-forwards.ts';
import { withoutLocked } from './skip-locked.ts';

/** How often a plan is made again because somebody else changed the settings in between. */
const MOST_PLANS = 5;

/** What happens on the way, in order; a view shows it. */
export type ApplyEvent =
  | { type: 'planned'; plan: Plan }
  /** Left out because of a lock (`skipLocked`) or the driver (`skipUnsupported`). */
  | { type: 'skipped'; changes: readonly Change[] }
  /** The settings changed between plan and write; the plan is made again. */
  | { type: 'moved' }
  | { type: 'sent'; what: 'settings' | 'power'; answer: string; ignoredKeys: readonly string[] }
  /** Nothing differs, and the backend is in the state ERROR: it is asked to start once more. */
  | { type: 'retrying' }
  /** About to be asked for; fetching its image takes a while. */
  | { type: 'extension'; what: 'install' | 'uninstall'; id: string }
  | ({ type: 'forwards' } & ForwardsSent)
  | { type: 'progress'; status: StatusDocument };

export interface ApplyInput {
  client: Client;
  request: PlanRequest;
  /** What the profile says about port forwards. */
  portForwards: WantedForwards;
  /** Do what locks allow and list the rest, instead of refusing. */
  skipLocked: boolean;
  /** The same for what the driver does not support. */
  skipUnsupported?: boolean;
  /** Wait until the service has converged. */
  wait: boolean;
  /** The service was started for this apply: `again` because nobody had stopped the last one, `idle` with its backend off to the end. */
  started?: 'again' | 'idle';
  /** For the waiting. */
  timeoutMs: number;
  /** What is left of it when the waiting begins, where it counts from an earlier moment on. */
  leftMs?(): number;
  clock: Clock;
  signal: AbortSignal;
  /** Asked before anything is destroyed, and again only about a plan that became worse. */
  consent(plan: Plan): Promise<boolean>;
  /** Last look at plan, live settings and status before the first write; may throw to stop. Also called when nothing will be written. */
  inspect?(plan: Plan, live: SettingsReply, status: StatusDocument): Promise<void>;
  onEvent(event: ApplyEvent): void;
  /** A saved plan is obeyed exactly: what moved is an error (`ERR_PLAN_STALE`), never a new plan. */
  exact?: boolean;
}

/** What an apply did. `outcome` is `unchanged` when nothing was sent. */
export interface ApplyOutcome {
  outcome: 'unchanged' | 'applied' | 'sent';
  plan: Plan;
  skipped: readonly Change[];
  /** Writes that reached the service. */
  writes: number;
  /** Its phases are those of this apply. */
  status: StatusDocument;
  /** The backend is stopped, and the profile leaves that as it is. */
  staysStopped: boolean;
  /** Milliseconds from the first write to the end; the time to decide does not count. */
  ms: number;
}

/**
 * The client loop (design, section 2): plan, at most one `PUT /v1/settings` with only what differs, the power state if it
 * differs (a stop before the settings, a start after them), then wait, then port forwards, then extensions. A backend that gave up is asked to try again. Throws `ERR_SETTING_LOCKED`, `ERR_SETTING_UNSUPPORTED`, `ERR_CONSENT_NEEDED`, `ERR_PLAN_STALE` before
 * anything is written, and what `waitConverged` throws afterwards.
 */
export async function applyDesired(input: ApplyInput): Promise<ApplyOutcome> {
  const { clock, onEvent } = input;
  let approved: Plan | undefined;
  let before: Writes = { count: 0, generation: 0 };
  let begun: number | undefined;
  let found: StatusDocument | undefined;
  for (let attempt = 1; attempt <= MOST_PLANS; attempt += 1) {
    if (input.signal.aborted) throw new RdError('ERR_CANCELLED', 'Interrupted before anything was changed.');
    const { plan, live, request, skipped } = await makePlan(input);
    onEvent({ type: 'planned', plan });
    if (skipped.length > 0) onEvent({ type: 'skipped', changes: skipped });
    refuseBlocked(plan);
    if (needsConsent(plan) && (!approved || isWorse(plan, approved)) && !(await input.consent(plan))) {
      throw consentNeeded(plan);
    }
    approved = plan;
    const now = await input.client.status({ signal: input.signal });
    found ??= now;
    await input.inspect?.(plan, live, now);
    begun ??= clock.now();
    const sent = await write(input, plan, request, live, before);
    before = sent;
    if (sent.moved) continue;
    const settled = await finish(input, plan, sent, found);
    // Before the extensions: where one of those fails, everything else has been applied.
    const forwards = await forwardStage(input, plan);
    const { status, writes: finished } = await extensionStage(input, plan, settled, found);
    // What cannot be seen is sent again every time, and is no change for that.
    const writes = finished + (forwards.again ? 0 : forwards.names.length);
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
  throw new RdError('ERR_PLAN_STALE', `The settings changed under each of ${MOST_PLANS} plans; ${unsent(before)}.`, {
    advice: 'See who else changes them, and apply again.',
  });
}

/** True when a plan destroys something that cannot be had back. */
function needsConsent(plan: Plan): boolean {
  return plan.summary.resets > 0 || plan.blastRadius.some((item) => item.lost);
}

/** True when a plan costs more than the one that was agreed to. */
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

async function makePlan(input: ApplyInput): Promise<{
  plan: Plan;
  live: SettingsReply;
  request: PlanRequest;
  skipped: readonly Change[];
}> {
  // Settings first: if they change before the plan is made, the write fails on the older tag and the plan is made again.
  const live = await input.client.settings();
  const made = async (request: PlanRequest, forwards: WantedForwards) => {
    const plan = await planForwards(input.client, await input.client.plan(request), forwards);
    // For a stop the service is a means: nothing that was to run is brought back.
    const again = input.started === 'again' && request.state !== 'stopped';
    return again ? extendedPlan(plan, { before: [SERVICE_START] }) : plan;
  };
  const plan = await made(input.request, input.portForwards);
  const skipped = plan.changes.filter(({ blocked }) =>
    blocked?.by === 'lock' ? input.skipLocked : blocked && input.skipUnsupported,
  );
  if (skipped.length === 0) return { plan, live, request: input.request, skipped };
  const request = withoutLocked(input.request, skipped);
  const wanted = leavingForwards(input.portForwards, skipped);
  return { plan: await made(request, wanted), live, request, skipped };
}

function consentNeeded(plan: Plan): RdError {
  return new RdError('ERR_CONSENT_NEEDED', 'This plan destroys data, and nobody agreed to that; nothing was changed.', {
    details: plan.blastRadius.filter((item) => item.lost).map((item) => item.what),
    advice: 'Look at it with `rdctl plan`, then apply with --allow-reset.',
  });
}

/** What was sent. `generation` is the version of the desired state after it, 0 when the service did not tell. */
interface Writes {
  count: number;
  generation: number;
}

/**
 * The writes that were made, those `before` included; `moved` when the settings are no longer those of the plan. A backend that is
 * to be off is asked to stop first, so that no setting restarts what stops anyway; one that is to run gets its settings first,
 * so that it starts once.
 */
async function write(
  input: ApplyInput,
  plan: Plan,
  request: PlanRequest,
  live: SettingsReply,
  before: Writes,
): Promise<Writes & { moved: boolean }> {
  const { client, signal, onEvent } = input;
  let { count, generation } = before;
  const sent = (what: 'settings' | 'power', reply: WriteReply) => {
    count += 1;
    generation = Math.max(generation, reply.generation ?? 0);
    onEvent({ type: 'sent', what, answer: reply.text, ignoredKeys: reply.ignoredKeys });
  };
  const power = plan.changes.some((change) => change.path === 'state') ? request.state : 'unmanaged';
  const stop = async () => sent('power', await client.setBackendState('STOPPED', { signal }));
  // A foreign application may start its backend to take settings, so there the stop comes last.
  if (power === 'stopped' && !client.foreign) await stop();
  const patch = patchOf(plan, request, fillDefaults(live.settings, ANY_HOST));
  if (patch) {
    try {
      sent(
        'settings',
        await client.putSettings(patch, { signal, ...(live.etag === undefined ? {} : { ifMatch: live.etag }) }),
      );
    } catch (error) {
      if (!(error instanceof RdError) || error.code !== 'ERR_PRECONDITION_FAILED') throw error;
      if (input.exact) {
        const text = `The settings changed since the plan was checked; ${unsent({ count, generation })}.`;
        throw new RdError('ERR_PLAN_STALE', text, { cause: error, advice: 'Make a new plan.' });
      }
      onEvent({ type: 'moved' });
      return { count, generation, moved: true };
    }
  }
  if (power === 'started') sent('power', await client.setBackendState('STARTED', { signal }));
  if (power === 'stopped' && client.foreign) await stop();
  return { count, generation, moved: false };
}

/** Only a stop is ever sent before settings that then turn out to have moved. */
function unsent({ count }: Writes): string {
  return count === 0 ? 'nothing was changed' : 'the backend was asked to stop, and no setting was changed';
}

async function forwardStage(input: ApplyInput, plan: Plan): Promise<ForwardsSent> {
  const { client, portForwards, signal } = input;
  if (!mentionsForwards(portForwards)) return { names: [], again: false };
  const sent = await applyForwards(client, plan, portForwards, signal);
  if (sent.names.length > 0) input.onEvent({ type: 'forwards', ...sent });
  return sent;
}

interface Finished {
  status: StatusDocument;
  writes: number;
}

/** Each extension is a change of the settings of its own, so there is a last thing to wait for. */
async function extensionStage(
  input: ApplyInput,
  plan: Plan,
  finished: Finished,
  found: StatusDocument,
): Promise<Finished> {
  if (!changesExtensions(plan)) return finished;
  const { client, clock, signal, onEvent } = input;
  const begun = clock.now();
  const leftMs = input.leftMs ?? (() => input.timeoutMs - (clock.now() - begun));
  const onBegin = (what: 'install' | 'uninstall', id: string) => onEvent({ type: 'extension', what, id });
  const count = await applyExtensions({ client, plan, clock, signal, leftMs, onBegin });
  return finish(input, plan, { count: finished.writes + count, generation: 0 }, found);
}

/** Extensions need a running engine, so a plan with some is waited for in any case. */
async function finish(input: ApplyInput, plan: Plan, sent: Writes, found: StatusDocument): Promise<Finished> {
  const { client, onEvent } = input;
  let writes = sent.count;
  let status = await client.status();
  let generation = Math.max(status.generation, sent.generation);
  // Everything is as asked, and an earlier attempt was given up. What stood in its way may be gone: ask once more.
  if (writes === 0 && status.backendState === 'ERROR' && status.power === 'started') {
    onEvent({ type: 'retrying' });
    const reply = await client.setBackendState('STARTED', { signal: input.signal });
    writes += 1;
    generation = Math.max(generation, reply.generation ?? 0);
    status = await client.status();
  }
  const wait = input.started !== 'idle' && (input.wait || changesExtensions(plan));
  if (!wait || hasConverged(status, generation)) return { status, writes };
  status = await waitConverged({
    read: () => client.status(),
    generation,
    timeoutMs: input.leftMs?.() ?? input.timeoutMs,
    askedMs: input.timeoutMs,
    clock: input.clock,
    signal: input.signal,
    onStatus: (next) => onEvent({ type: 'progress', status: withOwnPhases(next, found) }),
  });
  return { status, writes };
}
