import { expect, test } from 'vitest';
import type { PlanRequest } from '../../src/plan/change.ts';
import { commonFields } from '../../src/plan/kept.ts';

const WEB = { namespace: 'default', service: 'web', k8sPort: 80, hostPort: 8080 };
const REQUEST: PlanRequest = {
  settings: { version: 19, images: { namespace: 'web' }, WSL: { integrations: { a: true, b: false } } },
  machine: { hostPorts: [80], mounts: { '/opt': 'writable' } },
  state: 'started',
  prune: ['WSL.integrations'],
  portForwards: { entries: [WEB], exclusive: true },
};

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
