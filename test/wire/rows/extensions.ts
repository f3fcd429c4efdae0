import type { Row } from '../row.ts';

const off = { power: 'stopped' } as const;
const NOT_READY = 'Extension manager is not ready yet.';

/** The response of both calls to a bad id, which does not require a running engine. */
const ids = (request: string): Row[] => [
  {
    request,
    when: 'no id',
    fact: 'api 14.2',
    status: 400,
    type: 'text',
    reply: 'Extension ID is required in the id= parameter.',
    given: off,
  },
  {
    request: `${request}?id=`,
    fact: 'api 14.2',
    status: 400,
    type: 'text',
    reply: 'Extension ID is required in the id= parameter.',
    given: off,
  },
  {
    request: `${request}?id=a&id=b`,
    fact: 'api 14.2',
    status: 400,
    type: 'text',
    reply: 'Invalid extension id ["a","b"]: not a string.',
    given: off,
  },
  {
    request: `${request}?id=example/tool:1`,
    when: 'nothing has run',
    fact: 'api 14.2',
    interim: [102],
    status: 503,
    type: 'text',
    reply: NOT_READY,
    given: off,
  },
];

/** Real installations need an engine and images: `test/e2e`. */
export const extensionRows: readonly Row[] = [
  {
    request: 'GET /v1/extensions',
    when: 'nothing has run',
    fact: 'api 14.1',
    status: 503,
    type: 'text',
    reply: NOT_READY,
    given: off,
  },
  {
    request: 'GET /v1/extensions',
    when: 'none',
    fact: 'seed: extensions; api 14.1',
    before: 'converged',
    status: 200,
    type: 'json',
    reply: '{}',
  },
  ...ids('POST /v1/extensions/install'),
  {
    request: 'POST /v1/extensions/install?id=example.invalid/nothing:1',
    when: 'no such image',
    fact: 'api 14.2: install 6',
    before: 'converged',
    interim: [102],
    status: 422,
    type: 'text',
    reply: 'The image example.invalid/nothing:1 has invalid extension metadata',
  },
  {
    request: 'POST /v1/extensions/install?id=example/tool:1',
    when: 'not allowed',
    fact: 'api 14.2: install 7; 19.26',
    given: { settings: { version: 19, application: { extensions: { allowed: { enabled: true, list: [] } } } } },
    before: 'converged',
    interim: [102],
    status: 403,
    type: 'text',
    reply: 'The image example/tool:1 is not an allowed extension',
  },
  {
    request: 'POST /v1/extensions/install?id=example.invalid/nothing:1',
    when: 'the engine is off again',
    fact: 'ours: the image is not at fault',
    before: async ({ converged, send }) => {
      await converged();
      await send('PUT /v1/backend_state', { vmState: 'STOPPED' });
      await converged();
    },
    interim: [102],
    status: 503,
    type: 'text',
    reply: 'The container engine is not running, and an extension comes out of an image.',
  },
  ...ids('POST /v1/extensions/uninstall'),
  {
    request: 'POST /v1/extensions/uninstall?id=example/tool:1',
    when: 'not installed',
    fact: 'api 19.25',
    before: 'converged',
    interim: [102],
    status: 204,
    type: 'none',
  },
];
