import { expect, test } from 'vitest';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import type { PlanRequest } from '../../src/plan/change.ts';
import { changeName } from '../../src/plan/kept.ts';
import { type FieldName, withoutFields } from '../../src/plan/leave-out.ts';
import { planFor, requestFor } from './planning.ts';

const INTEGRATIONS = 'WSL.integrations';
const EXTENSIONS = 'application.extensions.installed';
const PATTERNS = 'containerEngine.allowedImages.patterns';
const forward = (service: string, hostPort: number) => ({ namespace: 'default', service, k8sPort: 80, hostPort });
const LIVE = {
  'images.namespace': 'old',
  [INTEGRATIONS]: { b: true, c: true },
  [EXTENSIONS]: { 'example/old': '1' },
};
const REQUEST: PlanRequest = {
  ...requestFor({ 'images.namespace': 'web', [INTEGRATIONS]: { a: true, b: false }, [EXTENSIONS]: {} }),
  machine: { hostPorts: [80], mounts: { '/opt': 'writable' } },
  prune: [INTEGRATIONS, EXTENSIONS],
  portForwards: { entries: [forward('web', 8080)], exclusive: true },
};
const FACTS = {
  forwards: {
    ...{ kind: 'PortForwards' as const, formatVersion: 1 as const, supported: true },
    portForwards: [{ ...forward('db', 5432), state: 'listening' as const, connections: 0 }],
  },
};
const ALL = [
  ...[`${EXTENSIONS}[example/old]`, 'images.namespace', `${INTEGRATIONS}[a]`, `${INTEGRATIONS}[b]`],
  ...[`${INTEGRATIONS}[c]`, 'machine.hostPorts', 'machine.mounts[/opt]'],
  ...['portForwards[default/db:80]', 'portForwards[default/web:80]'],
];
const names = ({ changes }: { changes: readonly FieldName[] }) => changes.map(changeName);

test('each change of a request can be made alone, and each can be left out', async () => {
  const plan = await planFor(LIVE, REQUEST, FACTS);
  expect(names(plan).sort()).toEqual([...ALL].sort());
  for (const change of plan.changes) {
    const others = plan.changes.filter((other) => other !== change);
    // Its cost can depend on the others.
    const { severity: _, reason: __, ...field } = change;
    const alone = await planFor(LIVE, withoutFields(REQUEST, others), FACTS);
    expect(alone.changes).toEqual([expect.objectContaining(field)]);
    expect(names(await planFor(LIVE, withoutFields(REQUEST, [change]), FACTS))).toEqual(names({ changes: others }));
  }
});

test('a path without a key stands for all entries of a map', async () => {
  const rest = names(await planFor(LIVE, withoutFields(REQUEST, [{ path: INTEGRATIONS }]), FACTS));
  expect(rest).toHaveLength(ALL.length - 3);
  expect(rest.filter((name) => name.startsWith(INTEGRATIONS))).toEqual([]);
});

test('power stays where it is left out, whatever else changes', async () => {
  const request = requestFor({ 'images.namespace': 'web' }, { state: 'stopped' });
  expect(names(await planFor({}, request))).toEqual(['images.namespace', 'state']);
  expect(names(await planFor({}, withoutFields(request, [{ path: 'state' }])))).toEqual(['images.namespace']);
});

test('fields are left out one after the other', async () => {
  const once = withoutFields(REQUEST, [{ path: INTEGRATIONS }, { path: EXTENSIONS }]);
  const twice = withoutFields(once, [{ path: 'portForwards', key: 'default/web:80' }, { path: 'machine.mounts' }]);
  expect(names(await planFor(LIVE, twice, FACTS))).toEqual([
    ...['images.namespace', 'machine.hostPorts', 'portForwards[default/db:80]'],
  ]);
});

test('nothing is said of what is left out', async () => {
  const support = {
    ...SIMULATED_INFO.support,
    'images.namespace': { level: 'unsupported' as const, reason: 'it has none' },
    'images.showAll': { level: 'stored' as const, reason: 'nothing reads it' },
  };
  const values = { 'images.namespace': 'k8s.io', 'images.showAll': true, [PATTERNS]: ['a:b:c'] };
  const request = requestFor(values, { wishes: ['images.namespace', 'images.showAll'] });
  const driver = { ...SIMULATED_INFO, support };
  const whole = await planFor(values, request, { driver });
  expect(whole.changes).toMatchObject([{ path: 'images.namespace', blocked: { by: 'unsupported' } }]);
  expect(whole.warnings).toHaveLength(2);
  const fields = [{ path: 'images.namespace' }, { path: 'images.showAll' }, { path: PATTERNS }];
  expect(await planFor(values, withoutFields(request, fields), { driver })).toMatchObject({
    changes: [],
    warnings: [],
  });
});

test('an extension whose removal follows from the allow list is not kept by leaving it out', async () => {
  const allowed = 'application.extensions.allowed';
  const values = { [`${allowed}.enabled`]: true, [`${allowed}.list`]: ['example/other'] };
  const request = requestFor({ ...values, [EXTENSIONS]: { 'example/old': '1' } });
  const [blocked] = (await planFor(LIVE, request)).changes.filter(({ path }) => path === EXTENSIONS);
  expect(blocked?.blocked?.by).toBe('unsupported');
  const left = await planFor(LIVE, withoutFields(request, [{ path: EXTENSIONS, key: 'example/old' }]));
  const removal = left.changes.filter(({ path }) => path === EXTENSIONS);
  expect(removal).toMatchObject([{ key: 'example/old', action: 'delete' }]);
  expect(removal[0]?.blocked).toBeUndefined();
});

test('a forward that is left out keeps its host port', async () => {
  const portForwards = { entries: [forward('web', 5432)], exclusive: true };
  const request = { ...requestFor({}), portForwards };
  expect((await planFor({}, request, FACTS)).changes.some(({ blocked }) => blocked)).toBe(false);
  const left = withoutFields(request, [{ path: 'portForwards', key: 'default/db:80' }]);
  expect((await planFor({}, left, FACTS)).changes).toMatchObject([
    {
      key: 'default/web:80',
      blocked: { message: '127.0.0.1:5432 is forwarded to default/db:80, which the profile leaves alone.' },
    },
  ]);
});
