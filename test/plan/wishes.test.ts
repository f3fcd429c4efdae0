import { expect, test } from 'vitest';
import { HOST_SUPPORT } from '../../src/drivers/machines/host/support.ts';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/info.ts';
import { planFor, requestFor } from './planning.ts';

const HOST = { ...SIMULATED_INFO, name: 'host' as const, support: HOST_SUPPORT, hasCluster: false };
const ON_HOST = { driver: HOST, power: 'stopped' as const };
const wished = (values: Parameters<typeof requestFor>[0]) => requestFor(values, { wishes: Object.keys(values) });

test('a wish that equals the default is refused where the driver cannot fulfil it, as any other value is', async () => {
  const live = { 'virtualMachine.memoryInGB': 6, 'kubernetes.enabled': true };
  for (const memory of [6, 8]) {
    const request = wished({ 'virtualMachine.memoryInGB': memory, 'kubernetes.enabled': true });
    const { changes, summary } = await planFor(live, request, ON_HOST);
    const refused = changes.filter(({ blocked }) => blocked?.by === 'unsupported').map(({ path }) => path);
    expect(refused.sort()).toEqual(['kubernetes.enabled', 'virtualMachine.memoryInGB']);
    expect(summary.blocked).toBe(2);
  }
});

test('a wish for what the driver leaves out anyway is fulfilled', async () => {
  const { changes } = await planFor({ 'kubernetes.enabled': false }, wished({ 'kubernetes.enabled': false }), ON_HOST);
  expect(changes.filter(({ blocked }) => blocked)).toEqual([]);
});

test('settings that an application printed wish for nothing that is there', async () => {
  const live = { 'virtualMachine.memoryInGB': 6, 'kubernetes.enabled': true };
  expect((await planFor(live, requestFor(live), ON_HOST)).changes.filter(({ blocked }) => blocked)).toEqual([]);
});

test('a lock that holds the value that is wished for is in nobody’s way', async () => {
  const request = wished({ 'containerEngine.name': 'moby' });
  const locks = { containerEngine: { name: true } };
  expect((await planFor({}, request, { locks })).changes).toEqual([]);
});

test('what is only stored is said every time, also when it is stored already', async () => {
  const { warnings } = await planFor({}, wished({ 'kubernetes.port': 6443 }), ON_HOST);
  expect(warnings).toContainEqual(
    expect.stringContaining('"kubernetes.port" is stored and has no effect with the host driver'),
  );
});
