import { patternWarnings } from '../allowed-images/pattern.ts';
import type { ManagedPath } from '../drivers/driver.ts';
import type { JsonObject } from '../json.ts';
import { isLocked } from '../settings/locks.ts';
import { DEFAULT_MACHINE_OPTIONS, type MachineOptions } from '../settings/machine-options.gen.ts';
import type { Settings } from '../settings/settings.gen.ts';
import { lockMessage } from './blocks.ts';
import type { BlastItem, Change, Plan, PlanRequest, Target } from './change.ts';
import { isDowngrade } from './consequences.ts';
import { type Difference, differences, EXTENSIONS, isMachinePath, machineDifferences, settingsAfter } from './diff.ts';
import { effectsOf } from './drift.ts';
import { deniedImages, extensionBlock, extensionCost, extensionGate } from './extension-changes.ts';
import { changeOf } from './plan.ts';
import { isRuntimeChange } from './runtime-changes.ts';
import type { Cost } from './severity.ts';
import { summarize } from './summary.ts';
import { type UserFileChange, type UserFileFacts, userFilesOf } from './user-files.ts';

export interface EstimateInput {
  request: PlanRequest;
  /** The settings to compare with: the defaults, or settings that were read. */
  base: Settings;
  /** Absent for another application, which has no `machine` block. */
  machine?: MachineOptions;
  locks?: JsonObject;
  lockedBy?: string;
  target: Target;
  /** Nothing is running before the settings are written, so nothing can restart. */
  idle?: boolean;
  /** Known changes to the service and the backend as a whole. */
  power?: readonly Change[];
  /** Absent: the user's files are unknown. */
  userFiles?: EstimatedFiles;
}

/** How an apply without a running service affects the user's files. */
export interface EstimatedFiles {
  /** Absent: no file is touched. */
  facts?: UserFileFacts;
  /** Whether the backend runs afterwards, with a cluster where the settings enable one. */
  on: boolean;
  hasCluster: boolean;
}

/**
 * A plan from the schema alone, marked `estimated`. Unless `idle`, assumes that everything in `base` is running, and
 * omits power, which is unknown. It knows neither the driver's support nor the blast radius.
 */
export function estimatePlan(input: EstimateInput): Plan {
  const { request, base, locks = {}, lockedBy, target, idle = false, power = [], userFiles } = input;
  const options = machineDifferences(input.machine ?? DEFAULT_MACHINE_OPTIONS, request);
  const judged = [...differences(base, request), ...options].map((difference) => ({
    difference,
    locked: isLocked(locks, difference.path),
  }));
  const open = judged.filter(({ locked }) => !locked).map(({ difference }) => difference);
  const desired = settingsAfter(base, open);
  const changes: Change[] = judged.map(({ difference, locked }) => {
    if (locked) {
      const blocked = { by: 'lock' as const, message: lockMessage(difference.path, lockedBy) };
      return { ...changeOf(difference, BLOCKED), blocked };
    }
    if (!input.machine && isMachinePath(difference.path)) {
      return { ...changeOf(difference, BLOCKED), blocked: { by: 'unsupported', message: NO_MACHINE_BLOCK } };
    }
    if (difference.path === EXTENSIONS) return extensionChange(difference, request, desired);
    const cost = estimate(difference.path, base, desired);
    return changeOf(difference, idle ? atRest(cost) : cost);
  });
  // A restart of the service comes first, as in the plan that the service then makes.
  changes.unshift(...power.filter(isRuntimeChange));
  changes.push(...power.filter((change) => !isRuntimeChange(change)));
  const restart =
    !idle && changes.some(({ severity, blocked }) => !blocked && (severity === 'restart' || severity === 'reset'));
  const lost = changes.some(({ severity }) => severity === 'reset');
  const blastRadius: BlastItem[] = lost
    ? [{ what: 'deletes the workloads and data of the cluster', lost: true, consent: 'kubernetes-reset' }]
    : [];
  const summary = summarize({ changes, blastRadius, restart, pending: false });
  return {
    kind: 'Plan',
    formatVersion: 1,
    target,
    basis: 'estimated',
    generation: 0,
    changes,
    blastRadius,
    pendingRestart: [],
    ...(userFiles ? { userFiles: filesTouched(changes, base, desired, userFiles) } : {}),
    warnings: [
      'No service was asked: costs are estimates, and interruptions are unknown.',
      ...patternWarnings(request.settings),
      ...deniedImages(open, desired),
    ],
    // Without an observation nothing can be promised.
    summary: {
      ...summary,
      nothingLost: summary.nothingLost && idle && !changes.some(({ severity }) => severity === 'restart'),
      text: summary.text.replace(', nothing is lost', ', estimated'),
    },
  };
}

/** The difference between the files now and at the end of an apply, whose service first follows its initial settings. */
function filesTouched(
  changes: readonly Change[],
  base: Settings,
  settings: Settings,
  { facts, on, hasCluster }: EstimatedFiles,
): UserFileChange[] {
  if (changes.every(({ blocked }) => blocked)) return [];
  // A service does not remove an autostart entry that it did not create.
  const ended = base.application.autoStart && !settings.application.autoStart;
  const known = facts && ended ? { ...facts, done: { autoStart: true } } : facts;
  return userFilesOf(known, { settings, on, cluster: on && hasCluster ? 'same' : 'none' });
}

/** Judged as the service does: independent of the driver and of what runs. */
function extensionChange(difference: Difference, { state }: PlanRequest, desired: Settings): Change {
  const { allowed } = desired.application.extensions;
  const blocked = extensionBlock(difference, extensionGate(state === 'unmanaged' ? 'unknown' : state, allowed));
  return blocked ? { ...changeOf(difference, BLOCKED), blocked } : changeOf(difference, extensionCost(difference));
}

/** Without a running backend only data on disk can be lost. */
function atRest(cost: Cost): Cost {
  if (cost.severity === 'reset' || cost.severity === 'none') return cost;
  return { severity: 'none', reason: 'takes effect at the next start' };
}

const NO_MACHINE_BLOCK = 'The machine block is for rdctl; this application has no such settings.';

const BLOCKED: Cost = { severity: 'none', reason: 'not available' };

function estimate(path: ManagedPath, base: Settings, desired: Settings): Cost {
  const levels = effectsOf(path);
  if (levels.includes('restart-or-reset')) return clusterVersion(base, desired);
  if (levels.includes('restart')) return conditional(path, desired);
  if (levels.includes('live')) return { severity: 'live', reason: 'applied to the running backend' };
  return { severity: 'none', reason: 'does not affect the machine, engine or cluster' };
}

function clusterVersion(base: Settings, desired: Settings): Cost {
  if (isDowngrade(base.kubernetes.version, desired.kubernetes.version)) {
    return { severity: 'reset', reason: 'a lower version deletes the cluster data' };
  }
  if (!desired.kubernetes.enabled) return { severity: 'none', reason: 'the cluster is off' };
  return { severity: 'restart', reason: 'the cluster restarts; a newer one that is installed would lose its data' };
}

function conditional(path: ManagedPath, desired: Settings): Cost {
  const isClusterOption = path.startsWith('kubernetes.') && path !== 'kubernetes.enabled';
  if (isClusterOption && !desired.kubernetes.enabled) return { severity: 'none', reason: 'the cluster is off' };
  if (path === 'containerEngine.mobyStorageDriver' && desired.containerEngine.name !== 'moby') {
    return { severity: 'none', reason: 'only used by moby' };
  }
  return { severity: 'restart', reason: 'takes effect with a restart of the backend' };
}
