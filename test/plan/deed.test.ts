import { expect, test } from 'vitest';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { settingsWith } from '../reconcile/worlds.ts';
import { plannedFor, requestFor } from './planning.ts';

const EXTENSIONS = 'application.extensions.installed';
const forward = (service: string, hostPort: number) => ({ namespace: 'default', service, k8sPort: 80, hostPort });
const report = (...listening: { service: string; hostPort: number }[]) => ({
  ...{ kind: 'PortForwards' as const, formatVersion: 1 as const, supported: true },
  portForwards: listening.map(({ service, hostPort }) => ({
    ...{ ...forward(service, hostPort), state: 'listening' as const, connections: 0 },
  })),
});

test('the next state has what changes, and the very members that do not', async () => {
  const live = settingsWith();
  const facts = { live, ...DEFAULT_BLOCKS };
  const { next: same } = (await plannedFor({}, requestFor({}), facts)).deed;
  expect(same.settings).toBe(live);
  expect(same.machine).toBe(DEFAULT_BLOCKS.machine);
  expect(same).not.toHaveProperty('power');
  const request = requestFor({ 'kubernetes.port': 7000 }, { machine: { hostPorts: [80] }, state: 'stopped' });
  const { next } = (await plannedFor({}, request, facts)).deed;
  expect(next).toEqual({
    settings: settingsWith({ 'kubernetes.port': 7000 }),
    machine: { ...DEFAULT_BLOCKS.machine, hostPorts: [80] },
    power: 'stopped',
  });
});

test('power is written where the request manages it, also if it stays', async () => {
  expect((await plannedFor({}, requestFor({}, { state: 'started' }))).deed.next.power).toBe('started');
});

test('a blocked change is not made', async () => {
  const locks = { kubernetes: { port: true } };
  const request = requestFor({ 'kubernetes.port': 7000, 'images.namespace': 'x' });
  const { plan, deed } = await plannedFor({}, request, { locks });
  expect(plan.summary.blocked).toBe(1);
  expect(deed.next.settings).toEqual(settingsWith({ 'images.namespace': 'x' }));
});

test('extensions are steps after the write, removals first', async () => {
  const request = requestFor({ [EXTENSIONS]: { 'example/new': '2' } }, { prune: [EXTENSIONS] });
  const live = { [EXTENSIONS]: { 'example/old': '1' } };
  const { deed } = await plannedFor(live, request);
  expect(deed.next.settings).toEqual(settingsWith(live));
  expect(deed.steps.extensions).toEqual([
    { what: 'uninstall', id: 'example/old' },
    { what: 'install', id: 'example/new:2' },
  ]);
  expect(deed.after.settings).toEqual(settingsWith({ [EXTENSIONS]: { 'example/new': '2' } }));
});

test('a forward leaves a host port before another one takes it', async () => {
  const entries = [forward('web', 5432), forward('db', 9000)];
  const forwards = report({ service: 'db', hostPort: 5432 }, { service: 'old', hostPort: 1 });
  const { deed } = await plannedFor(
    {},
    { ...requestFor({}), portForwards: { entries, exclusive: true } },
    { forwards },
  );
  const { hostPort: _, ...db } = forward('db', 0);
  expect(deed.steps.forwards).toEqual({ remove: [{ ...db, service: 'old' }, db], ensure: entries });
  expect(deed.after.forwards?.portForwards.map(({ service, hostPort, state }) => [service, hostPort, state])).toEqual([
    ['db', 9000, 'listening'],
    ['web', 5432, 'waiting'],
  ]);
});

test('a forward that is blocked stays as it is', async () => {
  const portForwards = { entries: [forward('web', 5432)], exclusive: false };
  const forwards = report({ service: 'db', hostPort: 5432 });
  const { deed } = await plannedFor({}, { ...requestFor({}), portForwards }, { forwards });
  expect(deed.steps.forwards).toEqual({ remove: [], ensure: [] });
  expect(deed.after.forwards).toEqual(forwards);
});

test('where forwards cannot be listed, all of them are set', async () => {
  const closed = { ...forward('db', 0), hostPort: null };
  const portForwards = { entries: [forward('web', 8080), closed], exclusive: true };
  const { plan, deed } = await plannedFor({}, { ...requestFor({}), portForwards });
  expect(plan.changes).toEqual([]);
  expect(plan.warnings).toHaveLength(2);
  expect(deed.steps.forwards).toEqual({ remove: [closed], ensure: [forward('web', 8080)] });
  expect(deed.after).not.toHaveProperty('forwards');
});
