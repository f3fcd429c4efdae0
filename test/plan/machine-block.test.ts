import { expect, test } from 'vitest';
import { HOST_SUPPORT } from '../../src/drivers/machines/host/index.ts';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import { supportOf } from '../../src/plan/drift.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { planFor, requestFor } from './planning.ts';

const BLOCK = { mounts: { '/data': 'read-only' as const }, hostPorts: [5432], pauseAfterMinutes: 30 };

test('mounts restart the machine; ports and pause are live', async () => {
  const { changes, summary } = await planFor({}, requestFor({}, { machine: BLOCK }));
  expect(changes).toMatchObject([
    { path: 'machine.mounts', key: '/data', action: 'create', after: 'read-only', severity: 'restart' },
    { path: 'machine.hostPorts', action: 'update', before: [], after: [5432], severity: 'live' },
    { path: 'machine.pauseAfterMinutes', action: 'update', before: 0, after: 30, severity: 'live' },
  ]);
  expect(summary.restarts).toBe(1);
  const live = await planFor({}, requestFor({}, { machine: { hostPorts: [5432] } }));
  expect(live.summary).toMatchObject({ changes: 1, restarts: 0, nothingLost: true });
  expect(live.blastRadius).toEqual([]);
});

test('what is in force already is no change', async () => {
  const { changes } = await planFor({}, requestFor({}, { machine: { hostPorts: [], mounts: { '/gone': null } } }));
  expect(changes).toEqual([]);
});

test('prune removes the mounts that the profile does not list', async () => {
  const machine = { ...DEFAULT_BLOCKS.machine, mounts: { '/a': 'writable' as const, '/b': 'writable' as const } };
  const request = requestFor({}, { machine: { mounts: { '/a': 'writable' } }, prune: ['machine.mounts'] });
  const { changes } = await planFor({}, request, { machine });
  expect(changes.filter(({ path }) => path === 'machine.mounts')).toMatchObject([{ key: '/b', action: 'delete' }]);
});

test('a driver without a machine refuses the block', async () => {
  const driver = {
    ...SIMULATED_INFO,
    support: {
      ...SIMULATED_INFO.support,
      'machine.mounts': supportOf({ name: 'host', support: HOST_SUPPORT }, 'machine.mounts'),
    },
  };
  const { changes } = await planFor({}, requestFor({}, { machine: { mounts: { '/data': 'writable' } } }), { driver });
  expect(changes).toMatchObject([{ path: 'machine.mounts', blocked: { by: 'unsupported' } }]);
});
