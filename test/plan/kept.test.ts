import { expect, test } from 'vitest';
import type { Change, PlanRequest } from '../../src/plan/change.ts';
import { commonFields, partialRequest } from '../../src/plan/kept.ts';

const WEB = { namespace: 'default', service: 'web', k8sPort: 80, hostPort: 8080 };
const REQUEST: PlanRequest = {
  settings: { version: 19, images: { namespace: 'web' }, WSL: { integrations: { a: true, b: false } } },
  machine: { hostPorts: [80], mounts: { '/opt': 'writable' } },
  state: 'started',
  prune: ['WSL.integrations'],
  portForwards: { entries: [WEB], exclusive: true },
};
const change = (path: string, key?: string, action: Change['action'] = 'update'): Change => ({
  ...{ path, action, severity: 'live' as const, reason: 'a test' },
  ...(key === undefined ? {} : { key }),
});
const NOTHING = { settings: { version: 19 }, state: 'unmanaged', prune: [] };

test.each<[Change[], object]>([
  [[change('images.namespace')], { settings: { version: 19, images: { namespace: 'web' } } }],
  [[change('WSL.integrations', 'a')], { settings: { version: 19, WSL: { integrations: { a: true } } } }],
  [[change('WSL.integrations', 'c', 'delete')], { settings: { version: 19, WSL: { integrations: { c: null } } } }],
  [[change('machine.hostPorts')], { machine: { hostPorts: [80] } }],
  [[change('machine.mounts', '/opt')], { machine: { mounts: { '/opt': 'writable' } } }],
  [[change('state')], { state: 'started' }],
  [[change('portForwards', 'default/web:80', 'create')], { portForwards: { entries: [WEB], exclusive: false } }],
  [
    [change('portForwards', 'x/y:http', 'delete')],
    {
      portForwards: {
        entries: [{ namespace: 'x', service: 'y', k8sPort: 'http', hostPort: null }],
        exclusive: false,
      },
    },
  ],
])('the part of a request that makes %j alone', (changes, part) => {
  expect(partialRequest(REQUEST, changes)).toEqual({ ...NOTHING, ...part });
});

test('requests share a field by path, by entry, and by any entry where one prunes', () => {
  const base = { settings: { version: 19 }, state: 'unmanaged' as const, prune: [] };
  const b = { ...base, settings: { version: 19, WSL: { integrations: { z: true } } } };
  expect(commonFields(REQUEST, base)).toEqual([]);
  expect(commonFields(REQUEST, { ...base, state: 'stopped' })).toEqual(['state']);
  expect(commonFields({ ...REQUEST, prune: [] }, b)).toEqual([]);
  expect(commonFields(REQUEST, b)).toEqual(['WSL.integrations']);
  expect(commonFields({ ...REQUEST, prune: [] }, { ...b, settings: REQUEST.settings })).toEqual([
    'WSL.integrations[a]',
    'WSL.integrations[b]',
    'images.namespace',
  ]);
});
