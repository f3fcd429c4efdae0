import { expect } from 'vitest';
import type { Row } from '../row.ts';
import { bodyRows } from './bodies.ts';

const off = { power: 'stopped' } as const;
const WEB = { namespace: 'default', service: 'web', k8sPort: 80, hostPort: 0 };
const OF_WEB = 'namespace=default&service=web&k8sPort=80';
const MISSING = 'missing required parameters';
const DELETED = 'Port forwarding successfully deleted';

const post = (when: string, body: object, status: number, reply: string | RegExp, fact = 'api 15.1'): Row => ({
  request: 'POST /v1/port_forwarding',
  when,
  fact,
  body,
  status,
  type: 'text',
  reply,
  before: 'converged',
});
const remove = (query: string, status: number, reply: string, fact = 'api 15.1'): Row => ({
  request: `DELETE /v1/port_forwarding${query}`,
  fact,
  status,
  type: 'text',
  reply,
  given: off,
});
const required = (name: string) => `Port forwarding ${name} is required in query parameters`;

async function answers(port: string): Promise<void> {
  const reply = await fetch(`http://127.0.0.1:${port}/`);
  expect(reply.status).toBe(200);
}

export const portForwardRows: readonly Row[] = [
  {
    ...post('any free port', WEB, 200, /^\d{4,5}$/, 'seed: port_forwarding; api 15.1'),
    after: (_wire, { body }) => answers(body),
  },
  {
    ...post('ports as texts', { ...WEB, k8sPort: '80', hostPort: '0' }, 200, /^\d{4,5}$/),
    after: async ({ send }, { body }) => {
      const again = await send('POST /v1/port_forwarding', { ...WEB, hostPort: Number(body) });
      expect([again.status, again.body]).toEqual([200, body]);
    },
  },
  post('no such key', { namespace: 'default', service: 'web', k8sPort: 80 }, 400, MISSING),
  post('an empty object', {}, 400, MISSING),
  post('a host port that is none', { ...WEB, hostPort: 65_536 }, 400, /^Could not forward port/),
  { ...post('no cluster', WEB, 400, /^Could not forward port/), given: off },
  {
    ...post('a host port that is taken', {}, 400, /^Could not forward port/),
    bodyFor: ({ service }) => ({ ...WEB, hostPort: service.port }),
  },
  ...bodyRows('POST /v1/port_forwarding', {
    empty: 'error processing JSON request block',
    notJson: 'error processing JSON request block',
    null: 'error processing JSON request block',
    scalar: 'error processing JSON request block',
    array: MISSING,
  }),
  remove(`?${OF_WEB}`, 200, DELETED, 'seed: port_forwarding; api 15.1: never existed'),
  {
    ...remove(`?${OF_WEB}`, 200, DELETED),
    when: 'one that is there',
    given: {},
    before: async (wire) => {
      await wire.converged();
      expect((await wire.send('POST /v1/port_forwarding', WEB)).status).toBe(200);
    },
    after: async ({ send }) => expect(JSON.parse((await send('GET /v2/port_forwards')).body).portForwards).toEqual([]),
  },
  remove('', 400, required('namespace')),
  remove('?namespace=&service=web&k8sPort=80', 400, required('namespace')),
  remove('?namespace=a', 400, required('service')),
  remove('?namespace=a&service=b', 400, required('k8sPort')),
  remove(
    '?namespace=a&namespace=b&service=c&k8sPort=1',
    400,
    'Invalid port forwarding namespace ["a","b"]: not a string.',
  ),
  remove('?namespace=a&namespace=b', 400, required('service'), 'api 15.1: what is missing comes first'),
  remove('?namespace=a&service=b&service=c', 400, required('k8sPort'), 'api 15.1: what is missing comes first'),
  {
    request: 'GET /v2/port_forwards',
    fact: 'ours: docs/port-forwards.md',
    status: 200,
    type: 'json',
    given: off,
    reply: expect.objectContaining({ kind: 'PortForwards', portForwards: [] }),
  },
  {
    request: 'POST /v2/port_forwards',
    fact: 'ours: docs/port-forwards.md',
    body: WEB,
    before: 'converged',
    status: 200,
    type: 'json',
    reply: expect.objectContaining({ service: 'web', state: 'listening' }),
  },
  {
    request: 'POST /v2/port_forwards',
    when: 'no forward',
    fact: 'ours: docs/port-forwards.md',
    body: {},
    status: 400,
    type: 'json',
    given: off,
    reply: expect.objectContaining({ code: 'ERR_BODY_INVALID' }),
  },
];
