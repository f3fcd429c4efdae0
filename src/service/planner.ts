import { patternWarnings } from '../allowed-images/pattern.ts';
import { RdError } from '../errors.ts';
import type { PortForwards } from '../features/port-forwards/manager.ts';
import type { SafetySnapshots } from '../features/snapshots/contract.ts';
import { defined } from '../json.ts';
import type { Clock } from '../os/clock.ts';
import type { Log } from '../os/limited-log.ts';
import { backendOf } from '../plan/backend.ts';
import { refuseBlocked } from '../plan/blocks.ts';
import type { LiveState, Plan, PlanRequest } from '../plan/change.ts';
import type { PlannedDeed } from '../plan/deed.ts';
import { withSetBackBlocked } from '../plan/foresight.ts';
import { type Author, forwardChanges, type StatedSource } from '../plan/history.ts';
import type { PlannedHow } from '../plan/kept.ts';
import type { PartialRequest } from '../plan/leave-out.ts';
import { lostItems } from '../plan/losses.ts';
import { makePlan } from '../plan/plan.ts';
import type { ForwardsReport } from '../plan/port-forwards.ts';
import type { Measurement } from '../plan/prediction.ts';
import { validateRequest } from '../plan/requested.ts';
import type { OnFailure } from '../plan/rollback.ts';
import { type UpdateContext, validateContext } from '../plan/settings-update.ts';
import type { UserFileFacts } from '../plan/user-files.ts';
import { PRODUCT } from '../product.ts';
import type { Controllers, Desired } from '../reconcile/contract.ts';
import type { ApplyReply, WriteCounters } from '../reconcile/status-document.ts';
import { BLOCK_NAMES } from '../settings/blocks.ts';
import type { Settings } from '../settings/settings.gen.ts';
import type { DesiredSnapshot, DesiredStore, WriteResult } from '../state/desired-store.ts';
import type { Applies, ReservedSteps } from './applies.ts';
import { withSafetySnapshot } from './plan-safety-snapshot.ts';
import type { Foresight } from './watch/foresight.ts';

/** Observed facts for a plan, with the meaning that they have in `PlanInput`. */
interface Observation {
  outdated?: string;
  userFiles?: UserFileFacts;
}

/** The author of the write that a plan prepares. */
interface PlannedWriter {
  by: Author;
  /** Name of the kept profile that the write updates. */
  kept?: string;
}

/** Plans desired states and carries them out. */
export interface Planner {
  /** Returns the warnings that need only the request. They are cached for the plan of the same request. */
  warnings(request: PlanRequest): readonly string[];
  /**
   * Returns the request in canonical form. Locks and settings that the driver does not support are part of a plan, not errors.
   * @throws RdError `ERR_SETTINGS_INVALID` with every problem.
   */
  check<R extends PlanRequest>(request: R): R;
  /** Plans a checked request against the current state. */
  plan(request: PartialRequest, observation?: Observation): Plan;
  /**
   * Plans a request for `writer`, with the differences from kept profiles that it would cause. For an apply, changes that a kept profile would revert
   * at once are blocked.
   */
  planFor(request: PlanRequest, writer: PlannedWriter, observation?: Observation): Plan;
  /** Adds to the plan of a checked request the snapshot that precedes a loss of data. */
  withSafetySnapshot(plan: Plan, request: PlanRequest, how: PlannedHow): Promise<Plan>;
  /** Returns the current state that plans are compared with. */
  live(): LiveState;
  /**
   * Writes settings, blocks and power as one generation; port forwards and extensions follow. If the plan destroys data, a snapshot is made first,
   * unless the request declines it; `signal` cancels it. `onFailure` decides whether the write is undone if the backend fails because of it.
   * @throws RdError `ERR_PLAN_STALE` unless `tag` is that of a plan made now, `ERR_BACKEND_LOCKED` while an earlier apply is
   *   running, `ERR_SETTINGS_INVALID`, `ERR_NO_SPACE` or `ERR_SNAPSHOT` without a snapshot, `ERR_CANCELLED` by the signal, or the error of a
   *   blocked change. Nothing was changed then.
   */
  write(
    request: PartialRequest,
    tag: string,
    by: Author,
    onFailure: OnFailure,
    sources?: readonly StatedSource[],
    signal?: AbortSignal,
  ): Promise<Omit<ApplyReply, 'kind' | 'formatVersion'>>;
}

interface PlannerInput extends Omit<UpdateContext, 'locks' | 'locksFirst'> {
  store: DesiredStore;
  controllers: Pick<Controllers, 'observed' | 'status'>;
  /** Whether the backend stays off while this service runs, whatever the desired power. */
  idle: boolean;
  portForwards: Pick<PortForwards, 'list'>;
  applies: Pick<Applies, 'reserve'>;
  counters: Pick<WriteCounters, 'settingsWrites'>;
  safetySnapshots: SafetySnapshots;
  clock: Clock;
  log: Log;
  /** The directory of the service's state. */
  home: string;
  /** The source of the locked profile. */
  lockedBy?: string;
  /** Returns the measured durations of earlier changes, oldest first. */
  measured(): readonly Measurement[];
  foresee: Foresight;
}

/** Creates the planner of the API and of other parts of the service. */
export function createPlanner(input: PlannerInput): Planner {
  const { store, driver, controllers, portForwards, applies, counters, safetySnapshots, log, lockedBy, home } = input;

  function planFrom(
    { settings, power, generation, ...blocks }: Desired,
    request: PartialRequest,
    observation: Observation = {},
    forwards: () => ForwardsReport = portForwards.list,
  ): PlannedDeed {
    return makePlan({
      request,
      live: settings,
      ...blocks,
      power: input.idle ? 'stopped' : power,
      locks: store.locks,
      ...defined({ lockedBy }),
      driver,
      observed: controllers.observed(),
      target: { product: PRODUCT.name, home, driver: driver.name, simulated: driver.simulated },
      generation,
      measured: input.measured(),
      ...(request.portForwards ? { forwards: forwards() } : {}),
      ...observation,
    });
  }

  /** Plans with `planFrom`, and adds the differences from kept profiles. */
  function planFor(
    desired: Desired,
    request: PartialRequest,
    { by, kept }: PlannedWriter,
    observation?: Observation,
  ): PlannedDeed {
    const planned = planFrom(desired, request, observation);
    const { plan, deed } = planned;
    const { settings } = deed.after;
    const after = { ...desired, ...deed.next, settings, generation: desired.generation + 1 };
    const forwards = () => deed.after.forwards ?? portForwards.list();
    const drift = input.foresee({
      ...{ plan, request, by },
      ...defined({ kept }),
      check: (other) => validate(other, settings, input),
      planAfter: (other) => planFrom(after, other, observation, forwards).plan,
    });
    if (drift.length === 0) return planned;
    const foreseen = { plan: { ...plan, drift }, deed };
    if (by.how !== 'apply') return foreseen;
    return withSetBackBlocked(foreseen, request, (other) => planFrom(desired, other, observation));
  }

  function decisionOn({ plan, deed }: PlannedDeed, request: PlanRequest, desired: Desired): Decision {
    const next = { ...deed.next, power: deed.next.power ?? desired.power };
    const sent: ApplyReply['sent'] = [];
    if ((['settings', ...BLOCK_NAMES] as const).some((name) => next[name] !== desired[name])) sent.push('settings');
    if (next.power !== desired.power) sent.push('power');
    // Nothing differs, but an earlier attempt failed for good, and its cause may be gone.
    const gaveUp = next.power === 'started' && controllers.status().backendState === 'ERROR';
    if (sent.length === 0 && gaveUp) sent.push('retry');
    const uncovered = request.snapshot === false ? 'it was declined' : safetySnapshots.impossible;
    return {
      ...{ plan, sent },
      ...(sent.length > 0 ? { next } : {}),
      items: sent.length > 0 ? lostItems(plan).map(({ what }) => what) : [],
      ...defined({ uncovered }),
    };
  }

  return {
    warnings: ({ settings }) => patternWarnings(settings),
    check: (request) => validate(request, store.snapshot().desired.settings, input),
    plan: (request, observation) => planFrom(store.snapshot().desired, request, observation).plan,
    planFor: (request, writer, observation) => planFor(store.snapshot().desired, request, writer, observation).plan,
    live: () => liveState(input),
    withSafetySnapshot: (plan, request, how) =>
      withSafetySnapshot(plan, request, {
        how,
        safetySnapshots,
        clock: input.clock,
        isOn: controllers.observed().machine.state === 'on',
        stopped: () => planFrom(store.snapshot().desired, STOP).plan.blastRadius,
      }),
    async write(body, tag, by, onFailure, sources, signal = NEVER) {
      const origin = { by, ...(sources ? { sources } : {}) };
      let steps: ReservedSteps | undefined;
      const decide = (desired: Desired): Decision => {
        const request = validate(body, desired.settings, input);
        const planned = by.how === 'apply' ? planFor(desired, request, { by }) : planFrom(desired, request);
        const { plan, deed } = planned;
        steps = applies.reserve(deed.steps);
        if (plan.tag !== tag) throw stale();
        refuseBlocked(plan);
        return { ...decisionOn(planned, request, desired), ...(steps ? { announced: forwardChanges(plan) } : {}) };
      };
      const written = async (): Promise<{ answer: Decision; now: DesiredSnapshot; snapshot?: string }> => {
        const first = await store.write(({ desired }) => {
          const decision = decide(desired);
          if (needsSafetySnapshot(decision)) return { answer: decision };
          const { items, uncovered = '' } = decision;
          return {
            ...writeOf(decision),
            ...origin,
            onFailure,
            ...(items.length > 0 ? { loss: { items, uncovered } } : {}),
          };
        });
        const { answer: decision } = first;
        if (!needsSafetySnapshot(decision)) return first;
        const { plan, items } = decision;
        const loss = { generation: plan.generation + 1, items };
        const write = async (snapshot: string) => ({
          snapshot,
          ...(await store.write(({ desired }) => {
            // The costs are not compared again, because the backend may have been stopped for the snapshot.
            if (desired.generation !== plan.generation) throw stale();
            return { ...writeOf(decision), ...origin, onFailure, loss: { items, snapshot } };
          })),
        });
        return safetySnapshots.around(loss, write, signal);
      };
      const { answer, now, snapshot } = await written().catch((error: unknown) => {
        steps?.release();
        throw error;
      });
      const { plan, sent } = answer;
      const { generation } = now.desired;
      if (sent.includes('settings')) counters.settingsWrites += 1;
      const changes = plan.changes.map(({ path, key }) => (key === undefined ? path : `${path}[${key}]`));
      log('info', 'applied', { changes, sent, generation });
      steps?.begin(generation, origin);
      return { generation, sent, continues: steps !== undefined, ...defined({ snapshot }) };
    },
  };
}

/** The write of an approved plan. */
interface Decision extends Pick<WriteResult<unknown>, 'next' | 'announced'> {
  plan: Plan;
  sent: ApplyReply['sent'];
  /** The data that it destroys. */
  items: string[];
  /** Why no snapshot precedes that loss. */
  uncovered?: string;
}

function needsSafetySnapshot({ items, uncovered }: Decision): boolean {
  return items.length > 0 && uncovered === undefined;
}

function writeOf(decision: Decision): WriteResult<Decision> {
  const { next, announced } = decision;
  return { ...(next ? { next } : {}), ...(announced ? { announced } : {}), answer: decision };
}

const NEVER = new AbortController().signal;
const STOP: PlanRequest = { settings: {}, state: 'stopped', prune: [] };

function stale(): RdError {
  return new RdError('ERR_PLAN_STALE', 'the plan is stale; nothing was changed', {
    advice: 'Plan again and review the changes.',
  });
}

function liveState({ store, portForwards }: PlannerInput): LiveState {
  const { settings, power, ...blocks } = backendOf(store.snapshot().desired);
  return {
    settings,
    ...blocks,
    locks: store.locks,
    power,
    portForwards: portForwards.list().portForwards.map(({ namespace, service, k8sPort, hostPort }) => ({
      namespace,
      service,
      k8sPort,
      hostPort,
    })),
  };
}

/** Validates a request and returns its canonical form. @throws RdError `ERR_SETTINGS_INVALID` with every problem. */
function validate<R extends PlanRequest>(
  body: R,
  current: Settings,
  { driver, host, kubernetesVersions }: PlannerInput,
): R {
  return validateRequest(body, validateContext(current, { driver, host, kubernetesVersions }));
}
