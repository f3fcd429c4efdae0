import { RdError } from '../errors.ts';
import type { JsonObject } from '../json.ts';
import type { BlastItem, Change, Plan, PlanRequest, Target } from '../plan/change.ts';
import { EXTENSIONS, patchOf } from '../plan/diff.ts';
import { estimatePlan } from '../plan/offline.ts';
import { powerChange } from '../plan/runtime-changes.ts';
import { summarize } from '../plan/summary.ts';
import { COMPATIBLE } from '../product.ts';
import type { BackendState } from '../reconcile/contract.ts';
import { fillDefaults } from '../settings/defaults.ts';
import { FIELDS } from '../settings/fields.gen.ts';
import { fieldAt } from '../settings/fields.ts';
import { SCHEMA_VERSION } from '../settings/settings.gen.ts';
import type { Proposal } from './client.ts';
import { absence, type ForeignSettings, foreignPlace, locksAtNewest, toForeign } from './foreign-shape.ts';
import { ANY_HOST } from './offline.ts';

/** The facts about the application that a plan is based on. */
export interface ForeignFacts {
  settings: ForeignSettings;
  /** In the application's shape. */
  locks: JsonObject;
  vmState: BackendState;
  target: Target;
  /** `PUT /v1/propose_settings`: takes a body in the application's shape. */
  propose(body: JsonObject): Promise<Proposal>;
}

/** The reply to a proposal, or why there was none. */
type Answer = { kind: 'proposal'; proposal: Proposal } | { kind: 'unknown'; why: string };

const NO_CHANGES: Answer = { kind: 'proposal', proposal: {} };

/** Lines of a refusal about what may be changed, as opposed to invalid values. */
const REFUSALS: readonly [RegExp, 'lock' | 'unsupported'][] = [
  [/^field "([^"]+)" is locked$/, 'lock'],
  [/^Changing field "([^"]+)" via the API isn't supported\.$/, 'unsupported'],
];

/**
 * A plan for another application: the difference to its settings, with the costs it reports, or those of the schema,
 * marked estimated. Throws `ERR_SETTINGS_INVALID` for values that it rejects.
 */
export async function foreignPlan(request: PlanRequest, facts: ForeignFacts): Promise<Plan> {
  const { settings, target, vmState } = facts;
  const live = fillDefaults(settings.known, ANY_HOST);
  const locks = locksAtNewest(facts.locks, settings.version);
  const base = estimatePlan({ request, base: live, locks, lockedBy: 'the application', target });
  const known = base.changes.map((change) => withoutPlace(change, settings));
  const { changes, answer } = await judged(known, (open) => patchOf({ ...base, changes: open }, request, live), facts);
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
  const warnings = versionWarning(settings);
  if (answer.kind === 'proposal') return { ...plan, basis: 'service', warnings, summary };
  const text = summary.text.replace(', nothing is lost', ', estimated');
  const costs = `The application did not report the cost of the changes (${answer.why}); costs are estimates.`;
  return { ...plan, basis: 'estimated', warnings: [...warnings, costs], summary: { ...summary, text } };
}

/** What the open changes stop, interrupt or delete there. `interrupts`: the running backend restarts. */
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
 * The changes with their costs; those that the application does not permit are blocked. Any other rejection is an
 * invalid value, for which no plan can be made.
 */
async function judged(
  changes: readonly Change[],
  bodyOf: (open: Change[]) => JsonObject | undefined,
  facts: ForeignFacts,
): Promise<{ changes: Change[]; answer: Answer }> {
  const { version } = facts.settings;
  let open = [...changes];
  for (;;) {
    const body = bodyOf(open);
    const answer = body ? await ask(toForeign(body, version), facts) : NO_CHANGES;
    if (answer.kind === 'unknown') return { changes: open, answer };
    if (answer.kind === 'proposal') {
      return { changes: open.map((change) => withCost(change, answer.proposal, facts)), answer };
    }
    const next = open.map((change) => blockedByRefusal(change, answer.error, version));
    // Each round blocks at least one change, so this terminates.
    if (next.every((change, index) => change === open[index])) throw answer.error;
    open = next;
  }
}

function withoutPlace(change: Change, settings: ForeignSettings): Change {
  const field = fieldAt(change.path);
  if (change.blocked || !field) return change;
  const message = absence(field.path, settings);
  return message === undefined ? change : blockedBy(change, 'unsupported', message);
}

function blockedBy(change: Change, by: 'lock' | 'unsupported', message: string): Change {
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
      if (pattern.exec(line)?.[1] === foreignPlace(change.path, version)) return blockedBy(change, by, line);
    }
  }
  return change;
}

/** The application returns entries without `desired` for fields that were not proposed; they are no change of ours. */
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

/** Settings accepted but not yet applied: proposing all its own settings reveals them. */
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
