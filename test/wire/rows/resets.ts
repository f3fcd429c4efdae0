import { existsSync } from 'node:fs';
import { expect } from 'vitest';
import type { Row } from '../row.ts';
import { bodyRows } from './bodies.ts';

const NOT_JSON = 'error processing JSON request block';
const off = { power: 'stopped' } as const;

const reset = (when: string, body: object, mode: 'fast' | 'wipe', fact = 'api 15.3'): Row => ({
  request: 'PUT /v1/k8s_reset',
  when,
  fact,
  body,
  before: 'converged',
  status: 200,
  type: 'text',
  reply: `Rancher Desktop ${mode} reset successful`,
  after: async ({ client, send }) => {
    expect((await client.backendState()).vmState).toBe('STARTED');
    expect((await send('GET /v1/settings')).status).toBe(200);
  },
});
const badReset = (when: string, body: object, reply: string): Row => ({
  request: 'PUT /v1/k8s_reset',
  when,
  fact: 'api 19.22: a mistake deletes nothing',
  body,
  status: 400,
  type: 'text',
  reply,
  given: off,
});
const factoryReset = (when: string, body: string | object | undefined, fact: string): Row => ({
  request: 'PUT /v1/factory_reset',
  when,
  fact,
  ...(body === undefined ? {} : { body }),
  status: 202,
  type: 'text',
  reply: 'Doing a full factory reset....',
  given: off,
  after: async ({ service, here }) => {
    await service.stopped;
    expect([here.settingsFile, here.connectionFile, here.stateFile].filter((file) => existsSync(file))).toEqual([]);
  },
});
const badFactoryReset = (when: string, body: string | object, reply: RegExp | string): Row => ({
  request: 'PUT /v1/factory_reset',
  when,
  fact: 'api 19.23: strict',
  body,
  status: 400,
  type: 'text',
  reply,
  given: off,
  after: async ({ send }) => expect((await send('GET /v1/settings')).status).toBe(200),
});

export const resetRows: readonly Row[] = [
  reset('fast', { mode: 'fast' }, 'fast', 'seed: k8s_reset; api 15.3'),
  reset('wipe', { mode: 'wipe' }, 'wipe', 'seed: k8s_reset; api 15.3'),
  reset('no mode', {}, 'fast'),
  {
    ...reset('stopped', { mode: 'fast' }, 'fast', 'ours: a reset does not start what was stopped'),
    given: off,
    after: async ({ client }) => expect((await client.backendState()).vmState).toBe('STOPPED'),
  },
  badReset('another mode', { mode: 'slow' }, 'invalid reset mode "slow"\nSend {"mode":"fast"} or {"mode":"wipe"}.'),
  badReset('a mode that is no string', { mode: 1 }, 'invalid reset mode 1\nSend {"mode":"fast"} or {"mode":"wipe"}.'),
  ...bodyRows('PUT /v1/k8s_reset', { empty: NOT_JSON, notJson: NOT_JSON, null: NOT_JSON, scalar: NOT_JSON }),
  factoryReset('an object', { keepSystemImages: true }, 'seed: factory_reset; api 15.2'),
  factoryReset('an empty object', {}, 'api 15.2'),
  factoryReset('no body', undefined, 'api 19.23: optional'),
  badFactoryReset(
    'text for a switch',
    { keepSystemImages: 'false' },
    '"keepSystemImages" must be true or false, not "false"',
  ),
  badFactoryReset('another key', { keep: true }, /^unknown field "keep"/),
  ...bodyRows('PUT /v1/factory_reset', { notJson: NOT_JSON, null: NOT_JSON, scalar: NOT_JSON, array: NOT_JSON }),
];
