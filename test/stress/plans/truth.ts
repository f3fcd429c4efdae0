import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import type { Model, StepRecord } from '../../../src/drivers/machines/simulated/model.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../src/json.ts';
import type { Change, Plan } from '../../../src/plan/change.ts';
import { isRuntimeChange } from '../../../src/plan/runtime-changes.ts';
import { FIELDS } from '../../../src/settings/fields.gen.ts';
import { leafAt, leaves } from '../../../src/settings/leaf-paths.ts';
import type { Facts, Power } from './desk.ts';
import type { Profile } from './steps.ts';

/** What a change does, without its cost. */
type Deed = Pick<Change, 'path' | 'key' | 'before' | 'after'>;

export function deedOf({ path, key, before, after }: Change): Deed {
  return {
    path,
    ...(key === undefined ? {} : { key }),
    ...(before === undefined ? {} : { before }),
    ...(after === undefined ? {} : { after }),
  };
}

/** Only settings: no power, nothing that runs, no port forwards. */
export function settingDeeds(changes: readonly Change[]): Deed[] {
  return changes
    .filter((change) => !isRuntimeChange(change) && change.path !== 'state' && change.path !== 'portForwards')
    .map(deedOf)
    .sort(byName);
}

function byName(one: Deed, other: Deed): number {
  const [a, b] = [one, other].map(({ path, key = '' }) => `${path} ${key}`);
  return a === b ? 0 : (a ?? '') < (b ?? '') ? -1 : 1;
}

/** The settings that a profile requests, derived from the two documents alone. */
export function wantedDeeds(before: JsonObject, { settings, prune = [] }: Profile): Deed[] {
  const found: Deed[] = [];
  for (const { path, type } of FIELDS) {
    const [old, wanted] = [leafAt(before, path), leafAt(settings, path)];
    if (type.startsWith('map<')) {
      const present = isObject(old) ? old : {};
      const asked = isObject(wanted) ? wanted : {};
      for (const key of new Set([...Object.keys(present), ...Object.keys(asked)])) {
        const after = Object.hasOwn(asked, key) ? asked[key] : prune.includes(path) ? null : present[key];
        if (isDeepStrictEqual(after ?? undefined, present[key])) continue;
        found.push({
          path,
          key,
          ...(present[key] === undefined ? {} : { before: present[key] }),
          ...(after === null || after === undefined ? {} : { after }),
        });
      }
    } else if (wanted !== undefined && path !== 'version' && !isDeepStrictEqual(wanted, old)) {
      found.push({ path, ...(old === undefined ? {} : { before: old }), after: wanted });
    }
  }
  return found.sort(byName);
}

/** The settings after a profile, derived from the two documents alone. */
export function settingsAfter(before: JsonObject, profile: Profile): [string, JsonValue][] {
  return leaves(before).map(([path, old]) => {
    const wanted = leafAt(profile.settings, path);
    if (!isObject(old)) return [path, wanted === undefined || path === 'version' ? old : wanted];
    const kept = profile.prune?.includes(path) ? {} : old;
    const entries = Object.entries({ ...kept, ...(isObject(wanted) ? wanted : {}) });
    return [path, Object.fromEntries(entries.filter(([, value]) => value !== null).sort())];
  });
}

export function sorted(settings: JsonObject): [string, JsonValue][] {
  return leaves(settings).map(([path, value]) => [
    path,
    isObject(value) ? Object.fromEntries(Object.entries(value).sort()) : value,
  ]);
}

/** The steps performed in between, in order. */
function stepsBetween(before: Model, after: Model): StepRecord[] {
  const last = before.log.at(-1);
  const from = last === undefined ? 0 : after.log.findLastIndex((each) => isDeepStrictEqual(each, last)) + 1;
  return after.log.slice(from).filter(({ outcome }) => outcome === 'done');
}

/** What runs must match settings and power. */
export function checkWorld({ model, settings }: Facts, power: Power): void {
  const engine = String(leafAt(settings ?? {}, 'containerEngine.name'));
  const cluster = leafAt(settings ?? {}, 'kubernetes.enabled') === true;
  const found = {
    machine: model.machine.state === 'on',
    engines: Object.entries(model.engines).flatMap(([name, { process }]) =>
      process.state === 'stopped' ? [] : [name],
    ),
    cluster: model.cluster.state === 'running',
  };
  expect(found).toEqual(
    power === 'started'
      ? { machine: true, engines: [engine], cluster }
      : { machine: false, engines: [], cluster: false },
  );
  if (model.machine.state === 'on')
    expect(model.machine.spec.memoryGiB).toBe(leafAt(settings ?? {}, 'virtualMachine.memoryInGB'));
  const wanted = leafAt(settings ?? {}, 'kubernetes.version');
  if (model.cluster.state === 'running' && wanted !== '') expect(model.cluster.installedVersion).toBe(wanted);
}

/** Nothing happened that the plan did not predict, and its statement on losses is true. `before` is a state without unfinished work. */
export function checkCost(plan: Plan, before: Model, after: Model): void {
  const steps = stepsBetween(before, after);
  const done = steps.map((step) => `${step.part} ${step.do}`);
  const ended = steps.filter((step) => step.do === 'stop' && ranIn(before, step.part));
  const { summary, changes, blastRadius } = plan;
  const open = changes.filter(({ blocked }) => !blocked).map(({ severity }) => severity);
  const halts = open.includes('restart') || open.includes('reset');
  const gone = goneContainers(before, after);
  if (open.every((severity) => severity === 'none')) expect(done).toEqual([]);
  if (!halts) expect(ended).toEqual([]);
  for (const part of ['machine', 'moby', 'containerd', 'cluster']) {
    expect(steps.filter((step) => step.part === part && step.do === 'start').length).toBeLessThanOrEqual(1);
  }
  if (gone.length > 0 || ended.some(({ part }) => part === 'cluster')) {
    expect(blastRadius).not.toEqual([]);
    expect(summary.nothingLost).toBe(false);
    expect(summary.text).not.toContain('nothing is lost');
  }
  const said = blastRadius.map(({ what }) => what).join('\n');
  for (const name of gone) expect(said).toContain(name);
  checkData(plan, before, after);
}

/** What a plan without an observation must not deny: it does not know what it interrupts, but that it does. `healthy`: all ran as desired. */
export function checkEstimate({ summary, changes }: Plan, before: Model, after: Model, healthy: boolean): void {
  const ended = stepsBetween(before, after).filter((step) => step.do === 'stop' && ranIn(before, step.part));
  if (goneContainers(before, after).length > 0 || ended.length > 0) {
    expect(summary.nothingLost).toBe(false);
    expect(summary.text).not.toContain('nothing is lost');
  }
  const halts = changes.some(({ severity, blocked }) => !blocked && (severity === 'restart' || severity === 'reset'));
  if (healthy && ended.length > 0) expect(halts).toBe(true);
}

/** Names of those that ran and no longer do, without those that come and go with an extension. */
function goneContainers(before: Model, after: Model): string[] {
  return (['moby', 'containerd'] as const).flatMap((name) =>
    before.engines[name].containers
      .filter((each) => each.running && !isRunning(after, name, each.name) && !each.name.startsWith('companion '))
      .map((each) => each.name),
  );
}

/** Data is only deleted where the plan says so, and where it says "now" it is. */
export function checkData({ summary, blastRadius }: Plan, before: Model, after: Model): void {
  const steps = stepsBetween(before, after);
  const resets = steps.filter((step) => step.do === 'reset').length;
  if (resets > 0) {
    expect(summary.resets).toBe(1);
    expect(blastRadius.some(({ lost }) => lost)).toBe(true);
    expect(summary.nothingLost).toBe(false);
  }
  for (const name of ['moby', 'containerd'] as const) {
    if (!before.engines[name].used) continue;
    expect(after.engines[name].images).toEqual(expect.arrayContaining(before.engines[name].images));
    // Those of an extension come and go with it.
    const names = (model: Model) =>
      model.engines[name].containers.map((each) => each.name).filter((each) => !each.startsWith('companion '));
    expect(names(after)).toEqual(expect.arrayContaining(names(before)));
  }
  if (before.cluster.state !== 'absent' && resets === 0) expect(after.cluster.state).not.toBe('absent');
}

function ranIn(model: Model, part: StepRecord['part']): boolean {
  if (part === 'machine') return model.machine.state === 'on';
  if (part === 'cluster') return model.cluster.state === 'running';
  return model.engines[part].process.state === 'running';
}

function isRunning({ engines }: Model, name: keyof Model['engines'], container: string): boolean {
  return engines[name].containers.some((each) => each.name === container && each.running);
}
