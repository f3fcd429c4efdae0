import { expect } from 'vitest';
import type { Row } from '../row.ts';

/** What is below /v2. */
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
