import { describe, expect, test } from 'vitest';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import { emptyModel } from '../../src/drivers/machines/simulated/model.ts';
import { restartReasons } from '../../src/plan/restart-reasons.ts';
import { runningModel, seenOf, settingsWith } from '../reconcile/worlds.ts';
import type { Values } from './planning.ts';

/** Reasons for changing a backend that runs with `live`. */
async function reasons(live: Values, after: Values, model = runningModel(settingsWith(live))) {
  return restartReasons(settingsWith({ ...live, ...after }), await seenOf(model), SIMULATED_INFO, settingsWith(live));
}

describe('restart reasons', () => {
  test('have the running value, the desired one and the severity, in wire order', async () => {
    const found = await reasons(
      { 'kubernetes.version': '1.30.1' },
      {
        'virtualMachine.memoryInGB': 6,
        'kubernetes.port': 7000,
        'containerEngine.name': 'containerd',
        'kubernetes.version': '1.29.4',
        'containerEngine.allowedImages.enabled': true,
      },
    );
    expect(Object.entries(found)).toEqual([
      ['kubernetes.version', { current: '1.30.1', desired: '1.29.4', severity: 'reset' }],
      ['containerEngine.allowedImages.enabled', { current: false, desired: true, severity: 'restart' }],
      ['containerEngine.name', { current: 'moby', desired: 'containerd', severity: 'restart' }],
      ['kubernetes.port', { current: 6443, desired: 7000, severity: 'restart' }],
      ['virtualMachine.memoryInGB', { current: 2, desired: 6, severity: 'restart' }],
    ]);
  });

  test('are absent for what is stored or applied live', async () => {
    const live = { 'containerEngine.allowedImages.enabled': true } as const;
    expect(await reasons(live, { 'application.debug': true, 'containerEngine.allowedImages.patterns': ['a'] })).toEqual(
      {},
    );
  });

  test('are absent while nothing runs', async () => {
    expect(await reasons({}, { 'containerEngine.name': 'containerd' }, emptyModel())).toEqual({});
  });

  test('show a disk with a unit', async () => {
    expect(await reasons({}, { 'experimental.virtualMachine.diskSize': '200GiB' })).toEqual({
      'experimental.virtualMachine.diskSize': { current: '100GiB', desired: '200GiB', severity: 'restart' },
    });
  });

  test('name the cluster switch, in both directions', async () => {
    expect(await reasons({}, { 'kubernetes.enabled': false })).toEqual({
      'kubernetes.enabled': { current: true, desired: false, severity: 'restart' },
    });
    expect(await reasons({ 'kubernetes.enabled': false }, { 'kubernetes.enabled': true })).toEqual({
      'kubernetes.enabled': { current: false, desired: true, severity: 'restart' },
    });
  });

  test('do not mistake a cluster that is still starting for a change', async () => {
    const model = runningModel(settingsWith());
    expect(await reasons({}, { 'application.debug': true }, { ...model, cluster: { state: 'absent' } })).toEqual({});
  });

  test('of an engine come from the running one, even when the other is desired', async () => {
    const after = {
      'containerEngine.name': 'containerd',
      'containerEngine.allowedImages.enabled': true,
      'experimental.containerEngine.webAssembly.enabled': true,
      'containerEngine.mobyStorageDriver': 'snapshotter',
    } as const;
    expect(await reasons({ 'kubernetes.enabled': false }, after)).toEqual({
      'containerEngine.allowedImages.enabled': { current: false, desired: true, severity: 'restart' },
      'containerEngine.name': { current: 'moby', desired: 'containerd', severity: 'restart' },
      'experimental.containerEngine.webAssembly.enabled': { current: false, desired: true, severity: 'restart' },
    });
    const back = { 'containerEngine.name': 'moby', 'containerEngine.mobyStorageDriver': 'snapshotter' } as const;
    expect(
      Object.keys(await reasons({ 'containerEngine.name': 'containerd', 'kubernetes.enabled': false }, back)),
    ).toEqual(['containerEngine.mobyStorageDriver', 'containerEngine.name']);
  });

  test('of a cluster that is off come from the settings in force', async () => {
    const off = { 'kubernetes.enabled': false, 'kubernetes.version': '1.30.1' } as const;
    const after = {
      'kubernetes.enabled': true,
      'kubernetes.version': '1.31.2',
      'kubernetes.port': 7000,
      'kubernetes.options.flannel': false,
      'experimental.kubernetes.options.spinkube': true,
    } as const;
    expect(Object.entries(await reasons(off, after))).toEqual([
      ['kubernetes.version', { current: '1.30.1', desired: '1.31.2', severity: 'restart' }],
      ['experimental.kubernetes.options.spinkube', { current: false, desired: true, severity: 'restart' }],
      ['kubernetes.enabled', { current: false, desired: true, severity: 'restart' }],
      ['kubernetes.options.flannel', { current: true, desired: false, severity: 'restart' }],
      ['kubernetes.port', { current: 6443, desired: 7000, severity: 'restart' }],
    ]);
  });

  test('of a cluster that stays off are the Spin operator alone', async () => {
    const off = { 'kubernetes.enabled': false } as const;
    const after = { 'kubernetes.port': 7000, 'experimental.kubernetes.options.spinkube': true } as const;
    expect(await reasons(off, after)).toEqual({
      'experimental.kubernetes.options.spinkube': { current: false, desired: true, severity: 'restart' },
    });
  });

  test('of a cluster that is switched off are the switch and the Spin operator', async () => {
    const after = {
      'kubernetes.enabled': false,
      'kubernetes.port': 7000,
      'experimental.kubernetes.options.spinkube': true,
    } as const;
    expect(Object.keys(await reasons({}, after))).toEqual([
      'experimental.kubernetes.options.spinkube',
      'kubernetes.enabled',
    ]);
  });

  test('include the deletion of an installed cluster, whatever the settings in force say', async () => {
    const live = { 'kubernetes.enabled': false, 'kubernetes.version': '1.29.4' } as const;
    const model = runningModel(settingsWith(live));
    const installed = { ...model, cluster: { state: 'stopped' as const, installedVersion: '1.30.2', workloads: [] } };
    expect(await reasons(live, { 'kubernetes.enabled': true }, installed)).toEqual({
      'kubernetes.version': { current: '1.30.2', desired: '1.29.4', severity: 'reset' },
      'kubernetes.enabled': { current: false, desired: true, severity: 'restart' },
    });
  });
});
