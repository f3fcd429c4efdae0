import { expect, test } from 'vitest';
import { HOST_SUPPORT } from '../../src/drivers/machines/host/index.ts';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import { planFor, requestFor } from './planning.ts';

const HOST = { ...SIMULATED_INFO, name: 'host' as const, support: HOST_SUPPORT, hasCluster: false };
const ON_HOST = { driver: HOST, power: 'stopped' as const };
const wished = (values: Parameters<typeof requestFor>[0]) => requestFor(values, { wishes: Object.keys(values) });

test('a value equal to the default is refused like any other when the driver does not support it', async () => {
  const live = { 'virtualMachine.memoryInGB': 6, 'kubernetes.enabled': true };
  for (const memory of [6, 8]) {
    const request = wished({ 'virtualMachine.memoryInGB': memory, 'kubernetes.enabled': true });
    const { changes, summary } = await planFor(live, request, ON_HOST);
    const refused = changes.filter(({ blocked }) => blocked?.by === 'unsupported').map(({ path }) => path);
    expect(refused.sort()).toEqual(['kubernetes.enabled', 'virtualMachine.memoryInGB']);
    expect(summary.blocked).toBe(2);
  }
});

test('a value that disables what the driver does not have is accepted', async () => {
  const { changes } = await planFor({ 'kubernetes.enabled': false }, wished({ 'kubernetes.enabled': false }), ON_HOST);
  expect(changes.filter(({ blocked }) => blocked)).toEqual([]);
});

test('printed settings of an application can be applied to it', async () => {
  const live = { 'virtualMachine.memoryInGB': 6, 'kubernetes.enabled': true };
  expect((await planFor(live, requestFor(live), ON_HOST)).changes.filter(({ blocked }) => blocked)).toEqual([]);
});

test('a lock that has the desired value blocks nothing', async () => {
  const request = wished({ 'containerEngine.name': 'moby' });
  const locks = { containerEngine: { name: true } };
  expect((await planFor({}, request, { locks })).changes).toEqual([]);
});

test('a setting that is only stored is reported every time, even when it is stored already', async () => {
  const { warnings } = await planFor({}, wished({ 'kubernetes.port': 6443 }), ON_HOST);
  expect(warnings).toContainEqual(
    expect.stringContaining('"kubernetes.port" is stored and has no effect with the host driver'),
  );
});
