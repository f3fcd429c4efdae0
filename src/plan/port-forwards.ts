import { RdError } from '../errors.ts';
import type { ForwardKey, ForwardReport, ForwardsReport } from '../features/port-forwards/forward.ts';
import { isObject, type JsonObject } from '../json.ts';
import type { Change, Plan, PlanRequest, WantedForwards } from './change.ts';
import { FORWARDS_PATH as PATH } from './history.ts';
import { extendedPlan } from './summary.ts';

export type { ForwardKey, ForwardsReport } from '../features/port-forwards/forward.ts';
export type { WantedForwards } from './change.ts';

/** Whether a value read from a file has this shape. */
export function isWantedForwards(value: unknown): value is JsonObject & WantedForwards {
  if (!isObject(value) || typeof value.exclusive !== 'boolean' || !Array.isArray(value.entries)) return false;
  return value.entries.every((entry) => {
    if (!isObject(entry) || typeof entry.namespace !== 'string' || typeof entry.service !== 'string') return false;
    const { k8sPort, hostPort } = entry;
    return (
      (typeof k8sPort === 'number' || typeof k8sPort === 'string') &&
      (hostPort === null || typeof hostPort === 'number')
    );
  });
}

/** The steps, ordered so that host ports never conflict: removals before additions. */
export interface ForwardSteps {
  remove: ForwardKey[];
  ensure: (ForwardKey & { hostPort: number })[];
}

export const NO_FORWARDS: WantedForwards = { entries: [], exclusive: false };

/** `default/web:80` */
export function forwardName({ namespace, service, k8sPort }: ForwardKey): string {
  return `${namespace}/${service}:${k8sPort}`;
}

/** True where a profile manages forwards. */
export function mentionsForwards({ entries, exclusive }: WantedForwards): boolean {
  return entries.length > 0 || exclusive;
}

/** The request with the forwards of a profile. */
export function withForwards(request: PlanRequest, portForwards: WantedForwards): PlanRequest {
  return mentionsForwards(portForwards) ? { ...request, portForwards } : request;
}

/** The forwards without these changes. */
export function forwardsWithout(desired: WantedForwards, changes: readonly Change[]): WantedForwards {
  const leaves = changes.flatMap(({ path, key }) => (path === PATH && key !== undefined ? [key] : []));
  if (leaves.length === 0) return desired;
  return { ...desired, entries: desired.entries.filter((entry) => !leaves.includes(forwardName(entry))), leaves };
}

/** The plan with the changes to forwards. `live` is `undefined` where they cannot be listed. */
export function withPortForwards(plan: Plan, desired: WantedForwards, live: ForwardsReport | undefined): Plan {
  if (!mentionsForwards(desired)) return plan;
  if (!live) return { ...plan, warnings: [...plan.warnings, ...unseenWarnings(desired)] };
  const present = new Map(live.portForwards.map((forward) => [forwardName(forward), forward]));
  const gone = removed(desired, present);
  const edits = desired.entries.flatMap((entry): Change[] => {
    const { hostPort } = entry;
    const before = present.get(forwardName(entry));
    if (hostPort === null || before?.hostPort === hostPort) return [];
    const change: Change = {
      path: PATH,
      key: forwardName(entry),
      action: before ? 'update' : 'create',
      ...(before ? { before: before.hostPort } : {}),
      after: hostPort,
      severity: 'live',
      reason: 'it listens on 127.0.0.1 while the cluster responds',
    };
    const obstacle = live.supported
      ? holderOf(hostPort, desired, present)
      : { by: 'unsupported' as const, message: `Port forwards: ${live.reason ?? 'there is no cluster'}.` };
    if (obstacle === undefined) return [change];
    return [{ ...change, severity: 'none', reason: 'not available', blocked: obstacle }];
  });
  const deletions = gone.map(
    (forward): Change => ({
      path: PATH,
      key: forwardName(forward),
      action: 'delete',
      before: forward.hostPort,
      severity: 'live',
      reason: 'its port is closed',
    }),
  );
  const closing = [...gone, ...moved(edits, present)].filter((forward) => forward.connections > 0);
  const radius = closing.map((forward) => ({
    what: `closes ${forward.connections} connection${forward.connections === 1 ? '' : 's'} through the forward ${forwardName(forward)}`,
    lost: false as const,
  }));
  return extendedPlan(plan, {
    after: [...deletions, ...edits],
    blastRadius: radius,
    warnings: failedWarnings(desired, present),
  });
}

/** The forwards once a plan is carried out. */
export function forwardsAfter({ changes }: Plan, live: ForwardsReport): ForwardsReport {
  const forwards = new Map(live.portForwards.map((forward) => [forwardName(forward), forward]));
  for (const { path, key = '', after, blocked } of changes) {
    if (path !== PATH || blocked) continue;
    if (typeof after !== 'number') forwards.delete(key);
    else
      forwards.set(key, {
        ...(forwards.get(key) ?? { ...forwardKeyOf(key), state: 'waiting', connections: 0 }),
        hostPort: after,
      });
  }
  return { ...live, portForwards: [...forwards.values()] };
}

/** The forward steps of an apply. */
export function forwardSteps(plan: Plan, desired: WantedForwards): ForwardSteps {
  const changes = plan.changes.filter(({ path, blocked }) => path === PATH && !blocked);
  const keyed = new Map(desired.entries.map((entry) => [forwardName(entry), entry]));
  const ensure = changes.flatMap(({ key = '', action, after }) => {
    const entry = keyed.get(key);
    return entry && action !== 'delete' && typeof after === 'number' ? [{ ...entry, hostPort: after }] : [];
  });
  const taken = new Set(ensure.map(({ hostPort }) => hostPort));
  // A forward that vacates another one's new port must be removed first.
  const remove = changes.filter(
    ({ action, before }) =>
      action === 'delete' || (action === 'update' && typeof before === 'number' && taken.has(before)),
  );
  return { ensure, remove: remove.map(({ key = '' }) => keyed.get(key) ?? forwardKeyOf(key)) };
}

/** The steps where existing forwards cannot be listed. */
export function blindSteps({ entries }: WantedForwards): ForwardSteps {
  return {
    remove: entries.filter(({ hostPort }) => hostPort === null),
    ensure: entries.flatMap((entry) => (entry.hostPort === null ? [] : [{ ...entry, hostPort: entry.hostPort }])),
  };
}

function removed(
  { entries, exclusive, leaves = [] }: WantedForwards,
  present: ReadonlyMap<string, ForwardReport>,
): ForwardReport[] {
  const keep = new Set([...leaves, ...entries.filter(({ hostPort }) => hostPort !== null).map(forwardName)]);
  const drop = new Set(entries.filter(({ hostPort }) => hostPort === null).map(forwardName));
  return [...present]
    .filter(([name]) => drop.has(name) || (exclusive && !keep.has(name)))
    .map(([, forward]) => forward);
}

function moved(changes: readonly Change[], present: ReadonlyMap<string, ForwardReport>): ForwardReport[] {
  return changes.flatMap(({ action, key = '', blocked }) => {
    const forward = present.get(key);
    return action === 'update' && !blocked && forward ? [forward] : [];
  });
}

/** Why a host port is unavailable: another forward, which the profile leaves alone, uses it. */
function holderOf(
  hostPort: number,
  desired: WantedForwards,
  present: ReadonlyMap<string, ForwardReport>,
): Change['blocked'] {
  if (desired.exclusive) return undefined;
  const managed = new Set(desired.entries.map(forwardName));
  const holder = [...present].find(([name, forward]) => forward.hostPort === hostPort && !managed.has(name));
  if (!holder) return undefined;
  return {
    by: 'unsupported',
    message: `127.0.0.1:${hostPort} is forwarded to ${holder[0]}, which the profile leaves alone.`,
    advice: 'Choose another host port, or name the forward that has it in the profile, too.',
  };
}

function failedWarnings({ entries }: WantedForwards, present: ReadonlyMap<string, ForwardReport>): string[] {
  return entries.flatMap((entry) => {
    const forward = present.get(forwardName(entry));
    if (forward?.state !== 'failed' || forward.hostPort !== entry.hostPort) return [];
    return [`The forward ${forwardName(entry)} cannot be opened: ${forward.reason ?? 'unknown reason'}.`];
  });
}

function unseenWarnings({ entries, exclusive }: WantedForwards): string[] {
  const names = entries.map((entry) => `${forwardName(entry)} → ${entry.hostPort ?? '(removed)'}`);
  const sent = `Port forwards cannot be seen there, so every apply sends them again: ${names.join(', ')}.`;
  const prune = 'Port forwards cannot be seen there, so prune removes none.';
  return [...(names.length > 0 ? [sent] : []), ...(exclusive ? [prune] : [])];
}

/** The key of a forward with this name: no part of a name contains a slash or a colon. */
export function forwardKeyOf(name: string): ForwardKey {
  const [, namespace = '', service = '', port = ''] = /^([^/]*)\/([^:]*):(.*)$/.exec(name) ?? [];
  return { namespace, service, k8sPort: /^\d+$/.test(port) ? Number(port) : port };
}

/** For the `catch` of a call that makes or removes a forward: rethrows its failure with the forward's name. */
export function throwForwardFailure(name: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof RdError) || error.message.includes(name)) throw error;
    throw new RdError(error.code, `The forward ${name} could not be set: ${error.message}.`, {
      cause: error,
      details: error.details,
      advice: error.advice ?? 'Choose another host port or see what holds this one, and apply again.',
    });
  };
}
