import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import type { Model } from '../../../src/drivers/machines/simulated/model.ts';
import type { Plan } from '../../../src/plan/change.ts';
import { isRuntimeChange } from '../../../src/plan/runtime-changes.ts';
import { leafAt } from '../../../src/settings/leaf-paths.ts';
import { type Desk, down, type Facts, type Power, type Report, stopped } from './desk.ts';
import type { Apply, Misfortune, Profile, Step } from './steps.ts';
import {
  checkCost,
  checkData,
  checkEstimate,
  checkWorld,
  deedOf,
  settingDeeds,
  settingsAfter,
  sorted,
  wantedDeeds,
} from './truth.ts';

/** One sequence in one home, and what is known about it: who last decided whether the backend should run. */
export interface Walk {
  take(step: Step): Promise<void>;
  /** What was done so far, for the failure message. */
  readonly trace: readonly string[];
}

const EXTENSIONS = 'application.extensions.installed';

/** The assumed duration of an apply in milliseconds, before one was measured. */
const FIRST_GUESS = 700;

export function walkAt(desk: Desk): Walk {
  const trace: string[] = [];
  let power: Power = 'stopped';
  let usual = FIRST_GUESS;
  /** Someone is changing what runs, so it can differ a moment later. */
  let moving = false;
  /** Nothing has happened to what runs that no service has observed. */
  let healthy = true;

  async function take(step: Step): Promise<void> {
    trace.push(JSON.stringify(step));
    switch (step.do) {
      case 'apply':
        await apply(step);
        return;
      case 'set':
        return set(step.values);
      case 'shutdown':
        expect(await desk.rdctl(['shutdown'])).toMatchObject({ exit: 0 });
        power = 'stopped';
        moving = false;
        return;
      case 'start':
        expect(await desk.rdctl(['start', '--wait'])).toMatchObject({ exit: 0 });
        power = 'started';
        moving = false;
        return;
      case 'kill the service':
        await desk.kill();
        moving = false;
        return;
      case 'reboot':
        await desk.reboot();
        moving = false;
        return;
      case 'run containers':
        await settle();
        desk.change(withContainers);
        return;
      case 'misfortune':
        if (step.alone) await desk.kill();
        else await settle();
        desk.change((model) => after(step.what, model));
        moving = !step.alone;
        healthy = !step.alone;
        if (step.waits) await settle();
        return;
    }
  }

  async function settle(): Promise<void> {
    if (await desk.service()) await desk.settled();
    moving = false;
  }

  async function set(values: Extract<Step, { do: 'set' }>['values']): Promise<void> {
    const flags = Object.entries(values).map(([path, value]) => `--${flagOf(path)}=${value}`);
    const { served } = await desk.facts();
    const { exit } = await desk.rdctl(['set', ...flags]);
    expect(exit).toBe(served ? 0 : 1);
    await settle();
  }

  async function apply(step: Apply): Promise<void> {
    const { profile } = step;
    const text = JSON.stringify({ apiVersion: 'rdctl/v1', kind: 'Profile', ...profile });
    const planned = await planOf(step, text);
    const before = await desk.facts();
    const argv = planned.file === undefined ? ['apply', '-f', '-'] : ['apply', planned.file];
    const more = ['-o', 'json', ...(step.agreed ? ['--allow-reset'] : [])];
    if (step.killedAt !== undefined) {
      await killed([...argv, ...more], text, step.killedAt * usual);
      await checkHalf(before, profile);
      if (step.waits) await settle();
      // If none answers yet, the killed tool may have started one that is about to.
      moving = !step.waits || (await desk.service()) === undefined;
      const { killedAt: _, ...again } = step;
      trace.push('  again');
      return apply({ ...again, saved: false });
    }
    const begun = Date.now();
    const { exit, out, err } = await desk.rdctl([...argv, ...more], { stdin: text });
    usual = (usual + Date.now() - begun) / 2;
    trace.push(
      `  planned ${planned.exit}: ${planned.plan.summary.text}; applied ${exit}: ${err.trim().split('\n').at(-1)}`,
    );
    const { plan } = planned;
    const blocked = plan.summary.blocked > 0;
    if (exit !== 0) {
      const expected = blocked
        ? 3
        : !step.agreed && plan.blastRadius.some(({ lost }) => lost)
          ? 5
          : moving && planned.file !== undefined
            ? 6
            : moving && [3, 5].includes(exit)
              ? exit
              : 0;
      if (exit === 1 && (await deniedExtensions(plan, before)).length > 0) return allButExtensions(before, profile);
      expect([exit, err]).toEqual([expected, err]);
      return unchanged(before);
    }
    expect(blocked).toBe(false);
    const report: Report = JSON.parse(out);
    checkReport(planned.plan, report);
    const found = await desk.facts();
    if (profile.state !== undefined) power = profile.state;
    if (before.settings) expect(sorted(found.settings ?? {})).toEqual(settingsAfter(before.settings, profile));
    checkWorld(found, power);
    if (plan.basis === 'service' && !moving) checkCost(plan, before.model, found.model);
    if (plan.basis === 'service') checkData(plan, before.model, found.model);
    else if (!moving) checkEstimate(plan, before.model, found.model, healthy);
    moving = false;
    healthy = true;
    await checkDone(text);
  }

  async function planOf(step: Apply, text: string): Promise<{ plan: Plan; exit: number; file?: string }> {
    const { settings, served } = await desk.facts();
    const file = step.saved && served ? join(desk.home, 'saved-plan.json') : undefined;
    const { plan, exit, err } = await desk.plan(text, ...(file === undefined ? [] : ['--out-file', file]));
    // The request of a killed tool may be carried out meanwhile.
    if (!isDeepStrictEqual(settings, (await desk.facts()).settings)) return planOf(step, text);
    expect([exit, err]).toEqual([plan.summary.blocked > 0 ? 3 : plan.changes.length > 0 ? 2 : 0, err]);
    if (settings) expect(settingDeeds(plan.changes)).toEqual(wantedDeeds(settings, step.profile));
    const runs = plan.changes.find(({ path }) => path === 'state');
    if (step.profile.state === undefined) expect(runs).toBeUndefined();
    if (step.profile.state === power) {
      // After a reboot the previously requested start is requested again.
      if (served) expect(runs).toBeUndefined();
    } else if (step.profile.state === 'started') expect(runs).toMatchObject({ before: 'stopped', after: 'started' });
    if (plan.summary.nothingLost) expect(plan.blastRadius).toEqual([]);
    return { plan, exit, ...(file === undefined ? {} : { file }) };
  }

  function checkReport(plan: Plan, report: Report): void {
    if (!moving && plan.basis === 'service') expect(report.changes).toEqual(plan.changes);
    else if (!moving) expect(report.changes.map(deedOf)).toEqual(plan.changes.map(deedOf));
    else {
      expect(settingDeeds(report.changes)).toEqual(settingDeeds(plan.changes));
    }
    expect(report.outcome === 'unchanged').toBe(report.changes.length === 0);
    if (report.changes.every(isRuntimeChange)) expect(report.writes).toBe(0);
  }

  /** Repeating it finds nothing to do. */
  async function checkDone(text: string): Promise<void> {
    const [{ plan, exit }, before] = await Promise.all([desk.plan(text), desk.facts()]);
    expect(plan.changes).toEqual([]);
    expect(exit).toBe(0);
    const { exit: done, out, err } = await desk.rdctl(['apply', '-f', '-', '-o', 'json'], { stdin: text });
    expect([done, err]).toEqual([0, err]);
    expect(JSON.parse(out)).toMatchObject({ outcome: 'unchanged', changes: [], writes: 0 });
    const found = await desk.facts();
    expect(found.model).toEqual(before.model);
    expect(found.settings).toEqual(before.settings);
    if (!found.served) return;
    const status = await desk.status();
    expect(status).toMatchObject({ converged: true, power });
    const listed = await desk.rdctl(['list-settings']);
    expect(sorted(JSON.parse(listed.out))).toEqual(sorted(found.settings ?? {}));
    if (power === 'started') {
      expect(status.engine).toMatchObject({
        name: leafAt(found.settings ?? {}, 'containerEngine.name'),
        state: 'running',
      });
    }
  }

  /** Extensions that the plan warns about, and whose image the engine does not have. */
  async function deniedExtensions(plan: Plan, { settings }: Facts): Promise<string[]> {
    const engine = leafAt((await desk.facts()).settings ?? settings ?? {}, 'containerEngine.name');
    const images = engine === 'moby' || engine === 'containerd' ? desk.model().engines[engine].images : [];
    const named = plan.warnings.flatMap((text) => /^The extension (\S+) is not among/.exec(text)?.[1] ?? []);
    return named.filter((image) => !images.includes(image));
  }

  /** An image that the engine may not pull does not block the rest. */
  async function allButExtensions(before: Facts, profile: Profile): Promise<void> {
    const text = JSON.stringify({ apiVersion: 'rdctl/v1', kind: 'Profile', ...profile });
    if (profile.state !== undefined) power = profile.state;
    moving = false;
    const found = await desk.facts();
    if (before.settings) {
      expect(withoutExtensions(sorted(found.settings ?? {}))).toEqual(
        withoutExtensions(settingsAfter(before.settings, profile)),
      );
    }
    checkWorld(found, power);
    const { plan } = await desk.plan(text);
    expect(plan.changes.map(({ path }) => path)).toEqual(plan.changes.map(() => EXTENSIONS));
    expect(await deniedExtensions(plan, found)).not.toEqual([]);
  }

  /** A refused apply has changed nothing. */
  async function unchanged(before: Facts): Promise<void> {
    const found = await desk.facts();
    if (before.settings) expect(found.settings).toEqual(before.settings);
    await settle();
    checkWorld(await desk.facts(), power);
  }

  async function killed(argv: readonly string[], stdin: string, afterMs: number): Promise<void> {
    let pid = 0;
    let ended = false;
    const outcome = desk.rdctl(argv, { stdin, onSpawn: (spawned) => (pid = spawned) }).then((result) => {
      ended = true;
      return result;
    });
    await Promise.race([outcome, delay(afterMs)]);
    if (!ended) process.kill(pid, 'SIGKILL');
    const { exit } = await outcome;
    trace.push(`  killed after ${Math.round(afterMs)} ms: exit ${exit}`);
  }

  /** Of one request, all or nothing is stored; extensions follow one by one. */
  async function checkHalf(before: Facts, profile: Profile): Promise<void> {
    const { settings, recorded } = await desk.facts();
    if (before.settings && settings) {
      const outcomes = [sorted(before.settings), settingsAfter(before.settings, profile)].map(withoutExtensions);
      expect(outcomes).toContainEqual(withoutExtensions(sorted(settings)));
    }
    if (profile.state !== undefined && recorded !== undefined) power = recorded;
  }

  return { take, trace };
}

function withoutExtensions(some: ReturnType<typeof sorted>): ReturnType<typeof sorted> {
  return some.filter(([path]) => path !== EXTENSIONS);
}

function flagOf(path: string): string {
  return path.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function withContainers(model: Model): Model {
  const started = (engine: Model['engines']['moby']) =>
    engine.process.state !== 'running'
      ? engine
      : { ...engine, containers: engine.containers.map((each) => ({ ...each, running: true })) };
  return { ...model, engines: { moby: started(model.engines.moby), containerd: started(model.engines.containerd) } };
}

/** Only what runs can be affected. */
function after(what: Misfortune, model: Model): Model {
  const { machine, engines, cluster } = model;
  const off = {
    engines: { moby: stopped(engines.moby), containerd: stopped(engines.containerd) },
    cluster: cluster.state === 'absent' ? cluster : down(cluster),
  };
  const hung = (engine: Model['engines']['moby']): Model['engines']['moby'] =>
    engine.process.state === 'running' ? { ...engine, process: { state: 'hung' } } : engine;
  switch (what) {
    case 'machine ends':
      return machine.state === 'on' ? { ...model, ...off, machine: { state: 'off' } } : model;
    case 'machine breaks':
      return machine.state === 'on'
        ? { ...model, ...off, machine: { state: 'broken', reason: 'Broken', message: 'it is broken' } }
        : model;
    case 'engine ends':
      return { ...model, ...off };
    case 'engine hangs':
      return { ...model, engines: { moby: hung(engines.moby), containerd: hung(engines.containerd) } };
    case 'cluster ends':
      return cluster.state === 'running' ? { ...model, cluster: down(cluster) } : model;
    case 'cluster hangs': {
      if (cluster.state !== 'running') return model;
      const { installedVersion, workloads } = cluster;
      return { ...model, cluster: { state: 'hung', installedVersion, workloads } };
    }
  }
}
