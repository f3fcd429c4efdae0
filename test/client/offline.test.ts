import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, expect, test } from 'vitest';
import { profileText } from '../../profiles/document/write.ts';
import { offlinePlan, type StoredSettings, storedSettings } from '../../src/client/offline.ts';
import type { Plan, PlanRequest } from '../../src/plan/change.ts';
import { withPortForwards } from '../../src/plan/port-forwards.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { places } from '../../src/state/places.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { requestFor } from '../plan/planning.ts';
import { settingsWith } from '../reconcile/worlds.ts';

const HOST = { arch: 'x64', memoryBytes: 64 * 1024 ** 3 };

test('where nothing is stored, plans with the settings of a first start on this computer', async () => {
  const home = temporaryDirectory();
  const stored = await storedSettings(places({}, 'linux', home), 'linux', HOST);
  const defaults = defaultSettings({ ...HOST, platform: 'linux' });
  expect(stored).toEqual({ settings: defaults, from: 'defaults' });
  expect(stored.settings.virtualMachine.memoryInGB).toBe(6);
  const text = profileText({
    name: 'n',
    settings: stored.settings,
    defaults,
    all: false,
    state: 'started',
    schema: 's',
    origin: 'o',
  });
  expect(text).toContain('# Everything is at its default.');
  expect(text).not.toMatch(/^ *memoryInGB/m);
});

test('stored settings win over those of the computer', async () => {
  const where = places({}, 'linux', temporaryDirectory());
  mkdirSync(dirname(where.settingsFile), { recursive: true });
  writeFileSync(where.settingsFile, JSON.stringify({ version: 19, virtualMachine: { memoryInGB: 3 } }));
  const { settings, from } = await storedSettings(where, 'linux', HOST);
  expect({ from, memory: settings.virtualMachine.memoryInGB }).toEqual({ from: 'file', memory: 3 });
});

describe('a plan after the service was killed', () => {
  const stored: StoredSettings = {
    settings: settingsWith(),
    from: 'file',
    driver: 'simulated',
    power: 'started',
    left: true,
    cut: true,
  };
  const where = places({ RDCTL_HOME: '/home/user/rdctl' }, 'linux', '/home/user');
  const planned = (request: PlanRequest) => offlinePlan(request, stored, where, { hasCluster: false });
  const costs = ({ changes }: Plan) => changes.map(({ path, severity }) => [path, severity]);

  test('stopping comes before the settings, so they restart nothing; the stop interrupts what runs', () => {
    const plan = planned({ ...requestFor({ 'virtualMachine.memoryInGB': 3 }), state: 'stopped' });
    expect(costs(plan)).toEqual([
      ['virtualMachine.memoryInGB', 'none'],
      ['state', 'restart'],
    ]);
    expect(plan.summary).toMatchObject({
      restarts: 0,
      nothingLost: false,
      text: '2 changes, stops the backend, estimated',
    });
  });

  test('starting the service comes first', () => {
    const plan = planned(requestFor({ 'virtualMachine.memoryInGB': 3 }));
    expect(costs(plan)).toEqual([
      ['service', 'live'],
      ['virtualMachine.memoryInGB', 'restart'],
    ]);
  });

  test('with port forwards, the plan does not promise that nothing is lost', () => {
    const forwards = { kind: 'PortForwards', formatVersion: 1, portForwards: [], supported: true } as const;

    const web = { namespace: 'default', service: 'web', k8sPort: 80, hostPort: 8080 };
    for (const state of ['unmanaged', 'started', 'stopped'] as const) {
      const plan = withPortForwards(
        planned({ ...requestFor({}), state }),
        { entries: [web], exclusive: false },
        { ...forwards, portForwards: [] },
      );
      expect(plan.changes).toHaveLength(2);
      expect(plan.summary).toMatchObject({ nothingLost: false, text: expect.stringMatching(/, estimated$/) });
    }
  });
});
