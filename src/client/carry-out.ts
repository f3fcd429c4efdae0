import { RdError } from '../errors.ts';
import { defined } from '../json.ts';
import type { Clock } from '../os/clock.ts';
import type { Change, LiveState, Loss, Plan, PlanRequest } from '../plan/change.ts';
import type { Deed } from '../plan/deed.ts';
import type { StatedAuthor } from '../plan/history.ts';
import type { SentKeep } from '../plan/kept.ts';
import type { Consent } from '../plan/losses.ts';
import type { OnFailure } from '../plan/rollback.ts';
import type { Phase } from '../reconcile/contract.ts';
import type { ApplyStep, StatusDocument } from '../reconcile/status-document.ts';
import type { EventClient, LifecycleClient, PlanClient } from './contract.ts';
import { hasConverged, waitConverged, watchStatus } from './converge.ts';
import { refuseSuperseded } from './overtaken.ts';
import { transactionAt } from './transaction-wait.ts';
import { areFilesDone, hasFailedFiles, userFilesError } from './user-files.ts';

/** Progress of an apply, in order, for the view. */
export type ApplyEvent =
  | { type: 'planned'; plan: Plan }
  /** Changes left out because of a lock (`skipLocked`) or the driver (`skipUnsupported`). */
  | { type: 'skipped'; changes: readonly Change[] }
  /** The settings changed between plan and write, so a new plan is made. */
  | { type: 'moved' }
  /** An earlier apply, possibly abandoned by its client, is still running in the service and is waited for. */
  | { type: 'earlier' }
  /** A snapshot was made before data is destroyed. */
  | { type: 'covered'; snapshot: string }
  | { type: 'sent'; what: 'settings' | 'power'; ignoredKeys: readonly string[] }
  /** Nothing differs, and the backend is in state ERROR: it is started once more. */
  | { type: 'retrying' }
  /** Files of the user that could not be changed have been tried again. */
  | { type: 'files' }
  /** The change failed, and the service goes back to an earlier generation. */
  | { type: 'returning'; to: number }
  /** A step began. For a forward in another application: it was sent, `again` because it may have existed. */
  | { type: 'step'; step: ApplyStep; again?: true }
  | { type: 'progress'; status: StatusDocument };

/** The calls to a server that an apply makes. */
export interface ApplyClient
  extends Pick<PlanClient, 'planWithLive' | 'apply' | 'history'>,
    Pick<LifecycleClient, 'status'>,
    Pick<EventClient, 'watch'> {
  /** Carries the plan out step by step. Present only where the server has no apply of its own. */
  carryOut?(input: ApplyInput, made: MadePlan): Promise<Carried>;
}

export interface ApplyInput {
  client: ApplyClient;
  /** Status that was read before the first plan. */
  status: StatusDocument;
  request: PlanRequest;
  /** Returns the author for the history; called only before something is sent. */
  author?(changes: readonly Change[]): Promise<StatedAuthor>;
  /** Whether the service undoes a change that makes the backend fail; `return`, a rollback, by default. */
  onFailure?: OnFailure;
  /** Set to have the service keep the profile. */
  keep?: SentKeep;
  /** Kind of the apply, unless it is that of a profile. */
  how?: 'rollback';
  /** Whether to apply the changes that locks allow and list the rest, instead of failing. */
  skipLocked: boolean;
  /** Whether to apply the changes that the driver supports and list the rest, instead of failing. */
  skipUnsupported?: boolean;
  /** Whether to wait until the service has converged. */
  wait: boolean;
  /** Set if the service was started for this apply: `again` after one that was not stopped cleanly, `idle` with its backend off throughout. */
  started?: 'again' | 'idle';
  /** Milliseconds that the wait may take. */
  timeoutMs: number;
  /** Returns the milliseconds left when the wait begins, if the limit started earlier. */
  leftMs?(): number;
  clock: Clock;
  signal: AbortSignal;
  /** Called before anything is destroyed, and again only when a replan is worse. Returns the losses that it lacks consent to, if any. */
  consent(plan: Plan): Promise<Consent | { missing: Loss[] }>;
  /** Last check of the plan before the first write; may throw to stop. Also called when nothing will be written. */
  inspect?(plan: Plan, live: LiveState): Promise<void>;
  onEvent(event: ApplyEvent): void;
  /** Whether to apply a saved plan exactly: drift is an error (`ERR_PLAN_STALE`), never a replan. */
  exact?: boolean;
}

/** The result of an apply. `outcome` is `unchanged` when nothing was sent. */
export interface ApplyOutcome {
  outcome: 'unchanged' | 'applied' | 'sent';
  plan: Plan;
  skipped: readonly Change[];
  /** Number of writes that reached the service. */
  writes: number;
  /** Final status, with the phases of this apply only. */
  status: StatusDocument;
  /** Name of the profile that the service keeps, since this apply or an earlier one. */
  kept?: string;
  /** Whether the backend is stopped, and the profile does not manage power. */
  staysStopped: boolean;
  /** Milliseconds from the first write to the end, without the time spent at the prompt. */
  ms: number;
}

export interface MadePlan {
  plan: Plan;
  /** The state that the plan was compared with. */
  live: LiveState;
  /** The request without skipped changes. */
  request: PlanRequest;
  skipped: readonly Change[];
  /** Steps for the client; absent if the service carries the plan out. */
  deed?: Deed;
  /** Consent to the losses of the plan, if it has any. */
  consent?: Consent;
}

/**
 * The result of carrying out a plan. Nothing was written for `moved`, because a plan made now differs, or `busy`, because an earlier apply is
 * running.
 */
export type Carried = Done | 'moved' | 'busy';

interface Done {
  status: StatusDocument;
  writes: number;
}

/** Has the service carry out the plan, and waits for convergence as requested. */
export async function carryOut(
  input: ApplyInput,
  { plan, request, consent, skipped }: MadePlan,
  found: StatusDocument,
): Promise<Carried> {
  const { client, onEvent, signal } = input;
  const gaveUp = found.backendState === 'ERROR' && found.power === 'started';
  const { generation: planned } = plan;
  const { keep } = input;
  if (plan.changes.length === 0 && !gaveUp && !keep && !hasFailedFiles(found)) {
    const asFound = (input.started === 'idle' || hasConverged(found, planned)) && areFilesDone(found, planned);
    return {
      status: asFound ? found : await settle(input, { generation: planned, request, found }),
      writes: 0,
    };
  }
  const author = { ...(await input.author?.(plan.changes)), ...(consent ? { consent } : {}) };
  const options = {
    ...{ signal, author },
    ...(input.onFailure ? { onFailure: input.onFailure } : {}),
    ...(keep ? { keep: { ...keep, ...(skipped.length > 0 ? { whole: input.request } : {}) } } : {}),
    // With a snapshot, the service answers once it is complete. Without an answer in time, nothing is changed.
    ...(plan.snapshot ? { timeoutMs: input.leftMs?.() ?? input.timeoutMs } : {}),
  };
  const reply = await client.apply(request, plan.tag ?? '', options).catch((error: unknown) => {
    if (error instanceof RdError && error.code === 'ERR_PLAN_STALE') return 'moved' as const;
    if (error instanceof RdError && error.code === 'ERR_BACKEND_LOCKED') return 'busy' as const;
    throw error;
  });
  if (reply === 'moved' || reply === 'busy') return reply;
  if (reply.snapshot !== undefined) onEvent({ type: 'covered', snapshot: reply.snapshot });
  for (const what of reply.sent) {
    if (what === 'retry') onEvent({ type: 'retrying' });
    else onEvent(what === 'files' ? { type: 'files' } : { type: 'sent', what, ignoredKeys: [] });
  }
  const { generation, snapshot } = reply;
  const aim = { generation, request, found, ...(reply.continues ? { work: generation } : {}) };
  const status = await settle(input, aim).catch((error: unknown) => {
    throw snapshot === undefined ? error : withSnapshot(error, snapshot);
  });
  const steps = status.apply?.generation === generation ? status.apply.steps.length : 0;
  return { status, writes: reply.sent.length + steps };
}

/** Adds the snapshot to the error of a failed change that may have destroyed data, which an automatic rollback does not bring back. */
function withSnapshot(error: unknown, snapshot: string): unknown {
  if (!(error instanceof RdError) || error.code !== 'ERR_CONVERGE_FAILED') return error;
  return new RdError(error.code, error.message, {
    cause: error,
    details: [...error.details, `What it may have deleted is in its snapshot: rdctl snapshot restore ${snapshot}`],
    ...defined({ advice: error.advice }),
  });
}

/** The state to wait for. `work` is the generation of an apply whose steps must finish as well. */
interface Aim {
  generation: number;
  /** The desired state as of `generation`. */
  request: PlanRequest;
  found: StatusDocument;
  work?: number;
}

/**
 * Waits for convergence and for the files of the user, and returns the status to report. Throws the failure of a step, or `ERR_USER_FILES`, once
 * everything else has converged.
 */
export async function settle(input: ApplyInput, { generation, request, found, work }: Aim): Promise<StatusDocument> {
  const { client, clock, signal, onEvent, started, how } = input;
  const idle = started === 'idle';
  if (!idle && !input.wait) return client.status();
  let shown = 0;
  let isRollingBack = false;
  const feed = watchStatus(client, { clock, signal });
  try {
    const status = await waitConverged({
      feed,
      ...(idle ? {} : { generation }),
      onLater: () => refuseSuperseded({ client, request, generation, ...(how ? { how } : {}) }),
      // A part that was started may end right away.
      needsProof: (now) => withOwnPhases(now, found).phases.some(({ name }) => name.endsWith(' start')),
      isOver: (now) => (work === undefined || isWorkOver(now, work)) && areFilesDone(now, generation),
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
        const { state, to } = transactionAt(next, generation) ?? {};
        if (state !== 'returning' || to === undefined || isRollingBack) return;
        isRollingBack = true;
        onEvent({ type: 'returning', to });
      },
    });
    if (status.apply?.generation === work && status.apply?.error) throw stepFailure(status.apply.error);
    if (work !== undefined && (status.apply?.generation ?? 0) > work) await refuseFailedWork(client, work);
    const filesError = userFilesError(status);
    if (filesError) throw filesError;
    return status;
  } finally {
    feed.close();
  }
}

/** Throws when the service was restarted meanwhile and has lost the steps. */
function isWorkOver({ apply, generation }: StatusDocument, work: number): boolean {
  if (apply && apply.generation >= work) return apply.generation > work || apply.state !== 'running';
  if (generation <= work) return false;
  throw new RdError('ERR_CONNECTION', 'The service was restarted during the apply.', {
    advice: 'Changes already written are kept. Apply again to finish.',
  });
}

/** Throws the failure of the steps from the history, because the status has the steps of a later apply. */
async function refuseFailedWork({ history }: Pick<PlanClient, 'history'>, work: number): Promise<void> {
  const { outcome } = (await history?.())?.find(({ generation }) => generation === work) ?? {};
  if (outcome?.result !== 'failed') return;
  throw new RdError('ERR_CONVERGE_FAILED', outcome.reason ?? `Generation ${work} failed.`, {
    advice: `\`rdctl history show ${work}\` has the steps; apply again to finish.`,
  });
}

function stepFailure({ code, message, ...rest }: NonNullable<NonNullable<StatusDocument['apply']>['error']>): RdError {
  return new RdError(code, message, rest);
}

/** Waits for the steps of an earlier apply, so that the next plan sees their result. */
export async function waitForEarlierApply(input: ApplyInput): Promise<StatusDocument> {
  const { client, clock, signal, onEvent } = input;
  onEvent({ type: 'earlier' });
  const feed = watchStatus(client, { clock, signal });
  try {
    return await waitConverged({
      feed,
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

/**
 * Removes from a status the phases that were over when `found` was read: a service also reports those of earlier
 * changes. A phase in progress stays, because the apply waits for it.
 */
export function withOwnPhases(status: StatusDocument, found: StatusDocument): StatusDocument {
  const nameOf = ({ name, startedAt }: Phase) => `${name} ${startedAt}`;
  const earlier = new Set(found.phases.filter(({ ms }) => ms !== undefined).map(nameOf));
  return { ...status, phases: status.phases.filter((phase) => !earlier.has(nameOf(phase))) };
}
