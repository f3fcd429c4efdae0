import { ENDPOINTS } from '../../../src/api/routes/listings.ts';
import type { Row } from '../row.ts';

const off = { power: 'stopped' } as const;
/** The seed's statements about them take precedence: they are served, and not listed. */
const SERVED = ['GET settings', 'PUT settings', 'PUT shutdown'];

const refused = ENDPOINTS.filter(({ since, method, name }) => since === 0 && !SERVED.includes(`${method} ${name}`)).map(
  ({ method, name }): Row => ({
    request: `${method} /v0/${name}`,
    fact: 'api 6.3',
    status: 400,
    type: 'text',
    reply: `Invalid version "/v0" for endpoint "${method} /v0/${name}" - use "/v1/${name}"`,
    given: off,
  }),
);
const unknown = ENDPOINTS.filter(({ since }) => since === 1).map(
  ({ method, name }): Row => ({
    request: `${method} /v0/${name}`,
    fact: 'api 6.3',
    status: 404,
    type: 'text',
    reply: `Unknown command: ${method} /v0/${name}`,
    given: off,
  }),
);

export const olderVersionRows: readonly Row[] = [
  {
    request: 'GET /v0/settings',
    fact: 'seed: same role as v1 settings',
    status: 200,
    type: 'text',
    reply: /^\{\n {2}"version": 19,/,
    given: off,
  },
  {
    request: 'PUT /v0/settings',
    fact: 'seed: older API revision',
    body: { version: 19, images: { showAll: false } },
    status: 202,
    type: 'text',
    reply: 'settings updated; no restart required',
    given: off,
  },
  {
    request: 'PUT /v0/settings',
    when: 'no version',
    fact: 'design 8: as v1',
    body: {},
    status: 400,
    type: 'text',
    reply: /no version was specified$/,
    given: off,
  },
  ...refused,
  ...unknown,
  {
    request: 'GET /v0/diagnostic_checks?id=X',
    when: 'with a query',
    fact: 'api 6.3: the path has no query string',
    status: 400,
    type: 'text',
    reply: 'Invalid version "/v0" for endpoint "GET /v0/diagnostic_checks" - use "/v1/diagnostic_checks"',
    given: off,
  },
];
