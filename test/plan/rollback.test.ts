import { expect, test } from 'vitest';
import type { ClusterStatus } from '../../src/drivers/driver.ts';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import { type ErrorCode, RdError } from '../../src/errors.ts';
import { type DesiredBackend, machineSpec } from '../../src/plan/backend.ts';
import {
  decideRollback,
  type EarlierState,
  earlierState,
  type RollbackInput,
  touchedParts,
} from '../../src/plan/rollback.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import type { Settings } from '../../src/settings/settings.gen.ts';
import { settingsWith } from '../reconcile/worlds.ts';

const started = (settings: Settings): DesiredBackend => ({
  settings,
  ...DEFAULT_BLOCKS,
  power: 'started',
});
const RAN: EarlierState = { ...started(settingsWith()), generation: 4 };
const CONTAINERD = started(settingsWith({ 'containerEngine.name': 'containerd' }));

function error(code: ErrorCode, message = 'dockerd exited during its start', cause?: unknown): RdError {
  return new RdError(code, message, { cause });
}

const system = (code: string) => Object.assign(new Error(code), { code });

function observed(cluster: ClusterStatus = { state: 'absent' }): RollbackInput['observed'] {
  return {
    machine: { state: 'on', spec: machineSpec(RAN.settings, RAN) },
    engines: { moby: { state: 'stopped' }, containerd: { state: 'stopped' } },
    cluster,
  };
}

/** An engine that refuses a change of the engine, with differences. */
function decision(rest: Partial<RollbackInput> = {}) {
  const failed = rest.failed ?? CONTAINERD;
  return decideRollback({
    onFailure: 'return',
    failed,
    touched: touchedParts(RAN, failed, SIMULATED_INFO),
    earlier: RAN,
    failure: { what: 'engine start', error: error('ERR_DRIVER_FAILED') },
    failedBefore: undefined,
    locks: {},
    isRestoreUnproven: false,
    driver: SIMULATED_INFO,
    observed: observed(),
    ...rest,
  });
}

const engineFailure = (...parts: Parameters<typeof error>) => ({
  failure: { what: 'engine start', error: error(...parts) },
});
const PORT = started(settingsWith({ 'kubernetes.port': 6444 }));
const MEMORY = started(settingsWith({ 'virtualMachine.memoryInGB': 4 }));

test.each<[string, Partial<RollbackInput>]>([
  ['an engine that refuses its configuration', {}],
  ['for good', engineFailure('ERR_DRIVER_TERMINAL')],
  [
    'a missing program of the new engine',
    engineFailure('ERR_DRIVER_TERMINAL', 'containerd was not found', system('ENOENT')),
  ],
  ['images that the new list forbids', engineFailure('ERR_FORBIDDEN')],
  ['a storage driver that is not permitted', engineFailure('ERR_DRIVER_FAILED', 'overlay: operation not permitted')],
  [
    'a machine that does not boot',
    { failed: MEMORY, failure: { what: 'machine start', error: error('ERR_DRIVER_FAILED') } },
  ],
  ['an engine in a new machine', { failed: MEMORY }],
  ['a new port that is taken', { failed: PORT, failure: { what: 'cluster start', error: error('ERR_PORT_IN_USE') } }],
  ['an affected part that had failed before', { failedBefore: 'engine' }],
  [
    'a step that took too long',
    engineFailure('ERR_DRIVER_FAILED', 'engine start did not finish', error('ERR_CANCELLED')),
  ],
])('returns: %s', (_, input) => {
  expect(decision(input)).toEqual({ to: RAN });
});

test.each<[string, Partial<RollbackInput>, string]>([
  ['as asked', { onFailure: 'keep' }, 'the apply asked for it'],
  ['first start', { earlier: undefined }, 'the backend has not run in this home before'],
  ['network', engineFailure('ERR_CONNECTION'), 'the network or a registry failed'],
  [
    'network behind a terminal error',
    engineFailure('ERR_DRIVER_TERMINAL', 'there is no release', error('ERR_CONNECTION')),
    'the network or a registry failed',
  ],
  ['name service', engineFailure('ERR_DRIVER_FAILED', 'lookup: no such host'), 'the network or a registry failed'],
  ['full disk', engineFailure('ERR_IO', 'could not write', system('ENOSPC')), 'the disk is full'],
  ['full disk in a log', engineFailure('ERR_DRIVER_FAILED', 'write: no space left on device'), 'the disk is full'],
  ['permissions', engineFailure('ERR_IO', 'could not write', system('EACCES')), 'this computer denied a permission'],
  [
    'permissions in the log of another part',
    { failed: PORT, ...engineFailure('ERR_DRIVER_FAILED', 'open /var/lib/x: permission denied') },
    'this computer denied a permission',
  ],
  ['a port of another part', { failed: PORT, ...engineFailure('ERR_PORT_IN_USE') }, 'a port is in use'],
  ['a canceled step', engineFailure('ERR_CANCELLED'), 'the work was canceled'],
  ['files', engineFailure('ERR_IO'), 'a file could not be read or written'],
  ['a bug', engineFailure('ERR_INTERNAL'), 'the failure is a bug, not an answer to the change'],
  [
    'what is not observed',
    { failure: { what: 'observation', error: error('ERR_DRIVER_FAILED') } },
    'the failure is not one of the machine, the engine or the cluster',
  ],
  [
    'what had failed before',
    { failed: PORT, failedBefore: 'engine' },
    'the engine had failed before, and the change does not affect it',
  ],
  ['settings that ran', { failed: started(RAN.settings) }, 'these settings ran before'],
  ['a snapshot', { isRestoreUnproven: true }, 'a snapshot was restored and has not been seen running yet'],
  [
    'a lock',
    { locks: { containerEngine: { name: true } } },
    'going back would change "containerEngine.name", which is locked',
  ],
  [
    'a newer cluster',
    {
      earlier: {
        ...started(settingsWith({ 'kubernetes.enabled': true, 'kubernetes.version': '1.29.4' })),
        generation: 4,
      },
      failed: started(settingsWith({ 'kubernetes.enabled': true, 'kubernetes.version': '1.30.2' })),
      observed: observed({ state: 'stopped', installedVersion: '1.30.2' }),
      failure: { what: 'cluster start', error: error('ERR_DRIVER_FAILED') },
    },
    'going back to Kubernetes 1.29.4 would delete the data of the cluster',
  ],
])('stays: %s', (_, input, keptBecause) => {
  expect(decision(input)).toEqual({ keptBecause });
});

test('a disk that has grown stays, and so do installed extensions', () => {
  const failed = started(
    settingsWith({
      'experimental.virtualMachine.diskSize': '200GiB',
      'application.extensions.installed': { 'simulated/hello': '1.0.0' },
      'virtualMachine.memoryInGB': 4,
    }),
  );
  const settings = settingsWith({
    'experimental.virtualMachine.diskSize': '200GiB',
    'application.extensions.installed': { 'simulated/hello': '1.0.0' },
  });
  expect(decision({ failed })).toEqual({ to: { ...RAN, settings } });
});

test('goes back to what ran; to off, if it was off; nowhere, if nothing ever ran', () => {
  const before = { ...MEMORY, generation: 7 };
  const off = { ...before, power: 'stopped' as const };
  expect(earlierState({ before, power: 'started', proven: RAN })).toEqual(RAN);
  expect(earlierState({ before: off, power: 'stopped', proven: RAN })).toEqual(off);
  // A service that was launched for an apply has its backend off.
  expect(earlierState({ before: off, power: 'started', proven: RAN })).toEqual(RAN);
  expect(earlierState({ before, power: 'started', proven: undefined })).toBeUndefined();
  expect(earlierState({ before: off, power: 'stopped', proven: undefined })).toBeUndefined();
});

test('a change affects the parts whose specification differs, and a start affects all', () => {
  const parts = (after: DesiredBackend) => touchedParts(RAN, after, SIMULATED_INFO);
  expect(parts(MEMORY)).toEqual(['machine']);
  expect(parts(CONTAINERD)).toEqual(['engine', 'cluster']);
  expect(parts(PORT)).toEqual(['cluster']);
  expect(parts(started(settingsWith({ 'images.showAll': false })))).toEqual([]);
  expect(parts({ ...RAN, power: 'stopped' })).toEqual(['machine', 'engine', 'cluster']);
});
