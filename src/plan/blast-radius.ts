import type { EngineName, EngineStatus, RunningContainer } from '../drivers/driver.ts';
import { wordList } from '../settings/printable.ts';
import { ENGINE_NAMES, type Goal, installedVersion } from './backend.ts';
import type { BlastItem } from './change.ts';
import type { Consequences } from './consequences.ts';

/** The planned state and the observed one. */
export interface BlastInput {
  consequences: Consequences;
  /** The plan requests a lower cluster version than the installed one, whether or not the cluster will run now. */
  downgrade: boolean;
}

type Running = Extract<EngineStatus, { state: 'running' }>;

/**
 * Lists everything that applying a plan interrupts, hides or destroys, worst last; empty if nothing running is
 * affected. An unknown running state is listed first, and the rest is then possible impact.
 */
export function blastRadius(input: BlastInput): BlastItem[] {
  const { goal, observed, engines: ends } = input.consequences;
  const engines = ENGINE_NAMES.flatMap((name): (BlastItem | undefined)[] => {
    const engine = observed.engines[name];
    if (!ends[name].mustStop) return [];
    if (engine.state !== 'running') return unanswered(name, goal);
    return [stoppedItem(name, engine, goal), ...hidden(name, engine, goal)];
  });
  return [
    ...(observed.assumed === undefined
      ? []
      : [{ what: `running state unknown: ${observed.assumed}`, lost: false as const }]),
    ...engines.filter((item) => item !== undefined),
    ...clusterItems(input),
  ];
}

function stoppedItem(name: EngineName, { workload, spec }: Running, goal: Goal): BlastItem | undefined {
  const count = workload.runningContainers;
  if (count === 0) return undefined;
  if (count === undefined) return { what: `stops the containers in ${name} (not counted)`, lost: false };
  const { running } = workload;
  if (running?.length !== count) return { what: `stops ${plural(count, 'container')}`, lost: false };
  const own = running.filter(({ pod }) => !pod);
  const what = `stops ${stoppedNames(own, count - own.length)}`;
  return { what: [what, ...containerFates(name, own, spec, goal)].join('; '), lost: false };
}

/** Formats `3 containers: web, db and cache`, followed by the number of cluster pods, whose names users do not know. */
function stoppedNames(own: readonly RunningContainer[], pods: number): string {
  const clusterContainers = pods === 0 ? [] : [`${plural(pods, 'container')} of the cluster`];
  const named = own.length === 0 ? [] : [`${plural(own.length, 'container')}: ${namesOf(own)}`];
  return [...named, ...clusterContainers].join(', and ');
}

/** Describes which containers restart automatically and which do not. */
function containerFates(
  name: EngineName,
  own: readonly RunningContainer[],
  spec: Running['spec'],
  goal: Goal,
): string[] {
  if (hidesWithStorage(name, spec, goal)) return [];
  const back = own.filter(({ returns }) => returns === true);
  const down = own.filter(({ returns }) => returns === false);
  const unsure = own.filter(({ returns }) => returns === undefined);
  const subject = (some: readonly RunningContainer[]) =>
    some.length < own.length ? namesOf(some) : some.length === 1 ? 'it' : 'all';
  const verb = (some: readonly RunningContainer[], one: string, more: string) => (some.length === 1 ? one : more);
  const restarts = goal.on && !isSwitch(name, goal);
  const how = restarts ? `by ${verb(back, 'itself', 'themselves')}` : `when ${name} does`;
  const clauses = [
    ...(back.length > 0 ? [`${subject(back)} ${verb(back, 'starts', 'start')} again ${how}`] : []),
    ...(restarts && down.length > 0 ? [`${subject(down)} ${verb(down, 'stays', 'stay')} down`] : []),
    ...(restarts && unsure.length > 0 ? [`${subject(unsure)} may start again`] : []),
  ];
  return clauses.length === 0 ? [] : [clauses.join(', ')];
}

const MAX_NAMES = 5;

/** Formats `web, db and cache`; beyond five names, the number of the rest. */
function namesOf(containers: readonly RunningContainer[]): string {
  const names = containers.slice(0, MAX_NAMES).map(({ name }) => name);
  const more = containers.length - names.length;
  return wordList(more > 0 ? [...names, `${more} more`] : names);
}

/** An engine that does not answer may hold anything, so nothing is promised about it. */
function unanswered(name: EngineName, goal: Goal): BlastItem[] {
  const stops = `stops an unknown number of containers in ${name}: the engine does not answer`;
  return [{ what: stops, lost: false }, ...(isSwitch(name, goal) ? [hiddenWhatever(name, goal)] : [])];
}

function isSwitch(name: EngineName, goal: Goal): boolean {
  return goal.on && goal.engine.name !== name;
}

function hiddenWhatever(name: EngineName, goal: Goal): BlastItem {
  return { what: `whatever is in ${name} stays with it and is not visible in ${goal.engine.name}`, lost: false };
}

function hidden(name: EngineName, { workload, spec }: Running, goal: Goal): BlastItem[] {
  const things = inventory(workload);
  const uncounted = workload.images === undefined && workload.containers === undefined;
  if (uncounted && isSwitch(name, goal)) return [hiddenWhatever(name, goal)];
  if (!goal.on || things === '') return [];
  if (isSwitch(name, goal)) {
    const what = `${things} ${one(things) ? 'stays' : 'stay'} with ${name} and ${one(things) ? 'is' : 'are'} not visible in ${goal.engine.name}`;
    return [{ what, lost: false }];
  }
  if (hidesWithStorage(name, spec, goal)) {
    const what = `${things} may be invisible with storage driver ${goal.engine.storageDriver}, until ${spec.storageDriver} is back`;
    return [{ what, lost: false }];
  }
  return [];
}

/** Each storage driver of moby has its own images and containers. */
function hidesWithStorage(name: EngineName, spec: Running['spec'], goal: Goal): boolean {
  return name === 'moby' && !isSwitch(name, goal) && spec.storageDriver !== goal.engine.storageDriver;
}

function clusterItems({ consequences: { goal, observed, cluster }, downgrade }: BlastInput): BlastItem[] {
  const items: BlastItem[] = [];
  if (cluster.mustStop) {
    const silent = observed.cluster.state === 'unresponsive' ? ', which does not answer' : '';
    items.push({ what: `${interrupted(goal)}${silent}`, lost: false });
  }
  const installed = installedVersion(observed);
  if (installed === undefined) return items;
  if (cluster.mustReset) {
    items.push({ what: deletion(installed), lost: true, consent: 'kubernetes-reset' });
  } else if (downgrade) {
    items.push({ what: `${deletion(installed)} when it next starts`, lost: true, consent: 'kubernetes-reset' });
  }
  return items;
}

/** Describes the loss of the cluster's data. `installed`: its version, or `''` if the version is unknown. */
export function deletion(installed: string): string {
  return installed === ''
    ? 'deletes the workloads and data of the cluster, should a newer one be installed,'
    : `deletes the workloads and data of the cluster (version ${installed})`;
}

function interrupted(goal: Goal): string {
  const back = goal.on && goal.cluster !== undefined;
  return back ? 'interrupts the workloads of the cluster while it restarts' : 'stops the workloads of the cluster';
}

function inventory({ images, containers }: Running['workload']): string {
  const parts = [plural(images, 'image'), plural(containers, 'container')].filter((part) => part !== '');
  return parts.join(' and ');
}

/** Formats `1 image` or `2 images`; empty for zero or unknown. */
function plural(count: number | undefined, noun: string): string {
  if (!count) return '';
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function one(things: string): boolean {
  return /^1 \w+$/.test(things);
}
