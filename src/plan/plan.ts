import { PATTERNS, patternWarnings } from '../allowed-images/pattern.ts';
import type { DriverInfo } from '../drivers/driver.ts';
import { defined, digestOf, isObject, type JsonObject, type JsonValue } from '../json.ts';
import type { Blocks } from '../settings/blocks.gen.ts';
import { blocksOf, isBlockPath, treeOf } from '../settings/blocks.ts';
import { fieldAt } from '../settings/fields.ts';
import { leafAt } from '../settings/leaf-paths.ts';
import { mergeSettings } from '../settings/merge.ts';
import type { Settings } from '../settings/settings.gen.ts';
import { ENGINE_NAMES, goalOf, installedVersion, isUp, type Observed } from './backend.ts';
import { blastRadius } from './blast-radius.ts';
import { blockOf } from './blocks.ts';
import type { Change, Plan, Sensitive, Target } from './change.ts';
import { type Consequences, consequencesOf, mayDowngrade } from './consequences.ts';
import type { PlannedDeed } from './deed.ts';
import { blocksAfter, type Difference, differences, EXTENSIONS, patchOf, settingsAfter } from './diff.ts';
import { isEnforced, supportOf } from './drift.ts';
import {
  deniedImageWarnings,
  extensionCost,
  extensionGate,
  extensionSteps,
  refusedExtensions,
} from './extension-changes.ts';
import { inclusionOf, type PartialRequest } from './leave-out.ts';
import { type ForwardsReport, forwardsWithout, NO_FORWARDS, planForwards } from './port-forwards.ts';
import { expectedSteps, type Measurement, predictionOf } from './prediction.ts';
import { restartReasons } from './restart-reasons.ts';
import { isRuntimeChange, powerChange, runtimeChanges } from './runtime-changes.ts';
import { type Circumstances, type Cost, costOf } from './severity.ts';
import { summarize } from './summary.ts';
import { clusterStart, type UserFileFacts, userFilesOf } from './user-files.ts';

/** The input of a plan, with the blocks in force. */
export interface PlanInput extends Blocks {
  request: PartialRequest;
  /** The settings in force. */
  live: Settings;
  /** The desired power in force. */
  power: 'started' | 'stopped';
  /** Lock record; `lockedBy` names its source, for messages. */
  locks: JsonObject;
  lockedBy?: string;
  driver: DriverInfo;
  observed: Observed;
  /**
   * The reason that no observation has succeeded since the plan was requested, as a clause: more may be running than was observed. Absent if one has.
   */
  outdated?: string;
  target: Target;
  generation: number;
  /** Absent if the user's files are not touched. */
  userFiles?: UserFileFacts;
  /** Durations of earlier changes on this computer, oldest first. */
  measured?: readonly Measurement[];
  /** The existing port forwards; only read when the request has some. */
  forwards?: ForwardsReport;
}

/**
 * Plans a request: the changes and their cost on this service now, and the deed that carries them out. Pure. Severities assume that every change that
 * is not blocked is made, as the deed does. Throws `ERR_SETTINGS_INVALID` for a null outside a map.
 */
export function makePlan(input: PlanInput): PlannedDeed {
  const { request, live, power, driver, observed, target, generation } = input;
  const isIncluded = inclusionOf(request);
  const differing = differences({ ...blocksOf(input), settings: live }, request).filter(isIncluded);
  const wishes = (request.wishes ?? []).filter((path) => isIncluded({ path }));
  const asked = isIncluded({ path: 'state' }) ? request.state : 'unmanaged';
  const powerAfter = asked === 'unmanaged' ? power : asked;
  const extensions = extensionGate(powerAfter, allowedExtensions(input, differing));
  const checked: CheckedDifference[] = [
    ...differing.map((difference) => ({ difference, blocked: blockOf(difference, { ...input, extensions }) })),
    ...refusedExtensions({ live, requested: request.settings, isIncluded }, differing, extensions),
    ...unsupportedUnchanged(input, wishes, differing),
  ];
  const open = checked.filter(({ blocked }) => !blocked).map(({ difference }) => difference);
  const patch = patchOf(open, live);
  const desired = patch ? mergeSettings(live, patch) : live;
  const next = { settings: desired, ...blocksAfter(blocksOf(input), open) };
  const goal = goalOf({ ...next, power: powerAfter }, driver);
  const consequences = consequencesOf(goal, observed, driver);
  const at: Circumstances = { ...consequences, desired };
  const changes = checked.map(({ difference, blocked, cost }) =>
    blocked
      ? { ...changeOf(difference, { severity: 'none', reason: 'not available' }), blocked }
      : changeOf(difference, cost ?? costOfDifference(difference, at)),
  );
  const state = powerChangeOf(power, consequences);
  if (state) changes.push(state);
  // A power change covers all parts. Without an observation, stopped parts are unknown.
  else if (input.outdated === undefined)
    changes.push(...runtimeChanges({ consequences, changed: new Set(open.map(({ path }) => path)) }));
  const touched = changes.some((change) => !change.blocked);
  const unseen = unseenWarnings(input);
  const radius = touched ? blastRadius({ consequences, downgrade: lowersVersion(open, at) }) : [];
  const pending = power === 'started' ? pendingRestart(input) : [];
  const restart = touched && power === 'started' && goal.on && restarts(changes, consequences);
  const isKnown = touched && input.outdated === undefined;
  const prediction = isKnown ? predictionOf(expectedSteps(consequences), input.measured ?? []) : undefined;
  const forwards = planForwards(forwardsWithout(request.portForwards ?? NO_FORWARDS, request.leaveOut), input.forwards);
  changes.push(...forwards.changes);
  radius.push(...forwards.blastRadius);
  const plan: Plan = {
    kind: 'Plan',
    formatVersion: 1,
    target,
    basis: 'service',
    generation,
    changes,
    blastRadius: radius,
    pendingRestart: pending,
    userFiles: touched
      ? userFilesOf(input.userFiles, {
          settings: desired,
          on: goal.on,
          cluster: clusterStart(consequences),
        })
      : [],
    warnings: [
      ...unseen,
      ...machineProblems(observed),
      ...storedOnly([...open.map(({ path }) => path), ...wishes], driver),
      ...(isIncluded({ path: PATTERNS }) ? patternWarnings(request.settings) : []),
      ...(isEnforced(PATTERNS, driver) ? deniedImageWarnings(open, desired) : []),
      ...forwards.warnings,
    ],
    ...(prediction ? { prediction } : {}),
    summary: summarize({
      changes,
      blastRadius: radius,
      restart,
      pending: pending.length > 0,
      unknown: unseen.length > 0,
    }),
  };
  const { steps, after: settings } = extensionSteps(desired, open);
  return {
    plan: { ...plan, tag: tagOf(plan) },
    deed: {
      next: { ...next, ...(asked === 'unmanaged' ? {} : { power: asked }) },
      ...defined({ patch }),
      steps: { extensions: steps, forwards: forwards.steps },
      after: { settings, ...defined({ forwards: forwards.after }) },
    },
  };
}

/** Returns the digest that stands for consent to a plan. */
export function tagOf({ generation, changes, blastRadius }: Plan): string {
  const lost = blastRadius.filter((item) => item.lost);
  const agreed = changes.filter((change) => !isRuntimeChange(change));
  return digestOf(JSON.parse(JSON.stringify({ generation, changes: agreed, lost })));
}

function outdatedText(reason: string): string {
  return `What runs could not be looked at in time, because ${reason}: more may be interrupted than is listed.`;
}

/**
 * Finds desired values that equal the live ones but that the driver does not support. Without this check, the same
 * profile would be rejected on one computer and ignored on another.
 */
function unsupportedUnchanged(
  input: PlanInput,
  wishes: readonly string[],
  differences: readonly Difference[],
): CheckedDifference[] {
  const { driver } = input;
  const tree = treeOf({ ...blocksOf(input), settings: input.live });
  const differing = new Set(differences.map(({ path }) => path));
  return wishes.flatMap((name) => {
    const path = fieldAt(name)?.path;
    const after = path && leafAt(tree, path);
    // A missing map entry is not desired, and a listed one either differs or exists.
    if (path === undefined || after === undefined || isObject(after) || differing.has(path)) return [];
    const difference: Difference = { path, action: 'update', before: after, after };
    const blocked = blockOf(difference, { locks: {}, driver });
    return blocked ? [{ difference, blocked }] : [];
  });
}

interface CheckedDifference {
  difference: Difference;
  blocked: Change['blocked'];
  /** Overrides the cost derived from the difference. */
  cost?: Cost;
}

/** Returns the allow list of extensions after all changes that are not blocked. */
function allowedExtensions(
  input: PlanInput,
  differing: readonly Difference[],
): Settings['application']['extensions']['allowed'] {
  const open = differing.filter((difference) => difference.path !== EXTENSIONS && !blockOf(difference, input));
  return settingsAfter(input.live, open).application.extensions.allowed;
}

function costOfDifference(difference: Difference, at: Circumstances): Cost {
  return difference.path === EXTENSIONS ? extensionCost(difference) : costOf(difference.path, at);
}

/** Builds a change with its cost. Secrets are masked; destroying and recreating counts as a replacement. */
function changeOf(difference: Difference, cost: Cost): Change {
  const { path, key, action, before, after } = difference;
  const mask = fieldAt(path)?.sensitive === true;
  const replaced = cost.severity === 'reset' || (path === 'containerEngine.name' && cost.severity === 'restart');
  return {
    path,
    ...defined({ key }),
    action: action === 'update' && replaced ? 'replace' : action,
    ...(before === undefined ? {} : { before: maskValue(before, mask) }),
    ...(after === undefined ? {} : { after: maskValue(after, mask) }),
    ...cost,
  };
}

function maskValue(value: JsonValue, mask: boolean): JsonValue | Sensitive {
  return mask ? { sensitive: true } : value;
}

/** True if the changes restart the backend. A reset does so only if the backend runs; otherwise the data is deleted at the next start. */
function restarts(changes: readonly Change[], { observed, machine, engines, cluster }: Consequences): boolean {
  const open = changes.filter((change) => !change.blocked);
  if (open.some((change) => change.severity === 'restart')) return true;
  if (!open.some((change) => change.severity === 'reset') || !isUp(observed)) return false;
  return (
    cluster.mustReset || cluster.mustStop || machine.mustStop || ENGINE_NAMES.some((name) => engines[name].mustStop)
  );
}

function lowersVersion(open: readonly Difference[], { desired, observed, driver }: Circumstances): boolean {
  const isRequested = open.some(({ path }) => path === 'kubernetes.version');
  return isRequested && driver.hasCluster && mayDowngrade(installedVersion(observed), desired.kubernetes.version);
}

function unseenWarnings({ observed: { assumed }, outdated }: PlanInput): string[] {
  if (assumed !== undefined) {
    return [`Running state unknown: ${assumed}. Costs assume the last requested state.`];
  }
  return outdated === undefined ? [] : [outdatedText(outdated)];
}

/** Lists problems that no change of this plan fixes, because the settings are already as desired. */
function machineProblems({ machine }: Observed): string[] {
  if (machine.state !== 'on' || machine.flaw === undefined) return [];
  return [`The machine is only partly configured: ${machine.flaw}.`];
}

/** Reports settings that are stored without effect, on every plan, even if unchanged. */
function storedOnly(paths: readonly string[], driver: DriverInfo): string[] {
  return [...new Set(paths)].flatMap((name) => {
    const path = fieldAt(name)?.path;
    const support = path && supportOf(driver, path);
    if (support?.level !== 'stored' || support.reason === undefined) return [];
    return [`"${path}" is stored and has no effect with the ${driver.name} driver: ${support.reason}.`];
  });
}

/** Lists the reasons, as clauses, that the running backend needs a restart to match the live settings; empty if it does not. */
function pendingRestart(input: PlanInput): string[] {
  const { live, observed, driver } = input;
  const reasons = Object.entries(restartReasons(live, observed, driver, live)).map(
    ([path, { current, desired }]) =>
      `${path}: runs with ${JSON.stringify(current)}, should be ${JSON.stringify(desired)}`,
  );
  const inForce = goalOf({ settings: live, ...blocksOf(input), power: 'started' }, driver);
  const { machine, engines, cluster } = consequencesOf(inForce, observed, driver);
  const parts = Object.entries({ machine, engine: engines[inForce.engine.name], cluster });
  const options = parts.flatMap(([part, { drift }]) =>
    (drift?.restart ?? []).filter(isBlockPath).map((path) => `${path}: the ${part} runs with another value`),
  );
  return [...reasons, ...options];
}

/** Returns the change of power, if requested. A start may delete the data of a cluster that is newer than the desired one. */
function powerChangeOf(before: 'started' | 'stopped', consequences: Consequences): Change | undefined {
  const { goal, observed, cluster } = consequences;
  const after = goal.on ? 'started' : 'stopped';
  if (before === after) return undefined;
  if (goal.on && cluster.mustReset) {
    const installed = installedVersion(observed);
    const reason = installed
      ? `the start deletes the data of the installed cluster, which is newer (${installed})`
      : 'the start deletes the data of the installed cluster if that is newer';
    return powerChange(after, { severity: 'reset', reason });
  }
  const idle = !isUp(observed) && observed.machine.state !== 'on';
  return !goal.on && idle ? powerChange(after, { severity: 'none', reason: 'nothing is running' }) : powerChange(after);
}
