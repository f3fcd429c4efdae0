import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { policyPrograms } from '../../profiles/policies/places.ts';
import { chooseDriver, host } from '../../src/drivers/index.ts';
import type { JsonObject } from '../../src/json.ts';
import type { Change, Plan } from '../../src/plan/change.ts';
import { places } from '../../src/state/places.ts';
import { rdctl } from '../helpers/cli.ts';
import { rounds } from '../helpers/rounds.ts';
import { testSeed } from '../helpers/seed.ts';
import { startService } from '../helpers/service.ts';
import { payloadArbitrary } from '../helpers/settings-arbitrary.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const isHostUsable = (await host.probe(process.env)).usable;
const DRIVERS = ['simulated', ...(isHostUsable ? (['host'] as const) : [])] as const;

interface Case {
  driver: (typeof DRIVERS)[number];
  /** Applied before; absent in a home that no service has run in. */
  before: JsonObject | undefined;
  /** An administrator's, written since. */
  locked: JsonObject | undefined;
  wanted: JsonObject;
  state: 'started' | 'stopped' | undefined;
  forward: boolean;
}

const cases: fc.Arbitrary<Case> = fc.record({
  driver: fc.constantFrom(...DRIVERS),
  before: fc.option(payloadArbitrary(), { nil: undefined }),
  locked: fc.option(payloadArbitrary(), { nil: undefined, freq: 2 }),
  wanted: payloadArbitrary(),
  state: fc.constantFrom('started' as const, 'stopped' as const, undefined),
  forward: fc.boolean(),
});

/** What a plan says of each change. */
function said({ changes }: Plan): Partial<Change>[] {
  return changes.map(({ severity: _, reason: __, ...change }) => change);
}

function costs({ changes }: Plan): string[] {
  return changes.map(({ path, severity, reason }) => `${path}: ${severity}: ${reason}`);
}

test('a plan without a service is what the service that is started next plans', async () => {
  const seen = { blocked: 0, locked: 0, open: 0 };
  await fc.assert(
    fc.asyncProperty(cases, async ({ driver, before, locked, wanted, state, forward }) => {
      const home = temporaryDirectory();
      const policy = join(temporaryDirectory(), 'locked.json');
      const nowhere = join(home, 'no-policy');
      const options = { home, driver, power: 'stopped', policies: { locked: policy } } as const;
      if (before) {
        const { settingsFile } = places({ RDCTL_HOME: home }, 'linux', '');
        mkdirSync(dirname(settingsFile), { recursive: true });
        writeFileSync(settingsFile, JSON.stringify(before));
        const { service } = await startService({ home, driver, power: 'stopped' });
        await service.stop('the test wants it');
      }
      if (locked) writeFileSync(policy, JSON.stringify(locked));
      const file = join(temporaryDirectory(), 'profile.json');
      const forwards = forward ? { portForwards: [{ service: 'web', k8sPort: 80, hostPort: 18_080 }] } : {};
      const profile = {
        apiVersion: 'rdctl/v1',
        kind: 'Profile',
        settings: wanted,
        ...(state ? { state } : {}),
        ...forwards,
      };
      writeFileSync(file, JSON.stringify(profile));
      const plan = async () => {
        const stage = {
          env: { ...process.env, RDCTL_HOME: home },
          policies: { places: [{ format: 'json', defaults: nowhere, locked: policy }], programs: policyPrograms() },
          chooseDriver,
        } as const;
        const { exit, out, err } = await rdctl(['plan', '-f', file, '-o', 'json', '--driver', driver], stage);
        return { exit, err, plan: exit === 0 || exit === 3 ? (JSON.parse(out || '{}') as Partial<Plan>) : {} };
      };
      const offline = await plan();
      const { service } = await startService(options);
      const online = await plan();
      await service.stop('the test wants it');
      if (online.plan.kind !== 'Plan' || offline.plan.kind !== 'Plan') {
        expect([offline.exit, offline.err, offline.plan]).toEqual([online.exit, online.err, online.plan]);
        return;
      }
      const [a, b] = [offline.plan as Plan, online.plan as Plan];
      expect(a.basis).toBe('estimated');
      expect(b.basis).toBe('service');
      expect(said(a)).toEqual(said(b));
      expect(costs(a)).toEqual(costs(b));
      const ofPlan = a.warnings.filter((line) => !/^(No service is running|The next start sets)/.test(line));
      expect(ofPlan).toEqual(b.warnings);
      expect(a.summary).toMatchObject({ blocked: b.summary.blocked, changes: b.summary.changes, restarts: 0 });
      for (const { blocked } of a.changes) {
        if (blocked?.by === 'lock') seen.locked += 1;
        else seen[blocked ? 'blocked' : 'open'] += 1;
      }
    }),
    { numRuns: rounds(12, 400), seed: testSeed() },
  );
  expect(Math.min(...Object.values(seen)), JSON.stringify(seen)).toBeGreaterThan(0);
});
