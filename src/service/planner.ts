import type { ApiContext, PlannedWriter, Planner, ReservedSteps } from '../api/context.ts';
import { RdError } from '../errors.ts';
import type { Covers } from '../features/snapshots/contract.ts';
import type { Clock } from '../os/clock.ts';
import { refuseBlocked } from '../plan/blocks.ts';
import type { LiveState, Plan, PlanRequest } from '../plan/change.ts';
import { patchOf, plannedMachineOptions } from '../plan/diff.ts';
import { extensionsAfter } from '../plan/extension-changes.ts';
import { withSetBackBlocked } from '../plan/foresight.ts';
import { recordedForwards } from '../plan/history.ts';
import { lostItems } from '../plan/losses.ts';
import { makePlan } from '../plan/plan.ts';
import { type ForwardsReport, forwardsAfter } from '../plan/port-forwards.ts';
import type { Measurement } from '../plan/prediction.ts';
import { checkedRequest } from '../plan/requested.ts';
import { validateContext } from '../plan/settings-update.ts';
import { PRODUCT } from '../product.ts';
import type { Desired } from '../reconcile/contract.ts';
import type { ApplyReply } from '../reconcile/status-document.ts';
import { mergeSettings } from '../settings/merge.ts';
import type { Settings } from '../settings/settings.gen.ts';
import type { DesiredSnapshot, WriteResult } from '../state/desired-store.ts';
import { withCover } from './plan-cover.ts';
import type { Foresight } from './watch/foresight.ts';

interface PlannerInput
  extends Pick<
    ApiContext,
    | 'store'
    | 'controllers'
    | 'driver'
    | 'host'
    | 'kubernetesVersions'
    | 'idle'
    | 'portForwards'
    | 'applies'
    | 'counters'
    | 'log'
  > {
  covers: Covers;
  clock: Clock;
  /** The directory of the service's state. */
  home: string;
  /** The source of the locked profile. */
  lockedBy?: string;
  /** What earlier changes took here, oldest first. */
  measured(): readonly Measurement[];
  foresee: Foresight;
}

/** Plans desired states for the API and for other parts of the service, and carries them out. */
export function createPlanner(input: PlannerInput): Planner {
  const { store, driver, controllers, portForwards, applies, counters, covers, log, lockedBy, home } = input;

  function planFrom(
    { settings, machine, power, generation }: Desired,
    request: PlanRequest,
    observation: Parameters<Planner['plan']>[1] = {},
    forwards: () => ForwardsReport = portForwards.list,
  ) {
    return makePlan({
      request,
      live: settings,
      machine,
      power: input.idle ? 'stopped' : power,
      locks: store.locks,
      ...(lockedBy === undefined ? {} : { lockedBy }),
      driver,
      observed: controllers.observed(),
      target: { product: PRODUCT.name, home, driver: driver.name, simulated: driver.simulated },
      generation,
      measured: input.measured(),
      ...(request.portForwards ? { forwards: forwards() } : {}),
      ...observation,
    });
  }

  /** The plan of `planFrom`, with what kept profiles would make of it. */
  function planFor(
    desired: Desired,
    request: PlanRequest,
    { by, kept }: PlannedWriter,
    observation?: Parameters<Planner['plan']>[1],
  ): Plan {
    const plan = planFrom(desired, request, observation);
    const written = stateAfter(plan, request, desired);
    const settings = extensionsAfter(written.settings, plan);
    const after = { ...written, settings, generation: desired.generation + 1 };
    const forwards = () => forwardsAfter(plan, portForwards.list());
    const drift = input.foresee({
      ...{ plan, request, by },
      ...(kept === undefined ? {} : { kept }),
      check: (other) => checked(other, after.settings, input),
      planAfter: (other) => planFrom(after, other, observation, forwards),
    });
    if (drift.length === 0) return plan;
    const foreseen = { ...plan, drift };
    if (by.how !== 'apply') return foreseen;
    return withSetBackBlocked(foreseen, request, (other) => planFrom(desired, other, observation));
  }

  function decisionOn(plan: Plan, request: PlanRequest, desired: Desired): Decision {
    const { settings, machine, power } = stateAfter(plan, request, desired);
    const sent: ApplyReply['sent'] = [];
    if (settings !== desired.settings || machine !== desired.machine) sent.push('settings');
    if (power !== desired.power) sent.push('power');
    // Nothing differs, and an earlier attempt failed for good. Its cause may be gone.
    const gaveUp = power === 'started' && controllers.status().backendState === 'ERROR';
    if (sent.length === 0 && gaveUp) sent.push('retry');
    const uncovered = request.snapshot === false ? 'it was declined' : covers.impossible;
    return {
      ...{ plan, sent },
      ...(sent.length > 0 ? { next: { settings, machine, power } } : {}),
      items: sent.length > 0 ? lostItems(plan).map(({ what }) => what) : [],
      ...(uncovered === undefined ? {} : { uncovered }),
    };
  }

  return {
    check: (request) => checked(request, store.snapshot().desired.settings, input),
    plan: (request, observation) => planFrom(store.snapshot().desired, request, observation),
    planFor: (request, writer, observation) => planFor(store.snapshot().desired, request, writer, observation),
    live: () => liveState(input),
    withCover: (plan, request, how) =>
      withCover(plan, request, {
        how,
        covers,
        clock: input.clock,
        isOn: controllers.observed().machine.state === 'on',
        stopped: () => planFrom(store.snapshot().desired, STOP).blastRadius,
      }),
    async write(body, tag, by, onFailure, sources, signal = NEVER) {
      const origin = { by, ...(sources ? { sources } : {}) };
      let steps: ReservedSteps | undefined;
      const decide = (desired: Desired): Decision => {
        const request = checked(body, desired.settings, input);
        const plan = by.how === 'apply' ? planFor(desired, request, { by }) : planFrom(desired, request);
        steps = applies.reserve(plan, request);
        if (plan.tag !== tag) throw stale();
        refuseBlocked(plan);
        return { ...decisionOn(plan, request, desired), ...(steps ? { announced: recordedForwards(plan) } : {}) };
      };
      const written = async (): Promise<{ answer: Decision; now: DesiredSnapshot; snapshot?: string }> => {
        const first = await store.write(({ desired }) => {
          const decision = decide(desired);
          if (isToCover(decision)) return { answer: decision };
          const { items, uncovered = '' } = decision;
          return {
            ...writeOf(decision),
            ...origin,
            onFailure,
            ...(items.length > 0 ? { loss: { items, uncovered } } : {}),
          };
        });
        const { answer: decision } = first;
        if (!isToCover(decision)) return first;
        const { plan, items } = decision;
        const covered = { generation: plan.generation + 1, items };
        const write = async (snapshot: string) => ({
          snapshot,
          ...(await store.write(({ desired }) => {
            // What the plan costs is not judged again, because the backend may have been stopped for the snapshot.
            if (desired.generation !== plan.generation) throw stale();
            return { ...writeOf(decision), ...origin, onFailure, loss: { items, snapshot } };
          })),
        });
        return covers.around(covered, write, signal);
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
      return { generation, sent, continues: steps !== undefined, ...(snapshot === undefined ? {} : { snapshot }) };
    },
  };
}

/** The desired state once a plan is written. Its request was checked, so its differences need no further validation. */
function stateAfter(plan: Plan, request: PlanRequest, desired: Desired): Omit<Desired, 'generation'> {
  const patch = patchOf(plan, request, desired.settings);
  return {
    settings: patch ? mergeSettings(desired.settings, patch) : desired.settings,
    machine: plannedMachineOptions(plan, request, desired.machine),
    power: request.state === 'unmanaged' ? desired.power : request.state,
  };
}

/** What an agreed plan writes. */
interface Decision extends Pick<WriteResult<unknown>, 'next' | 'announced'> {
  plan: Plan;
  sent: ApplyReply['sent'];
  /** What it destroys. */
  items: string[];
  /** Why no snapshot is made of that. */
  uncovered?: string;
}

function isToCover({ items, uncovered }: Decision): boolean {
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
  const { settings, machine, power } = store.snapshot().desired;
  return {
    settings,
    machine,
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

/** @throws RdError as `checkedRequest`. */
function checked(
  body: PlanRequest,
  current: Settings,
  { driver, host, kubernetesVersions }: PlannerInput,
): PlanRequest {
  return checkedRequest(body, validateContext(current, { driver, host, kubernetesVersions }));
}
