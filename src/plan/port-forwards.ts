import { RdError } from '../errors.ts';
import { isObject, type JsonObject } from '../json.ts';
import type { BlastItem, Change, ForwardKey, PlanRequest, WantedForwards } from './change.ts';
import { FORWARDS_PATH as PATH } from './history.ts';

/** A requested forward. With `hostPort` 0, the system allocates the local port. */
export interface DesiredForward extends ForwardKey {
  hostPort: number;
}

/**
 * A forward with its state. `waiting`: the cluster is not running, and the forward opens with it. `failed`: it cannot be opened, for the given
 * reason.
 */
export interface ForwardReport extends DesiredForward {
  state: 'listening' | 'waiting' | 'failed';
  reason?: string;
  /** Connections open now. */
  connections: number;
  /** Error of the last failed connection; absent since the forward was opened. */
  lastError?: string;
}

/** The document of `GET /v2/port_forwards`. */
export interface ForwardsReport {
  kind: 'PortForwards';
  formatVersion: 1;
  /** False for a driver without a reachable cluster; `reason` says why. */
  supported: boolean;
  reason?: string;
  portForwards: ForwardReport[];
}

/** True if a value read from a file has the shape of wanted forwards. */
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

/** Steps ordered so that host ports never conflict: removals before additions. */
export interface ForwardSteps {
  remove: ForwardKey[];
  ensure: DesiredForward[];
}

export const NO_FORWARDS: WantedForwards = { entries: [], exclusive: false };

/** Formats `default/web:80`. */
export function forwardName({ namespace, service, k8sPort }: ForwardKey): string {
  return `${namespace}/${service}:${k8sPort}`;
}

/** Explains that a driver has no forwards, as a clause. */
export function noCluster(driver: string): string {
  return `the ${driver} driver has no cluster`;
}

/** True if a profile manages forwards. */
export function mentionsForwards({ entries, exclusive }: WantedForwards): boolean {
  return entries.length > 0 || exclusive;
}

/** Returns the request with the forwards of a profile. */
export function withForwards(request: PlanRequest, portForwards: WantedForwards): PlanRequest {
  return mentionsForwards(portForwards) ? { ...request, portForwards } : request;
}

/** Returns the forwards without these fields of a request. */
export function forwardsWithout(
  desired: WantedForwards,
  fields: readonly Pick<Change, 'path' | 'key'>[] = [],
): WantedForwards {
  const left = fields.flatMap(({ path, key }) => (path === PATH && key !== undefined ? [key] : []));
  if (left.length === 0) return desired;
  const entries = desired.entries.filter((entry) => !left.includes(forwardName(entry)));
  return { ...desired, entries, leaves: [...(desired.leaves ?? []), ...left] };
}

/** The forwards' part of a plan: the changes, the steps that carry them out, and the forwards afterwards. */
export interface PlannedForwards {
  changes: Change[];
  blastRadius: BlastItem[];
  warnings: string[];
  steps: ForwardSteps;
  /** Absent if the forwards cannot be listed. */
  after?: ForwardsReport;
}

/** Plans the forwards of a request. If `live` is undefined because they cannot be listed, the steps are everything that the request asks for. */
export function planForwards(desired: WantedForwards, live: ForwardsReport | undefined): PlannedForwards {
  if (!live) return { changes: [], blastRadius: [], warnings: unseenWarnings(desired), steps: blindSteps(desired) };
  const present = new Map(live.portForwards.map((forward) => [forwardName(forward), forward]));
  const after = new Map(present);
  const ensure: ForwardSteps['ensure'] = [];
  const gone = removals(desired, present);
  for (const forward of gone) after.delete(forwardName(forward));
  const edits = desired.entries.flatMap((entry): Change[] => {
    const { hostPort } = entry;
    const name = forwardName(entry);
    const before = present.get(name);
    if (hostPort === null || before?.hostPort === hostPort) return [];
    const change: Change = {
      path: PATH,
      key: name,
      action: before ? 'update' : 'create',
      ...(before ? { before: before.hostPort } : {}),
      after: hostPort,
      severity: 'live',
      reason: 'it listens on 127.0.0.1 while the cluster responds',
    };
    const obstacle = live.supported
      ? holderOf(hostPort, desired, present)
      : { by: 'unsupported' as const, message: `Port forwards: ${live.reason ?? 'there is no cluster'}.` };
    if (obstacle) return [{ ...change, severity: 'none', reason: 'not available', blocked: obstacle }];
    ensure.push({ ...entry, hostPort });
    after.set(name, { ...(before ?? { ...entry, state: 'waiting', connections: 0 }), hostPort });
    return [change];
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
  const moved = ensure.flatMap((entry) => present.get(forwardName(entry)) ?? []);
  const taken = new Set(ensure.map(({ hostPort }) => hostPort));
  const closing = [...gone, ...moved].filter((forward) => forward.connections > 0);
  return {
    changes: [...deletions, ...edits],
    blastRadius: closing.map((forward) => ({
      what: `closes ${forward.connections} connection${forward.connections === 1 ? '' : 's'} through the forward ${forwardName(forward)}`,
      lost: false,
    })),
    warnings: failedWarnings(desired, present),
    steps: {
      ensure,
      // A forward that vacates another one's new port must be removed first.
      remove: [...gone, ...moved.filter(({ hostPort }) => taken.has(hostPort))].map(keyOf),
    },
    after: { ...live, portForwards: [...after.values()] },
  };
}

/** Returns the steps to take if existing forwards cannot be listed. */
function blindSteps({ entries }: WantedForwards): ForwardSteps {
  return {
    remove: entries.filter(({ hostPort }) => hostPort === null),
    ensure: entries.flatMap((entry) => (entry.hostPort === null ? [] : [{ ...entry, hostPort: entry.hostPort }])),
  };
}

function removals(
  { entries, exclusive, leaves = [] }: WantedForwards,
  present: ReadonlyMap<string, ForwardReport>,
): ForwardReport[] {
  const keep = new Set([...leaves, ...entries.filter(({ hostPort }) => hostPort !== null).map(forwardName)]);
  const drop = new Set(entries.filter(({ hostPort }) => hostPort === null).map(forwardName));
  return [...present]
    .filter(([name]) => drop.has(name) || (exclusive && !keep.has(name)))
    .map(([, forward]) => forward);
}

/** Returns the reason that a host port is unavailable: it belongs to another forward, which the profile leaves alone. Undefined if it is free. */
function holderOf(
  hostPort: number,
  { entries, exclusive, leaves = [] }: WantedForwards,
  present: ReadonlyMap<string, ForwardReport>,
): Change['blocked'] {
  const managed = new Set(entries.map(forwardName));
  const stays = (name: string) => (exclusive ? leaves.includes(name) : !managed.has(name));
  const holder = [...present].find(([name, forward]) => forward.hostPort === hostPort && stays(name));
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

function keyOf({ namespace, service, k8sPort }: ForwardKey): ForwardKey {
  return { namespace, service, k8sPort };
}

/** Parses the name of a forward into its key. No part of a name contains a slash or a colon. */
export function forwardKeyOf(name: string): ForwardKey {
  const [, namespace = '', service = '', port = ''] = /^([^/]*)\/([^:]*):(.*)$/.exec(name) ?? [];
  return { namespace, service, k8sPort: /^\d+$/.test(port) ? Number(port) : port };
}

/** Returns a handler for the `catch` of a call that makes or removes a forward; it rethrows the failure with the forward's name. */
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
