import { RdError } from '../../errors.ts';
import type { JsonObject } from '../../json.ts';
import { assumeObserved } from '../../plan/assumed.ts';
import type { BlastItem, Change, PlanRequest, Target } from '../../plan/change.ts';
import type { Deed, PlannedDeed } from '../../plan/deed.ts';
import { EXTENSIONS } from '../../plan/diff.ts';
import { withoutFields } from '../../plan/leave-out.ts';
import { makePlan } from '../../plan/plan.ts';
import { NO_FORWARDS, planForwards } from '../../plan/port-forwards.ts';
import { powerChange } from '../../plan/runtime-changes.ts';
import { summarize } from '../../plan/summary.ts';
import { COMPATIBLE } from '../../product.ts';
import type { BackendState } from '../../reconcile/contract.ts';
import { DEFAULT_BLOCKS } from '../../settings/blocks.gen.ts';
import { isBlockPath } from '../../settings/blocks.ts';
import { fillDefaults } from '../../settings/defaults.ts';
import { FIELDS } from '../../settings/fields.gen.ts';
import { fieldAt, settingAt } from '../../settings/fields.ts';
import { SCHEMA_VERSION } from '../../settings/settings.gen.ts';
import type { Proposal } from '../contract.ts';
import { ANY_DRIVER, ANY_HOST } from '../offline.ts';
import { absence, type ForeignSettings, foreignPlace, locksAtNewest, toForeign } from './shape.ts';

/** Facts about the application on which a plan is based. */
export interface ForeignFacts {
  settings: ForeignSettings;
  /** Lock record in the application's shape. */
  locks: JsonObject;
  vmState: BackendState;
  target: Target;
  /** Sends `PUT /v1/propose_settings`, with a body in the application's shape. */
  propose(body: JsonObject): Promise<Proposal>;
}

/** The reply to a proposal, or the reason why there was none. */
type Answer = { kind: 'proposal'; proposal: Proposal } | { kind: 'unknown'; why: string };

const NO_CHANGES: Answer = { kind: 'proposal', proposal: {} };

/** Refusals that concern permission, as opposed to invalid values, by their text. */
const REFUSALS: readonly [RegExp, 'lock' | 'unsupported'][] = [
  [/^field "([^"]+)" is locked$/, 'lock'],
  [/^Changing field "([^"]+)" via the API isn't supported\.$/, 'unsupported'],
];

/**
 * Plans for another application: the difference to its settings, with the costs it reports, or those of the schema, marked estimated. Throws
 * `ERR_SETTINGS_INVALID` for values that it rejects.
 */
export async function foreignPlan(request: PlanRequest, facts: ForeignFacts): Promise<PlannedDeed> {
  const { settings, target, vmState } = facts;
  const live = fillDefaults(settings.known, ANY_HOST);
  const locks = locksAtNewest(facts.locks, settings.version);
  const last = { settings: live, ...DEFAULT_BLOCKS };
  const planned = (blocked: readonly Change[]) =>
    makePlan({
      request: withoutFields(request, blocked),
      ...{ live, ...DEFAULT_BLOCKS, locks, target, driver: ANY_DRIVER, lockedBy: 'the application' },
      power: 'started',
      observed: assumeObserved({ seen: undefined, last, driver: ANY_DRIVER, reason: 'only the application knows' }),
      generation: 1,
    });
  const { tag: _, userFiles: __, ...base } = planned([]).plan;
  const known = base.changes.filter(({ path }) => path !== 'state').map((change) => withoutPlace(change, settings));
  const deedOf = (changes: readonly Change[]) => planned(changes.filter(({ blocked }) => blocked)).deed;
  const { changes, answer, deed } = await evaluateChanges(known, deedOf, facts);
  const power = powerChangeOf(request, vmState);
  if (power) changes.push(power);
  const pending = answer.kind === 'proposal' ? await pendingOf(facts) : [];
  const open = changes.filter(({ blocked }) => !blocked);
  const restart = open.some(
    ({ severity, path }) => path !== 'state' && (severity === 'restart' || severity === 'reset'),
  );
  const blastRadius = blastRadiusOf(open, restart && vmState !== 'STOPPED');
  const summary = summarize({ changes, blastRadius, restart, pending: pending.length > 0 });
  const plan = { ...base, generation: 1, changes, blastRadius, pendingRestart: pending };
  const unseen = planForwards(request.portForwards ?? NO_FORWARDS, undefined).warnings;
  const version = versionWarning(settings);
  if (answer.kind === 'proposal') {
    return { plan: { ...plan, basis: 'service', warnings: [...version, ...unseen], summary }, deed };
  }
  const text = summary.text.replace(', nothing is lost', ', estimated');
  const costs = `The application did not report the cost of the changes (${answer.why}); costs are estimates.`;
  const warnings = [...version, costs, ...unseen];
  return { plan: { ...plan, basis: 'estimated', warnings, summary: { ...summary, text } }, deed };
}

/** Lists the parts of the application that the open changes stop, interrupt or delete. `interrupts` means that the running backend restarts. */
function blastRadiusOf(open: readonly Change[], interrupts: boolean): BlastItem[] {
  const stops = open.some(({ path, after }) => path === 'state' && after === 'stopped');
  const verb = stops ? 'stops' : interrupts ? 'interrupts' : undefined;
  const resets = open.some(({ severity }) => severity === 'reset');
  return [
    ...(verb ? [{ what: `${verb} everything running there (not counted)`, lost: false as const }] : []),
    ...(resets
      ? [
          {
            what: 'deletes the workloads and data of the cluster',
            lost: true as const,
            consent: 'kubernetes-reset' as const,
          },
        ]
      : []),
  ];
}

/**
 * Returns the changes with their costs; those that the application does not permit are blocked. Any other rejection is an invalid value, for which no
 * plan can be made.
 */
async function evaluateChanges(
  changes: readonly Change[],
  deedOf: (changes: readonly Change[]) => Deed,
  facts: ForeignFacts,
): Promise<{ changes: Change[]; answer: Answer; deed: Deed }> {
  const { version } = facts.settings;
  let open = [...changes];
  for (;;) {
    const deed = deedOf(open);
    const answer = deed.patch ? await ask(toForeign(deed.patch, version), facts) : NO_CHANGES;
    if (answer.kind === 'unknown') return { changes: open, answer, deed };
    if (answer.kind === 'proposal') {
      return { changes: open.map((change) => withCost(change, answer.proposal, facts)), answer, deed };
    }
    const next = open.map((change) => blockedByRefusal(change, answer.error, version));
    // Each round blocks at least one change, so this terminates.
    if (next.every((change, index) => change === open[index])) throw answer.error;
    open = next;
  }
}

function withoutPlace(change: Change, settings: ForeignSettings): Change {
  if (change.blocked) return change;
  if (isBlockPath(change.path)) {
    const block = change.path.split('.')[0];
    const message = `The ${block} block is for rdctl; this application has no such settings.`;
    return blockChange(change, 'unsupported', message);
  }
  const field = settingAt(change.path);
  if (!field) return change;
  const message = absence(field.path, settings);
  return message === undefined ? change : blockChange(change, 'unsupported', message);
}

function blockChange(change: Change, by: 'lock' | 'unsupported', message: string): Change {
  return { ...change, severity: 'none', reason: 'not available', blocked: { by, message } };
}

async function ask(body: JsonObject, { propose }: ForeignFacts): Promise<Answer | { kind: 'refused'; error: RdError }> {
  try {
    return { kind: 'proposal', proposal: await propose(body) };
  } catch (error) {
    if (!(error instanceof RdError) || error.code === 'ERR_CANCELLED') throw error;
    if (error.code === 'ERR_SETTINGS_INVALID') return { kind: 'refused', error };
    return { kind: 'unknown', why: error.message };
  }
}

function blockedByRefusal(change: Change, error: RdError, version: number): Change {
  if (change.blocked) return change;
  for (const line of error.message.split('\n')) {
    for (const [pattern, by] of REFUSALS) {
      if (pattern.exec(line)?.[1] === foreignPlace(change.path, version)) return blockChange(change, by, line);
    }
  }
  return change;
}

/** Adds the reported cost of a change. The application also returns entries without `desired` for fields that were not proposed; they are ignored. */
function withCost(change: Change, proposal: Proposal, { settings, vmState }: ForeignFacts): Change {
  if (change.blocked || change.path === EXTENSIONS) return change;
  const entry = proposal[foreignPlace(change.path, settings.version)];
  if (entry?.desired !== undefined) {
    if (entry.severity === 'reset') {
      return {
        ...change,
        action: 'replace',
        severity: 'reset',
        reason: 'a lower version deletes the cluster data',
      };
    }
    const idle = vmState === 'STOPPED';
    const reason = idle ? 'the application starts its backend to apply it' : 'the application restarts to apply it';
    return { ...change, severity: 'restart', reason };
  }
  const effect = fieldAt(change.path)?.effect;
  const live = vmState !== 'STOPPED' && (effect?.lima === 'live' || effect?.wsl === 'live');
  const action = change.action === 'replace' ? 'update' : change.action;
  return live
    ? { ...change, action, severity: 'live', reason: 'applied to the running backend' }
    : { ...change, action, severity: 'none', reason: 'applied without a restart' };
}

function powerChangeOf({ state }: PlanRequest, vmState: BackendState): Change | undefined {
  const before = vmState === 'STOPPED' || vmState === 'STOPPING' ? 'stopped' : 'started';
  return state === 'unmanaged' || state === before ? undefined : powerChange(state);
}

/** Returns settings accepted but not yet applied: proposing all its own settings reveals them. */
async function pendingOf({ settings, propose }: ForeignFacts): Promise<string[]> {
  const proposal = await propose(settings.raw).catch((error: unknown) => {
    if (error instanceof RdError && error.code !== 'ERR_CANCELLED') return {};
    throw error;
  });
  return Object.entries(proposal).flatMap(([path, { current, desired }]) => {
    if (desired === undefined) return [];
    const secret = FIELDS.some((field) => field.sensitive && field.path === path);
    const shown = (value: unknown) => (secret ? '(secret)' : JSON.stringify(value));
    return [`${path}: runs with ${shown(current)}, should be ${shown(desired)}`];
  });
}

function versionWarning({ version }: ForeignSettings): string[] {
  if (version <= SCHEMA_VERSION) return [];
  return [
    `${COMPATIBLE.productName} has settings version ${version}; rdctl supports ${SCHEMA_VERSION}: only settings named in the profile are changed.`,
  ];
}
