import { describe, expect, test } from 'vitest';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import { emptyModel, type Model } from '../../src/drivers/machines/simulated/model.ts';
import type { Severity } from '../../src/plan/change.ts';
import { CLUSTER_MEMBERS, ENGINE_MEMBERS, effectsOf, MACHINE_MEMBERS } from '../../src/plan/drift.ts';
import { isRuntimeChange } from '../../src/plan/runtime-changes.ts';
import { MANAGED_FIELDS } from '../../src/settings/fields.ts';
import { runningModel, settingsWith } from '../reconcile/worlds.ts';
import { planFor, requestFor, type Values } from './planning.ts';

const ALLOWED: Values = { 'containerEngine.allowedImages.enabled': true };
const OFF: Values = { 'kubernetes.enabled': false };
const CONTAINERD: Values = { 'containerEngine.name': 'containerd' };

/** A cluster of this version is installed and off. */
function installed(version: string, live: Values = {}): Model {
  const model = runningModel(settingsWith({ ...live, ...OFF }));
  return { ...model, cluster: { state: 'stopped', installedVersion: version, workloads: ['default/web'] } };
}

describe('the severity of a change while the backend runs', () => {
  test.each<[string, Values, Values, Severity, RegExp]>([
    [
      'a setting that is only stored',
      {},
      { 'application.theme': 'dark' },
      'none',
      /does not affect the machine, engine or cluster|window/,
    ],
    ['a setting of the service', {}, { 'application.debug': true }, 'none', /the log follows at once/],
    ['another engine', {}, CONTAINERD, 'restart', /stops moby and starts containerd/],
    ['another engine back', CONTAINERD, { 'containerEngine.name': 'moby' }, 'restart', /stops containerd/],
    ['the store of moby', {}, { 'containerEngine.mobyStorageDriver': 'snapshotter' }, 'restart', /engine/],
    [
      'the store of moby, not in use',
      CONTAINERD,
      { 'containerEngine.mobyStorageDriver': 'snapshotter' },
      'none',
      /only used by moby/,
    ],
    ['allowed images on', {}, ALLOWED, 'restart', /engine/],
    [
      'allowed images',
      ALLOWED,
      { 'containerEngine.allowedImages.patterns': ['a/*'] },
      'live',
      /applied to the running engine/,
    ],
    ['allowed images, not in use', {}, { 'containerEngine.allowedImages.patterns': ['a/*'] }, 'none', /is disabled/],
    ['WebAssembly', {}, { 'experimental.containerEngine.webAssembly.enabled': true }, 'restart', /engine/],
    ['memory', {}, { 'virtualMachine.memoryInGB': 9 }, 'restart', /machine/],
    ['disk', {}, { 'experimental.virtualMachine.diskSize': '200GiB' }, 'restart', /machine/],
    ['adminAccess', {}, { 'application.adminAccess': true }, 'restart', /machine/],
    ['what the driver takes live', {}, { 'experimental.virtualMachine.sshPortForwarder': false }, 'live', /machine/],
    ['cluster off', {}, OFF, 'restart', /stops the cluster/],
    ['cluster on', OFF, { 'kubernetes.enabled': true }, 'restart', /starts the cluster/],
    ['port of the cluster', {}, { 'kubernetes.port': 7000 }, 'restart', /cluster/],
    ['port, cluster off', OFF, { 'kubernetes.port': 7000 }, 'none', /cluster is off/],
    ['traefik, cluster off', OFF, { 'kubernetes.options.traefik': false }, 'none', /cluster is off/],
    ['spinkube, cluster off', OFF, { 'experimental.kubernetes.options.spinkube': true }, 'none', /cluster is off/],
    ['a later version', { 'kubernetes.version': '1.30.2' }, { 'kubernetes.version': '1.31.2' }, 'restart', /cluster/],
    [
      'a lower version',
      { 'kubernetes.version': '1.30.2' },
      { 'kubernetes.version': '1.29.4' },
      'reset',
      /1\.30\.2.*deletes/,
    ],
    ['the version that was chosen', {}, { 'kubernetes.version': '1.33.4' }, 'none', /already/],
    ['a lower one than was chosen', {}, { 'kubernetes.version': '1.30.2' }, 'reset', /1\.33\.4/],
  ])('%s', async (_what, live, wanted, severity, reason) => {
    const { changes, summary } = await planFor(live, requestFor(wanted));
    expect(changes).toHaveLength(1);
    expect(changes[0]).toMatchObject({ severity });
    expect(changes[0]?.reason).toMatch(reason);
    expect(summary.severity).toBe(severity);
  });
});

test.each([
  'experimental.virtualMachine.mount.9p.cacheMode',
  'experimental.virtualMachine.mount.9p.msizeInKib',
  'experimental.virtualMachine.mount.9p.protocolVersion',
  'experimental.virtualMachine.mount.9p.securityModel',
] as const)('%s without 9p, which the driver does not support, affects nothing', async (path) => {
  const changed = {
    'experimental.virtualMachine.mount.9p.cacheMode': 'none',
    'experimental.virtualMachine.mount.9p.msizeInKib': 256,
    'experimental.virtualMachine.mount.9p.protocolVersion': '9p2000.u',
    'experimental.virtualMachine.mount.9p.securityModel': 'mapped-xattr',
  };
  const type = 'virtualMachine.mount.type';
  const support = { ...SIMULATED_INFO.support, [type]: { level: 'enforced' as const, except: ['9p'], reason: 'none' } };
  const request = requestFor({ [type]: '9p', [path]: changed[path] });
  const { changes } = await planFor({}, request, { driver: { ...SIMULATED_INFO, support } });
  expect(changes).toEqual([
    expect.objectContaining({ path: type, blocked: expect.anything() }),
    expect.objectContaining({ path, severity: 'none', reason: 'only used by 9p; the mount type is reverse-sshfs' }),
  ]);
  const with9p = await planFor({}, request);
  expect(with9p.changes.find((change) => change.path === path)).toMatchObject({ severity: 'restart' });
});

describe('a lower cluster version', () => {
  const LOWER = { 'kubernetes.version': '1.29.4' } as const;

  test('is a reset even while the cluster is off, and says when the data is lost', async () => {
    const plan = await planFor(OFF, requestFor(LOWER), { model: installed('1.30.2') });
    expect(plan.summary).toMatchObject({ severity: 'reset', resets: 1, restarts: 0, nothingLost: false });
    expect(plan.blastRadius).toEqual([
      {
        what: 'deletes the workloads and data of the cluster (version 1.30.2) when it next starts',
        lost: true,
        consent: 'kubernetes-reset',
      },
    ]);
    expect(plan.summary.text).toBe('1 change, 1 reset, cluster data is lost');
  });

  test('is a reset even while the backend is off', async () => {
    const model = { ...emptyModel(), cluster: installed('1.30.2').cluster };
    const plan = await planFor(OFF, requestFor(LOWER), { model, power: 'stopped' });
    expect(plan.summary).toMatchObject({ severity: 'reset', resets: 1 });
  });

  test('turns enabling the cluster into a later reset', async () => {
    const live = { ...OFF, ...LOWER };
    const plan = await planFor(live, requestFor({ 'kubernetes.enabled': true }), { model: installed('1.30.2') });
    expect(plan.changes[0]).toMatchObject({ path: 'kubernetes.enabled', severity: 'reset' });
    expect(plan.summary.text).toBe('1 change, 1 restart, 1 reset, cluster data is lost');
  });

  test('turns starting the backend into a later reset', async () => {
    const model = { ...emptyModel(), cluster: installed('1.30.2').cluster };
    const plan = await planFor(LOWER, requestFor({}, { state: 'started' }), { model, power: 'stopped' });
    expect(plan.changes).toMatchObject([{ path: 'state', severity: 'reset' }]);
    expect(plan.blastRadius).toMatchObject([{ lost: true }]);
  });

  test('resets nothing when there is no cluster', async () => {
    const plan = await planFor(OFF, requestFor(LOWER));
    expect(plan.summary.severity).toBe('none');
  });

  test('is determined by the installed version, not by the settings', async () => {
    const plan = await planFor(
      { ...OFF, 'kubernetes.version': '1.31.2' },
      requestFor({ 'kubernetes.version': '1.30.2' }),
      {
        model: installed('1.30.1'),
      },
    );
    expect(plan.summary.severity).toBe('none');
  });

  test('compares numerically: 9 is lower than 10', async () => {
    const plan = await planFor(OFF, requestFor({ 'kubernetes.version': '1.30.2' }), { model: installed('1.30.14') });
    expect(plan.summary.severity).toBe('reset');
  });
});

describe('a change is free', () => {
  test('while nothing runs', async () => {
    const plan = await planFor({}, requestFor({ ...CONTAINERD, 'kubernetes.port': 7000 }), { model: emptyModel() });
    expect(plan.changes.filter((change) => !isRuntimeChange(change)).map(({ severity }) => severity)).toEqual([
      'none',
      'none',
    ]);
    expect(plan.summary.restarts).toBe(0);
  });

  test('when everything is stopped along with it', async () => {
    const plan = await planFor({}, requestFor({ ...CONTAINERD, 'kubernetes.port': 7000 }, { state: 'stopped' }));
    expect(plan.changes.map(({ path, severity }) => [path, severity])).toEqual([
      ['containerEngine.name', 'none'],
      ['kubernetes.port', 'none'],
      ['state', 'restart'],
    ]);
  });

  test('when the backend is off and still stopping', async () => {
    const plan = await planFor({}, requestFor(CONTAINERD), { power: 'stopped' });
    expect(plan.changes.find(({ path }) => path === 'containerEngine.name')?.severity).toBe('none');
  });

  test('with a driver that only stores it', async () => {
    const support = {
      ...SIMULATED_INFO.support,
      'kubernetes.port': { level: 'stored' as const, reason: 'there is no cluster' },
    };
    const plan = await planFor({}, requestFor({ 'kubernetes.port': 7000 }), { driver: { ...SIMULATED_INFO, support } });
    expect(plan.changes[0]).toMatchObject({ severity: 'none', reason: 'there is no cluster' });
    expect(plan.warnings).toEqual([
      '"kubernetes.port" is stored and has no effect with the simulated driver: there is no cluster.',
    ]);
  });

  test('when it reverts what has not been applied yet', async () => {
    const plan = await planFor(CONTAINERD, requestFor({ 'containerEngine.name': 'moby' }), {
      model: runningModel(settingsWith(OFF)),
    });
    expect(plan.pendingRestart).toContain('containerEngine.name: runs with "moby", should be "containerd"');
    expect(plan.changes[0]).toMatchObject({ severity: 'none', reason: 'moby is already running' });
  });
});

test('every setting with a cost belongs to a part, or is a known exception', () => {
  const parts = new Set<string>([...MACHINE_MEMBERS, ...ENGINE_MEMBERS, ...CLUSTER_MEMBERS].map(({ path }) => path));
  const costly = MANAGED_FIELDS.map(({ path }) => path).filter((path) =>
    effectsOf(path).some((effect) => effect !== 'none'),
  );
  const without = costly.filter((path) => !parts.has(path));
  expect(without.filter((path) => !path.startsWith('experimental.virtualMachine.proxy.'))).toEqual([
    'WSL.integrations',
    'kubernetes.enabled',
  ]);
  expect([...parts].filter((path) => !costly.some((other) => other === path))).toEqual([]);
});
