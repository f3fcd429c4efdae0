import { expect } from 'vitest';
import type { Row } from '../row.ts';
import { bodyRows } from './bodies.ts';

const ADVICE = 'Send {"vmState":"STARTED"} or {"vmState":"STOPPED"}.';
const NOT_JSON = 'error processing JSON request block';
const invalid = (value: string) => `invalid desired VM state "${value}"\n${ADVICE}`;
const off = { power: 'stopped' } as const;

const put = (when: string, body: object): Row => ({
  request: 'PUT /v1/backend_state',
  when,
  fact: 'api 12.3',
  body,
  status: 202,
  type: 'text',
  reply: 'received backend state',
  replyHeaders: { 'rdctl-generation': /^\d+$/ },
});

export const backendStateRows: readonly Row[] = [
  {
    request: 'GET /v1/backend_state',
    when: 'off',
    fact: 'api 12.1: compact, no newline',
    status: 200,
    type: 'json',
    given: off,
    before: 'converged',
    reply: '{"vmState":"STOPPED","locked":false}',
  },
  {
    request: 'GET /v1/backend_state',
    when: 'with a cluster',
    fact: 'api 12.2',
    status: 200,
    type: 'json',
    before: 'converged',
    reply: '{"vmState":"STARTED","locked":false}',
  },
  {
    request: 'GET /v1/backend_state',
    when: 'without a cluster',
    fact: 'api 12.2',
    status: 200,
    type: 'json',
    given: { settings: { version: 19, kubernetes: { enabled: false } } },
    before: 'converged',
    reply: '{"vmState":"DISABLED","locked":false}',
  },
  {
    request: 'GET /v1/backend_state',
    when: 'the start failed for good',
    fact: 'api 12.2',
    status: 200,
    type: 'json',
    given: { env: { RDCTL_SIMULATED_FAULTS: 'engine.start:terminal' } },
    before: async ({ client }) => expect.poll(async () => (await client.backendState()).vmState).toBe('ERROR'),
    reply: '{"vmState":"ERROR","locked":false}',
  },
  {
    ...put('start', { vmState: 'STARTED' }),
    given: off,
    after: async ({ converged }) => expect((await converged()).backendState).toBe('STARTED'),
  },
  {
    ...put('stop, as the snapshot code sends it', { vmState: 'STOPPED', locked: true }),
    before: 'converged',
    after: async ({ converged, send }) => {
      expect((await converged()).backendState).toBe('STOPPED');
      expect((await send('GET /v1/backend_state')).body).toBe('{"vmState":"STOPPED","locked":false}');
    },
  },
  put('what is so already', { vmState: 'STARTED' }),
  {
    ...put('another state', { vmState: 'PAUSED' }),
    fact: 'api 12.3; 19.6: 400',
    status: 400,
    reply: invalid('PAUSED'),
    replyHeaders: {},
  },
  {
    ...put('no state', { locked: false }),
    fact: 'api 12.3; 19.6: 400',
    status: 400,
    reply: invalid('undefined'),
    replyHeaders: {},
  },
  ...bodyRows('PUT /v1/backend_state', {
    empty: NOT_JSON,
    notJson: NOT_JSON,
    null: invalid('undefined'),
    scalar: invalid('undefined'),
    array: invalid('undefined'),
  }),
];
