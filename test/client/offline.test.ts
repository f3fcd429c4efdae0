import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, expect, test } from 'vitest';
import { profileText } from '../../profiles/document/write.ts';
import { offlinePlan, type RestingDriver, readStoredSettings, type StoredSettings } from '../../src/client/offline.ts';
import { HOST_SUPPORT } from '../../src/drivers/machines/host/index.ts';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import type { Plan, PlanRequest } from '../../src/plan/change.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { places } from '../../src/state/places.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { requestFor, type Values } from '../plan/planning.ts';
import { settingsWith } from '../reconcile/worlds.ts';

const HOST = { arch: 'x64', memoryBytes: 64 * 1024 ** 3 };

test('where nothing is stored, plans with the settings of a first start on this computer', async () => {
  const home = temporaryDirectory();
  const stored = await readStoredSettings(places({}, 'linux', home), 'linux', HOST);
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
  const { settings, from } = await readStoredSettings(where, 'linux', HOST);
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
  const planned = (request: PlanRequest) => offlinePlan(request, stored, where, {}).plan;
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
      text: '2 changes, stops the backend, what is running is unknown',
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
      const portForwards = { entries: [web], exclusive: false };
      const facts = { forwards: { ...forwards, portForwards: [] } };
      const plan = offlinePlan({ ...requestFor({}), state, portForwards }, stored, where, facts).plan;
      expect(plan.changes).toHaveLength(2);
      expect(plan.summary).toMatchObject({
        nothingLost: false,
        text: expect.stringMatching(/, what is running is unknown$/),
      });
    }
  });
});

describe('a plan in a home whose service was stopped', () => {
  const where = places({ RDCTL_HOME: '/home/user/rdctl' }, 'linux', '/home/user');
  const stored = (base: Values = {}, rest: Partial<StoredSettings> = {}): StoredSettings => ({
    ...{ settings: settingsWith(base), from: 'file', generation: 4, driver: 'simulated', power: 'stopped' },
    ...rest,
  });
  const started = (wanted: Values) => requestFor(wanted, { state: 'started' });

  test('is an estimate in which nothing restarts', () => {
    const wanted = { 'containerEngine.name': 'containerd', 'kubernetes.port': 7000 };
    const { plan } = offlinePlan(started(wanted), stored(), where, {});
    expect(plan).toMatchObject({ basis: 'estimated', generation: 0, pendingRestart: [] });
    expect(plan).not.toHaveProperty('tag');
    expect(plan.changes.map(({ path, severity }) => [path, severity])).toEqual([
      ['containerEngine.name', 'none'],
      ['kubernetes.port', 'none'],
      ['state', 'live'],
    ]);
    expect(plan.summary.text).toBe('3 changes, starts the backend, estimated');
    expect(plan.warnings).toEqual(['No service is running: compared with the stored settings.']);
    expect(offlinePlan(requestFor({}), stored(), where, {}).plan.summary.text).toBe('nothing to change');
  });

  test('names a newer cluster whose data the start deletes, as it is on disk', () => {
    const lower = started({ 'kubernetes.version': '1.30.2' });
    const base = { 'kubernetes.version': '1.31.2', 'kubernetes.enabled': true };
    const resets = (driver: RestingDriver) => offlinePlan(lower, stored(base), where, { driver }).plan.summary.resets;
    expect(resets(SIMULATED_INFO)).toBe(0);
    expect(resets({ ...SIMULATED_INFO, installedCluster: '1.30.2' })).toBe(0);
    expect(resets({ ...SIMULATED_INFO, installedCluster: '1.31.2' })).toBe(1);
    expect(resets({ ...SIMULATED_INFO, installedCluster: '' })).toBe(1);
  });

  test('knows what the driver cannot do, in its words, and that no cluster carries forwards', () => {
    const driver: RestingDriver = { ...SIMULATED_INFO, name: 'host', support: HOST_SUPPORT, hasCluster: false };
    const [memory] = offlinePlan(started({ 'virtualMachine.memoryInGB': 3 }), stored(), where, { driver }).plan.changes;
    expect(memory?.blocked?.message).toMatch(/^"virtualMachine.memoryInGB" cannot be changed with the host driver: /);
  });

  test('says what a new policy changes, with its source, and hides secrets', () => {
    const unlocked = settingsWith({ 'containerEngine.name': 'moby' });
    const base = { 'containerEngine.name': 'containerd', 'experimental.virtualMachine.proxy.password': 'hidden' };
    const { plan } = offlinePlan(
      requestFor({}),
      stored(base, { unlocked, lockedBy: '/etc/rdctl/locked.json' }),
      where,
      {},
    );
    expect(plan.warnings.slice(1)).toEqual([
      'The next start sets containerEngine.name from "moby" to "containerd", as /etc/rdctl/locked.json says.',
      'The next start sets experimental.virtualMachine.proxy.password, as /etc/rdctl/locked.json says.',
    ]);
    expect(plan.changes).toEqual([]);
  });

  test('lists the user files that a start with these settings changes', () => {
    const change = (what: string) => [{ file: `/home/user/${what}`, action: 'update' as const, what }];
    const userFiles = {
      foreseen: {
        path: { manual: change('out of PATH'), rcfiles: change('on PATH') },
        autostart: { on: change('at login'), off: change('not at login') },
        docker: { selected: change('selected'), 'given back': change('given back'), removed: change('removed') },
        kube: { present: change('cluster'), renewed: change('new cluster'), removed: change('no cluster') },
      },
    };
    const driver: RestingDriver = { ...SIMULATED_INFO, installedCluster: '1.31.2' };
    const listed = (request: PlanRequest, base: Values = {}, other: Partial<RestingDriver> = {}) => {
      const facts = { userFiles, driver: { ...driver, ...other } };
      return offlinePlan(request, stored({ 'kubernetes.enabled': true, ...base }), where, facts).plan.userFiles?.map(
        ({ what }) => what,
      );
    };
    const debug = { 'application.debug': true };
    expect(listed(started(debug))).toEqual(['on PATH', 'selected', 'cluster']);
    expect(listed(started(debug), {}, { hasCluster: false })).toEqual(['on PATH', 'selected']);
    expect(listed(requestFor(debug))).toEqual(['on PATH', 'given back']);
    const asked = { 'application.autoStart': true, 'containerEngine.name': 'containerd', 'kubernetes.enabled': false };
    const rest = ['removed', 'no cluster'];
    expect(listed(started(asked))).toEqual(['on PATH', 'at login', ...rest]);
    // Only a service that created the entry removes it.
    expect(listed(started({ 'application.autoStart': false }), asked)).toEqual(['on PATH', 'not at login', ...rest]);
    expect(listed(requestFor({})), 'nothing to change').toEqual([]);
    expect(offlinePlan(started(debug), stored(), where, {}).plan.userFiles, 'integration off').toEqual([]);
  });
});
