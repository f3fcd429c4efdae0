import { expect } from 'vitest';
import type { Row } from '../row.ts';

const APPLIED = { settings: { images: { showAll: false } }, state: 'unmanaged', prune: [] } as const;
const FORWARDS = { entries: [{ namespace: 'default', service: 'web', k8sPort: {}, hostPort: 1 }], exclusive: false };
const OUT_OF_RANGE = {
  entries: [{ namespace: 'default', service: 'web', k8sPort: 'http', hostPort: 70_000 }],
  exclusive: false,
};
/** Of the plan that was just created. */
let tag: string | undefined;

/** Everything below /v2. */
export const ownRows: readonly Row[] = [
  {
    request: 'GET /v2/status',
    fact: 'ours: schemas/status.json',
    status: 200,
    type: 'json',
    before: 'converged',
    reply: /^\{\n {2}"kind": "Status",\n/,
  },
  {
    request: 'POST /v2/plan',
    fact: 'ours: schemas/plan.json',
    body: { settings: { containerEngine: { name: 'containerd' } }, state: 'started', prune: [] },
    before: 'converged',
    status: 200,
    type: 'json',
    reply: /^\{\n {2}"kind": "Plan",\n/,
  },
  {
    request: 'POST /v2/plan',
    when: 'bad settings',
    fact: 'ours: schemas/error.json',
    body: { settings: { kubernetes: { prot: 1 } }, state: 'started', prune: [] },
    status: 400,
    type: 'json',
    reply: expect.objectContaining({ code: 'ERR_SETTINGS_INVALID', findings: [expect.anything()] }),
  },
  {
    request: 'POST /v2/plan',
    when: 'no JSON',
    fact: 'ours: schemas/error.json',
    body: '{',
    status: 400,
    type: 'json',
    reply: expect.objectContaining({ code: 'ERR_BODY_INVALID' }),
  },
  {
    request: 'POST /v2/plan',
    when: 'port forwards that are none',
    fact: 'ours: schemas/error.json',
    body: { settings: {}, state: 'unmanaged', prune: [], portForwards: FORWARDS },
    status: 400,
    type: 'json',
    reply: expect.objectContaining({ code: 'ERR_BODY_INVALID', message: expect.stringContaining('k8sPort') }),
  },
  {
    request: 'POST /v2/plan',
    when: 'a port forward that no profile can have',
    fact: 'schemas/profile.json',
    body: { settings: {}, state: 'unmanaged', prune: [], portForwards: OUT_OF_RANGE },
    status: 400,
    type: 'json',
    reply: expect.objectContaining({ code: 'ERR_BODY_INVALID', message: expect.stringContaining('hostPort') }),
  },
  {
    request: 'POST /v2/apply',
    fact: 'ours: docs/api.md',
    async before({ client, converged }) {
      await converged();
      tag = (await client.plan({ ...APPLIED, prune: [] })).tag;
    },
    bodyFor: () => ({ ...APPLIED, tag }),
    status: 202,
    type: 'json',
    reply: expect.objectContaining({ kind: 'ApplyReply', sent: ['settings'], continues: false }),
    async after({ client }) {
      expect((await client.settings()).settings).toMatchObject({ images: { showAll: false } });
    },
  },
  {
    request: 'POST /v2/apply',
    when: 'the tag of another plan',
    fact: 'ours: docs/api.md',
    body: { ...APPLIED, tag: 'sha256:0' },
    status: 409,
    type: 'json',
    reply: expect.objectContaining({ code: 'ERR_PLAN_STALE' }),
    async after({ client }) {
      expect((await client.settings()).settings).toMatchObject({ images: { showAll: true } });
    },
  },
  {
    request: 'POST /v2/apply',
    when: 'no tag',
    fact: 'ours: docs/api.md',
    body: APPLIED,
    status: 400,
    type: 'json',
    reply: expect.objectContaining({ code: 'ERR_BODY_INVALID', message: expect.stringContaining('tag') }),
  },
  {
    request: 'GET /v2/metrics',
    fact: 'the text format of Prometheus',
    status: 200,
    type: 'metrics',
    before: 'converged',
    reply: /^# HELP rdctl_build_info .*\n# TYPE rdctl_build_info gauge\n/,
  },
  {
    request: 'GET /v2/events',
    when: 'without credentials; what it answers otherwise does not end',
    fact: 'ours: docs/api.md',
    headers: { Authorization: undefined },
    status: 401,
    type: 'json',
    reply: expect.objectContaining({ code: 'ERR_UNAUTHORIZED' }),
  },
  {
    request: `GET /v2/proof?nonce=${'0a'.repeat(32)}`,
    when: 'without credentials',
    fact: 'ours: docs/api.md',
    headers: { Authorization: undefined },
    status: 200,
    type: 'json',
    reply: /^\{"proof":"[0-9a-f]{64}"\}\n$/,
  },
  ...[`?nonce=${'0a'.repeat(15)}`, `?nonce=${'0a'.repeat(65)}`, '?nonce=../x', ''].map(
    (query): Row => ({
      request: `GET /v2/proof${query}`,
      fact: 'ours: docs/api.md',
      status: 400,
      type: 'json',
      reply: expect.objectContaining({ code: 'ERR_BODY_INVALID' }),
    }),
  ),
  {
    request: `GET /v2/proof?nonce=${'0a'.repeat(32)}`,
    when: 'from a page',
    fact: 'ours: docs/api.md',
    headers: { Origin: 'http://elsewhere.example' },
    status: 403,
    type: 'json',
    reply: expect.objectContaining({ code: 'ERR_FORBIDDEN' }),
  },
  {
    request: 'GET /v2/history',
    fact: 'ours: what rdctl history -o json prints',
    status: 200,
    type: 'json',
    reply: expect.objectContaining({ kind: 'History', formatVersion: 1, entries: expect.any(Array) }),
  },
  {
    request: 'GET /v2/kept',
    fact: 'ours: docs/watch.md',
    status: 200,
    type: 'json',
    reply: { kind: 'Kept', formatVersion: 1, kept: [] },
  },
  {
    request: 'DELETE /v2/kept?name=team',
    when: 'none is kept',
    fact: 'ours: docs/watch.md',
    status: 404,
    type: 'json',
    reply: expect.objectContaining({ code: 'ERR_NOT_FOUND', advice: 'None is kept.' }),
  },
  {
    request: 'DELETE /v2/kept',
    when: 'without a name',
    fact: 'ours: docs/watch.md',
    status: 400,
    type: 'json',
    reply: expect.objectContaining({ code: 'ERR_BODY_INVALID' }),
  },
  {
    request: 'GET /v2/settings/layers',
    fact: 'ours: docs/policies.md',
    status: 200,
    type: 'json',
    reply: expect.objectContaining({ kind: 'SettingLayers', basis: 'service' }),
  },
  {
    request: 'GET /v2/openapi.json',
    fact: 'ours: docs/api.md',
    status: 200,
    type: 'json',
    reply: expect.objectContaining({ openapi: '3.1.0' }),
  },
];
