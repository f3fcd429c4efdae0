import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'vitest';
import { pretty, type Row } from '../row.ts';

const off = { power: 'stopped' } as const;
/** The documentation is looked for next to the program. */
const fixed = { ...off, env: { RDCTL_STATIC_CHECKS: '1' }, self: [process.execPath, resolve('cli/main.ts')] };
const PAGE = pathToFileURL(resolve('docs/diagnostics.md')).href;
const EPOCH = '1970-01-01T00:00:00.000Z';

const FALSE = {
  description: 'This check never passes.',
  passed: false,
  fixes: [{ description: expect.any(String) }],
  id: 'STATIC_FALSE',
  category: 'Testing',
  mute: false,
  documentation: `${PAGE}#static_false`,
};
const TRUE = {
  ...FALSE,
  description: 'This check always passes.',
  passed: true,
  fixes: [],
  id: 'STATIC_TRUE',
  documentation: `${PAGE}#static_true`,
};
const report = (...checks: object[]) => ({ last_update: expect.stringMatching(/Z$/), checks });

const ids = (category: string, ...list: string[]): Row => ({
  request: `GET /v1/diagnostic_ids?category=${encodeURIComponent(category)}`,
  fact: 'api 13.3: order; ours follow',
  status: 200,
  type: 'json',
  reply: pretty(list),
  given: off,
});
const noIds = (query: string, status: number, reply: string, fact = 'api 13.1'): Row => ({
  request: `GET /v1/diagnostic_ids${query}`,
  fact,
  status,
  type: 'text',
  reply,
  given: off,
});
const checks = (query: string, fact: string, reply: object): Row => ({
  request: `GET /v1/diagnostic_checks${query}`,
  fact,
  status: 200,
  type: 'json',
  given: fixed,
  before: ({ send }) => send('POST /v1/diagnostic_checks'),
  reply,
});

export const diagnosticsRows: readonly Row[] = [
  {
    request: 'GET /v1/diagnostic_categories',
    fact: 'api 13.1',
    status: 200,
    type: 'json',
    reply: pretty(['Networking', 'Utilities', 'Container Engine', 'Kubernetes', 'Testing']),
    given: off,
  },
  ids('Networking', 'CONNECTED_TO_INTERNET', 'PORT_IN_USE'),
  ids(
    'Utilities',
    'RD_BIN_DOCKER_CLI_SYMLINK_DOCKER-BUILDX',
    'RD_BIN_DOCKER_CLI_SYMLINK_DOCKER-COMPOSE',
    'DOCKER_CREDENTIAL_HELPERS',
    'MOCK_CHECKER',
    'PATH_MANAGEMENT',
    'RD_BIN_IN_BASH_PATH',
    'RD_BIN_IN_ZSH_PATH',
    'SETTINGS_FILE_PERMISSIONS',
    'DISK_SPACE',
    'MACHINE_CONFINED',
  ),
  ids(
    'Container Engine',
    'DOCKER_CONTEXT',
    'WINDOWS_INTEGRATIONS',
    'LIMA_DARWIN_VERSION',
    'LIMA_OVERRIDES',
    'MOBY_IMAGE_STORE',
    'ENGINE_ANSWERS',
    'CLOCK',
  ),
  ids('Kubernetes', 'VERIFY_WSL_INTEGRATION_KUBECONFIG', 'KUBE_CONTEXT', 'KUBE_VERSIONS_AVAILABLE'),
  ids('Testing', 'STATIC_TRUE', 'STATIC_FALSE', 'WSL_DISTROS', 'WSL_INFO'),
  {
    ...ids('Kubernetes', 'VERIFY_WSL_INTEGRATION_KUBECONFIG', 'KUBE_CONTEXT', 'KUBE_VERSIONS_AVAILABLE'),
    request: 'GET /v1/diagnostic_ids?category=Kubernetes&category=x',
    fact: 'api 13.1: the first value',
  },
  noIds('', 400, 'diagnostic_ids: no category specified'),
  noIds('?category=', 400, 'diagnostic_ids: no category specified'),
  noIds('?category=cecinestpasuncategory', 404, 'No diagnostic checks found in category cecinestpasuncategory'),
  noIds('?category=utilities', 404, 'No diagnostic checks found in category utilities', 'api 13.1: letter case counts'),
  noIds('?category=constructor', 404, 'No diagnostic checks found in category constructor', 'api 19.30'),
  noIds('?category=__proto__', 404, 'No diagnostic checks found in category __proto__', 'api 19.30'),
  {
    request: 'POST /v1/diagnostic_checks',
    fact: 'api 13.1: waits for all',
    status: 200,
    type: 'json',
    given: fixed,
    reply: { last_update: expect.not.stringMatching(EPOCH), checks: expect.arrayContaining([TRUE, FALSE]) },
  },
  {
    request: 'POST /v1/diagnostic_checks?id=STATIC_TRUE',
    when: 'with a query and a body',
    fact: 'api 13.1: both are ignored',
    body: '{',
    loose: true,
    status: 200,
    type: 'json',
    given: fixed,
    reply: expect.objectContaining({ checks: expect.arrayContaining([TRUE, FALSE]) }),
  },
  checks('?category=Testing', 'api 13.1, 13.2', report(TRUE, FALSE)),
  checks('?id=STATIC_TRUE', 'api 13.1', report(TRUE)),
  checks('?checkID=STATIC_TRUE', 'api 19.2', report(TRUE)),
  checks('?checkID=STATIC_TRUE&id=STATIC_FALSE', 'api 19.2: id wins', report(FALSE)),
  checks('?category=Testing&id=', 'api 13.1: empty is no filter', report(TRUE, FALSE)),
  checks('?category=Networking&id=STATIC_TRUE', 'api 13.1', report()),
  checks('?id=NOBODY', 'api 13.1: never 404', report()),
  checks('?category=constructor', 'api 13.1; 19.30', report()),
  checks(
    '?id=PORT_IN_USE',
    'api 13.1',
    report(
      expect.objectContaining({ id: 'PORT_IN_USE:API' }),
      expect.objectContaining({ id: 'PORT_IN_USE:KUBERNETES' }),
    ),
  ),
  checks('?id=PORT_IN_USE:API', 'api 19.29: one answer', report(expect.objectContaining({ id: 'PORT_IN_USE:API' }))),
  {
    ...checks('?category=Testing', 'seed: mutedChecks; api 19.29', report(TRUE, { ...FALSE, mute: true })),
    when: 'muted',
    before: async ({ send }) => {
      await send('PUT /v1/settings', {
        version: 19,
        diagnostics: { mutedChecks: { STATIC_FALSE: true, STATIC_TRUE: false } },
      });
      await send('POST /v1/diagnostic_checks');
    },
  },
];
