import type { Row } from '../row.ts';

const V1 = [
  'GET /v1',
  'GET /v1/about',
  'GET /v1/backend_state',
  'PUT /v1/backend_state',
  'GET /v1/diagnostic_categories',
  'GET /v1/diagnostic_checks',
  'POST /v1/diagnostic_checks',
  'GET /v1/diagnostic_ids',
  'GET /v1/extensions',
  'POST /v1/extensions/install',
  'POST /v1/extensions/uninstall',
  'PUT /v1/factory_reset',
  'PUT /v1/k8s_reset',
  'DELETE /v1/port_forwarding',
  'POST /v1/port_forwarding',
  'PUT /v1/propose_settings',
  'GET /v1/settings',
  'PUT /v1/settings',
  'GET /v1/settings/locked',
  'PUT /v1/shutdown',
  'POST /v1/snapshot/restore',
  'GET /v1/snapshots',
  'DELETE /v1/snapshots',
  'POST /v1/snapshots',
  'POST /v1/snapshots/cancel',
  'GET /v1/transient_settings',
  'PUT /v1/transient_settings',
];

const json = (request: string, list: readonly string[], fact = 'api 6.2'): Row => ({
  request,
  fact,
  status: 200,
  type: 'json',
  reply: JSON.stringify(list),
});
const unknown = (request: string, fact: string): Row => ({
  request,
  fact,
  status: 404,
  type: 'text',
  reply: `Unknown command: ${request.split('?', 1)[0]}`,
});

/** Listings, routing and what every request has in common. */
export const listingRows: readonly Row[] = [
  json('GET /', ['GET /', 'GET /v0', ...V1], 'seed: endpoints; api 6.2 order'),
  json('GET /v1', V1, 'seed: endpoints; api 6.2'),
  json('GET /v0', ['GET /v0'], 'seed: versioning; api 6.2'),
  json('GET /V1/', V1, 'api 6.1: letter case, slash at the end'),
  json('GET /?x=%zz', ['GET /', 'GET /v0', ...V1], 'api 6.1: the query does not matter'),
  unknown('GET /v2', 'api 6.2'),
  unknown('GET /v99-x', 'api 6.2'),
  unknown('GET //v1/settings', 'api 6.1: double slash'),
  unknown('GET /v1/sett%69ngs?x=1', 'api 6.1: escapes are not decoded'),
  unknown('DELETE /v1/settings', 'api 6.1: wrong method'),
  unknown('POST /v1/about', 'api 6.1: wrong method'),
  unknown('PATCH /v1/settings', 'api 6.1: wrong method'),
  unknown('GET /v1/nothing', 'api 3'),
  unknown('GET /v1/constructor', 'api 3'),
  {
    request: 'GET /v1/%',
    fact: 'api 19.41',
    status: 400,
    type: 'text',
    reply: 'Malformed escape in the path: /v1/%',
  },
  {
    request: 'GET /v1/about',
    fact: 'seed: about; api 9.1',
    status: 200,
    type: 'text',
    reply: /^[^\n]*version 1[^\n]*internal and experimental[^\n]*without notice\.$/,
  },
  { request: 'HEAD /v1/about', fact: 'api 6.1', status: 200, type: 'text', reply: '' },
  { request: 'OPTIONS /v1/settings', fact: 'api 5', status: 204, type: 'none', headers: { Authorization: undefined } },
  {
    request: 'GET /v1/settings',
    when: 'without credentials',
    fact: 'seed: authentication; api 4',
    headers: { Authorization: undefined },
    status: 401,
    type: 'text',
    reply: 'Unauthorized',
    replyHeaders: { 'www-authenticate': /^Basic / },
  },
  {
    request: 'GET /v1/nothing',
    when: 'without credentials',
    fact: 'api 3: credentials come before the path',
    headers: { Authorization: 'Basic dXNlcjp3cm9uZw==' },
    status: 401,
    type: 'text',
    reply: 'Unauthorized',
  },
  {
    request: 'GET /v2/status',
    when: 'without credentials',
    fact: 'ours: docs/api.md',
    headers: { Authorization: undefined },
    status: 401,
    type: 'json',
    reply: expectError('ERR_UNAUTHORIZED'),
  },
  {
    request: 'GET /v2/nothing',
    fact: 'ours: docs/api.md',
    status: 404,
    type: 'json',
    reply: expectError('ERR_NOT_FOUND'),
  },
];

function expectError(code: string): RegExp {
  return new RegExp(`^\\{\\n  "code": "${code}",\\n  "message": "[^"]+`);
}
