import { RdError } from '../errors.ts';
import { canonicalJson, digestOf, isObject, type JsonObject, type JsonValue } from '../json.ts';
import type { LiveState, Plan, PlanRequest, Target, WantedForwards } from '../plan/change.ts';
import type { SavedPart } from '../plan/plan.gen.ts';
import { isWantedForwards, mentionsForwards, NO_FORWARDS } from '../plan/port-forwards.ts';
import { isRuntimeChange } from '../plan/runtime-changes.ts';
import { blocksOf, managedLeaves, readBlocks, treeOf } from '../settings/blocks.ts';
import { FIELDS } from '../settings/fields.gen.ts';
import { MANAGED_FIELDS } from '../settings/fields.ts';
import { leafAt, removeLeaf, setLeaf } from '../settings/leaf-paths.ts';

/** A saved plan; its changes are only compared, never interpreted. */
export interface SavedPlan {
  target: Target;
  changes: JsonValue;
  lost: number;
  saved: SavedPart;
}

const SENSITIVE = FIELDS.filter((field) => field.sensitive).map((field) => field.path);
const MASK = { sensitive: true };

/** Builds the document that `plan --out-file` writes. */
export function savePlan(
  plan: Plan,
  request: PlanRequest,
  live: LiveState,
  files: string[],
  now: Date,
  portForwards: WantedForwards = NO_FORWARDS,
): Plan & { saved: SavedPart } {
  const masked = maskRequest(request);
  const saved: SavedPart = {
    createdAt: now.toISOString(),
    digests: {
      live: liveDigest(masked, live),
      locks: digestOf(live.locks),
      schema: schemaDigest(),
      profile: profileDigest(request, portForwards),
    },
    files,
    request: masked,
    ...(mentionsForwards(portForwards) ? { portForwards } : {}),
  };
  return { ...plan, saved };
}

/** Reads a saved plan. Throws `ERR_PLAN_INVALID` naming the first problem. */
export function readSavedPlan(text: string, label: string): SavedPlan {
  const invalid = (what: string, cause?: unknown) =>
    new RdError('ERR_PLAN_INVALID', `${label} is not a saved plan: ${what}.`, {
      cause,
      advice: `If it is a profile: rdctl apply -f ${label}`,
    });
  let document: JsonValue;
  try {
    document = JSON.parse(text);
  } catch (cause) {
    throw invalid('it is not JSON', cause);
  }
  if (!isObject(document) || document.kind !== 'Plan') throw invalid('its kind is not Plan');
  if (document.formatVersion !== 1)
    throw invalid(`unsupported format version ${JSON.stringify(document.formatVersion)} (expected 1)`);
  const { target, changes, saved, blastRadius } = document;
  if (!isTarget(target)) throw invalid('its target is incomplete');
  if (!isSavedPart(saved)) throw invalid('"saved" is missing or incomplete, so it was not written by --out-file');
  if (!Array.isArray(changes) || !Array.isArray(blastRadius)) throw invalid('its changes are missing');
  const lost = blastRadius.filter((item) => isObject(item) && item.lost === true).length;
  return { target, changes, lost, saved };
}

/**
 * Returns the request to replay. Secrets that the plan does not change are left out; one that it changes must come from the profile, given again.
 * Throws `ERR_PLAN_INVALID` without it and `ERR_PLAN_STALE` when the profile has changed since.
 */
export function replayRequest(
  plan: SavedPlan,
  profile: PlanRequest | undefined,
  portForwards: WantedForwards = NO_FORWARDS,
): PlanRequest {
  if (profile) {
    if (profileDigest(profile, portForwards) !== plan.saved.digests.profile) throw stale('the profile has changed');
    return profile;
  }
  const touched = Array.isArray(plan.changes) ? plan.changes.filter(isObject).map((change) => change.path) : [];
  const secret = SENSITIVE.find((path) => touched.includes(path));
  if (secret !== undefined) {
    throw new RdError('ERR_PLAN_INVALID', `The plan sets ${secret}, but saved plans contain no secrets.`, {
      advice: `Pass the profile again: rdctl apply PLAN ${plan.saved.files.map((file) => `-f ${file}`).join(' ')}`,
    });
  }
  return { ...plan.saved.request, settings: withoutSecrets(plan.saved.request.settings) };
}

/** Rejects a plan made for another target: throws `ERR_WRONG_TARGET`. */
export function checkTarget(plan: SavedPlan, target: Target): void {
  if (isSameTarget(plan.target, target)) return;
  const text = `The plan was made for ${targetName(plan.target)}, but this is ${targetName(target)}.`;
  throw new RdError('ERR_WRONG_TARGET', text, {
    advice: 'Make a plan for this target, or connect to the one the plan names.',
  });
}

/** Rejects a stale plan: throws `ERR_PLAN_STALE` listing the changes. */
export function checkFresh(plan: SavedPlan, fresh: Plan, live: LiveState): void {
  const { digests, request } = plan.saved;
  if (plan.target.settingsVersion !== fresh.target.settingsVersion)
    throw stale('the application is a different release');
  if (schemaDigest() !== digests.schema)
    throw stale('this version has different settings from the one that made the plan');
  if (digestOf(live.locks) !== digests.locks) throw stale('the locks have changed');
  if (liveDigest(request, live) !== digests.live)
    throw stale('a setting or the power state that the plan manages has changed');
  if (
    canonicalJson(toJson(comparableChanges(fresh.changes))) !== canonicalJson(toJson(comparableChanges(plan.changes)))
  )
    throw stale('the cost of the same changes is different now');
  if (fresh.blastRadius.filter((item) => item.lost).length > plan.lost)
    throw stale('more would be lost than the plan lists');
}

/** Returns the changes to compare. Processes start and stop independently of the plan; the cost of that is compared separately. */
function comparableChanges(changes: unknown): unknown {
  return Array.isArray(changes) ? changes.filter((change) => !isRuntimeChange(change)) : changes;
}

function stale(what: string): RdError {
  return new RdError('ERR_PLAN_STALE', `The saved plan is stale: ${what}. Nothing was changed.`, {
    advice: 'Make a new plan with `rdctl plan -f FILE --out-file PLAN` and review it.',
  });
}

/** Digests the live values of the fields that a request manages, and the power if it manages that. */
function liveDigest(request: PlanRequest, live: LiveState): string {
  const paths = new Set<string>([...managedLeaves(request).map(([path]) => path), ...request.prune]);
  const tree = treeOf(live);
  const managed: JsonObject = {};
  for (const path of paths) {
    if (!SENSITIVE.some((secret) => secret === path)) managed[path] = leafAt(tree, path) ?? null;
  }
  return digestOf({ managed, power: request.state === 'unmanaged' ? null : live.power });
}

function profileDigest(request: PlanRequest, portForwards: WantedForwards): string {
  return digestOf(toJson({ ...maskRequest(request), ...(mentionsForwards(portForwards) ? { portForwards } : {}) }));
}

function schemaDigest(): string {
  return digestOf(toJson(MANAGED_FIELDS));
}

/** Returns the request with its secrets masked, and without port forwards, which are saved separately. */
function maskRequest(request: PlanRequest): PlanRequest {
  const settings = structuredClone(request.settings);
  for (const path of SENSITIVE) if (leafAt(settings, path) !== undefined) setLeaf(settings, path, { ...MASK });
  return { settings, ...blocksOf(request), state: request.state, prune: [...request.prune] };
}

function withoutSecrets(settings: JsonObject): JsonObject {
  const copy = structuredClone(settings);
  for (const path of SENSITIVE) removeLeaf(copy, path);
  return copy;
}

/** Drops `undefined` members, as serializing does. */
function toJson(value: unknown): JsonValue {
  return JSON.parse(JSON.stringify(value));
}

function isSavedPart(value: JsonValue | undefined): value is JsonObject & SavedPart {
  if (!isObject(value)) return false;
  const { createdAt, digests, files, request, portForwards } = value;
  if (isObject(request) && readBlocks(request).problems.length > 0) return false;
  if (portForwards !== undefined && !isWantedForwards(portForwards)) return false;
  if (typeof createdAt !== 'string' || !isObject(digests) || !isObject(request) || !isTextList(files)) return false;
  const complete = ['live', 'locks', 'schema', 'profile'].every((key) => typeof digests[key] === 'string');
  const state = ['started', 'stopped', 'unmanaged'].some((word) => word === request.state);
  return complete && state && isObject(request.settings) && isTextList(request.prune);
}

function isTextList(value: JsonValue | undefined): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

/** True for the same product, home and driver. */
export function isSameTarget(one: Target, other: Target): boolean {
  return one.product === other.product && one.home === other.home && one.driver === other.driver;
}

/** Names a target for display: `rdctl at /home/x/.local/share/rdctl with driver host`. */
export function targetName({ product, home, driver, settingsVersion }: Target): string {
  if (settingsVersion !== undefined)
    return `${product} (settings version ${settingsVersion}) at ${home ?? 'an unknown location'}`;
  return `${product} ${home === undefined ? '' : `at ${home} `}with driver ${driver}`;
}

/** Whether a value read from a file is a target. */
export function isTarget(value: unknown): value is JsonObject & Target {
  if (!isObject(value)) return false;
  const { product, driver, simulated, home } = value;
  const texts =
    typeof product === 'string' && typeof driver === 'string' && (home === undefined || typeof home === 'string');
  return texts && typeof simulated === 'boolean';
}
