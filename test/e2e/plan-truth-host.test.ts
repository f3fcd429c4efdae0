import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../src/json.ts';
import { readProcess } from '../../src/os/process-table.ts';
import type { Plan } from '../../src/plan/change.ts';
import { setLeaf } from '../../src/settings/leaf-paths.ts';
import type { SettingPath } from '../../src/settings/settings.gen.ts';
import { busyboxImage } from '../helpers/busybox.ts';
import { callEngine, engineJson, startContainer } from '../helpers/engine-client.ts';
import { pidOf } from '../helpers/host-instance.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';
import { testSeed } from '../helpers/seed.ts';
import { toolHome } from '../helpers/tool-home.ts';
import { deedOf, settingDeeds, settingsAfter, sorted, wantedDeeds } from '../stress/plans/truth.ts';

const IMAGE = 'test/sleeper:1';
const SLEEP = ['/bin/busybox', 'sleep', '3600'];
/** What is killed before the plan, or during a first apply of the profile. */
const KILLED = ['nothing', 'the tool', 'the engine', 'the service', 'service and engine', 'the tool'] as const;

const reason = await whyNoRealEngine();

/** Settings of every cost that exists without a cluster, next to the one that determines a restart. */
const VALUES: Partial<Record<SettingPath, fc.Arbitrary<JsonValue>>> = {
  'application.debug': fc.boolean(),
  'images.namespace': fc.constantFrom('a', 'b', 'c'),
  'containerEngine.allowedImages.patterns': fc.constantFrom(['test/sleeper'], ['test/sleeper', 'debian']),
};
const settingsArbitrary = fc.record(VALUES).map((values) => {
  const settings: JsonObject = { version: 19 };
  for (const [path, value] of Object.entries(values)) setLeaf(settings, path, value);
  return settings;
});

describe.skipIf(reason !== undefined)('a plan with a real engine', () => {
  test('matches what apply did, whatever was killed in between, and names the container that it stops', async () => {
    const { home, rdctl, rdctlWith, status, servicePid } = toolHome();
    expect(await rdctl('apply', '-f', 'examples/moby.yaml')).toMatchObject({ exit: 0 });
    const endpoint = (await status()).engine.endpoint ?? '';
    const directory = join(home, 'state', 'drivers', 'host');
    await engineJson(endpoint, 'POST', '/images/load', busyboxImage(IMAGE));
    await startContainer(endpoint, { image: IMAGE, command: SLEEP, name: 'sleeper' });

    const stored = (): JsonObject => JSON.parse(readFileSync(join(home, 'config', 'settings.json'), 'utf8'));
    const ended = async (pid: number) => {
      process.kill(pid, 'SIGKILL');
      while (await readProcess(pid)) await delay(5);
    };
    const runs = async () => (await engineJson(endpoint, 'GET', '/containers/sleeper/json')).State;
    const converged = () => expect.poll(async () => (await status()).converged).toBe(true);

    async function killed(what: (typeof KILLED)[number], argv: string[], stdin: string, at: number): Promise<void> {
      switch (what) {
        case 'nothing':
          return;
        case 'the tool': {
          const applying = rdctlWith(
            { stdin, onSpawn: (child) => void delay(at).then(() => child.kill('SIGKILL')) },
            ...argv,
          );
          await applying;
          return converged();
        }
        case 'the engine':
          await ended(await pidOf(directory, 'dockerd'));
          return converged();
        case 'the service':
          return ended(servicePid());
        case 'service and engine':
          await ended(servicePid());
          return ended(await pidOf(directory, 'dockerd'));
      }
    }

    const samples = fc.sample(fc.tuple(settingsArbitrary, fc.integer({ min: 0, max: 900 })), {
      seed: testSeed(),
      numRuns: KILLED.length,
    });
    let stops = 0;
    for (const [index, what] of KILLED.entries()) {
      const [settings, at] = samples[index] ?? [{ version: 19 }, 0];
      setLeaf(settings, 'containerEngine.allowedImages.enabled', index % 2 === 0);
      // Every other one leaves the power state unmanaged.
      const profile = { settings, ...(index % 2 === 0 ? { state: 'started' as const } : {}) };
      const stdin = JSON.stringify({ apiVersion: 'rdctl/v1', kind: 'Profile', ...profile });
      const argv = (...more: string[]) => [...more, '-f', '-', '-o', 'json'];
      const wish = `${what}: ${JSON.stringify(profile)}`;
      await callEngine(endpoint, 'POST', '/containers/sleeper/start');
      await killed(what, argv('apply'), stdin, at);

      let before: JsonObject;
      let planned: Awaited<ReturnType<typeof rdctlWith>>;
      // The service may take the request of a killed tool after that has ended.
      do {
        before = stored();
        planned = await rdctlWith({ stdin }, ...argv('plan', '--detailed-exitcode'));
      } while (!isDeepStrictEqual(stored(), before));
      const plan: Plan = JSON.parse(planned.out);
      expect(planned.exit, wish).toBe(plan.changes.length > 0 ? 2 : 0);
      expect(settingDeeds(plan.changes), wish).toEqual(wantedDeeds(before, profile));
      const dockerd = await pidOf(directory, 'dockerd');
      const wasRunning = plan.basis === 'service' && (await runs());

      const applied = await rdctlWith({ stdin }, ...argv('apply'));
      expect([applied.exit, applied.err], wish).toEqual([0, applied.err]);
      const report: Pick<Plan, 'changes'> & { outcome: string } = JSON.parse(applied.out);
      // Without a service the costs are estimates; what was done is not.
      if (plan.basis === 'service') expect(report.changes, wish).toEqual(plan.changes);
      expect(report.changes.map(deedOf), wish).toEqual(plan.changes.map(deedOf));
      expect(report.outcome === 'unchanged', wish).toBe(plan.changes.length === 0);
      expect(sorted(stored()), wish).toEqual(settingsAfter(before, profile));
      expect(await status(), wish).toMatchObject({ converged: true, engine: { name: 'moby', state: 'running' } });

      if (plan.basis === 'service') {
        expect((await pidOf(directory, 'dockerd')) !== dockerd, wish).toBe(plan.summary.restarts === 1);
        const isRunning = await runs();
        const stopped = JSON.stringify(wasRunning) !== JSON.stringify(isRunning);
        const named = plan.blastRadius.some(({ what: text }) => text.includes('1 container: sleeper'));
        if (stopped) stops += 1;
        expect({ stopped, nothingLost: plan.summary.nothingLost }, wish).toEqual({
          stopped: named,
          nothingLost: !named,
        });
      }

      const again = await rdctlWith({ stdin }, ...argv('plan', '--detailed-exitcode'));
      expect([again.exit, JSON.parse(again.out).changes], wish).toEqual([0, []]);
      const second = JSON.parse((await rdctlWith({ stdin }, ...argv('apply'))).out);
      expect(second, wish).toMatchObject({ outcome: 'unchanged', changes: [], writes: 0 });
    }
    expect(stops).toBeGreaterThan(0);
  });
});
