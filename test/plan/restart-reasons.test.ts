import { describe, expect, test } from 'vitest';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/info.ts';
import { emptyModel } from '../../src/drivers/machines/simulated/model.ts';
import { restartReasons } from '../../src/plan/restart-reasons.ts';
import { runningModel, seenOf, settingsWith } from '../reconcile/worlds.ts';
import type { Values } from './planning.ts';

/** Reasons of changing a backend that runs with `live`. */
async function reasons(live: Values, after: Values, model = runningModel(settingsWith(live))) {
  return restartReasons(settingsWith({ ...live, ...after }), await seenOf(model), SIMULATED_INFO, settingsWith(live));
}

describe('restart reasons', () => {
  test('carry the running value, the wanted one and the severity, in the order of the wire format', async () => {
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
      ['containerEngine.name', { current: 'moby', desired: 'containerd', severity: 'restart' }],
      ['kubernetes.port', { current: 6443, desired: 7000, severity: 'restart' }],
      ['virtualMachine.memoryInGB', { current: 2, desired: 6, severity: 'restart' }],
    ]);
  });

  test('are none for what is stored or applied live', async () => {
    const live = { 'containerEngine.allowedImages.enabled': true } as const;
    expect(await reasons(live, { 'application.debug': true, 'containerEngine.allowedImages.patterns': ['a'] })).toEqual(
      {},
    );
  });

  test('are none while nothing runs', async () => {
    expect(await reasons({}, { 'containerEngine.name': 'containerd' }, emptyModel())).toEqual({});
  });

  test('show a disk with a unit', async () => {
    expect(await reasons({}, { 'experimental.virtualMachine.diskSize': '200GiB' })).toEqual({
      'experimental.virtualMachine.diskSize': { current: '100GiB', desired: '200GiB', severity: 'restart' },
    });
  });

  test('name the switch of the cluster, in both directions', async () => {
    expect(await reasons({}, { 'kubernetes.enabled': false })).toEqual({
      'kubernetes.enabled': { current: true, desired: false, severity: 'restart' },
    });
    expect(await reasons({ 'kubernetes.enabled': false }, { 'kubernetes.enabled': true })).toEqual({
      'kubernetes.enabled': { current: false, desired: true, severity: 'restart' },
    });
  });

  test('do not take a cluster that is merely not up yet for a change', async () => {
    const model = runningModel(settingsWith());
    expect(await reasons({}, { 'application.debug': true }, { ...model, cluster: { state: 'absent' } })).toEqual({});
  });
});
