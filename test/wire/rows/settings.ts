import { expect } from 'vitest';
import { defaultSettings } from '../../../src/settings/defaults.ts';
import { pretty, type Row, type Wire } from '../row.ts';
import { bodyRows } from './bodies.ts';

const NO_SETTINGS = 'no settings specified in the request';
const NOT_JSON = 'error processing JSON request block';
const NOT_AN_OBJECT = 'settings payload is not an object';
const UPDATE = 'errors in attempt to update settings:';
const PROPOSAL = 'Errors in proposed settings:';
const stopped = { power: 'stopped' } as const;
const KEYS = [
  'version',
  'application',
  'containerEngine',
  'virtualMachine',
  'WSL',
  'kubernetes',
  'portForwarding',
  'images',
  'containers',
  'diagnostics',
  'experimental',
];

async function keepsDefaults({ send }: Wire): Promise<void> {
  const now = JSON.parse((await send('GET /v1/settings')).body);
  const { version, ...rest } = now.kubernetes;
  const { version: _, ...defaults } = defaultSettings({ platform: 'linux', arch: process.arch }).kubernetes;
  expect([rest, typeof version]).toEqual([defaults, 'string']);
}

const put = (when: string, body: object | string, fact: string, reply: string | RegExp, status = 202): Row => ({
  request: 'PUT /v1/settings',
  when,
  fact,
  body,
  status,
  type: 'text',
  reply,
  given: stopped,
});
const refused = (when: string, settings: object, fact: string, ...lines: string[]): Row => ({
  ...put(when, { version: 19, ...settings }, fact, [UPDATE, ...lines].join('\n'), 400),
  after: keepsDefaults,
});
const proposed = (when: string, body: object, fact: string, reply: string, status = 200): Row => ({
  request: 'PUT /v1/propose_settings',
  when,
  fact,
  body,
  status,
  type: status === 200 ? 'json' : 'text',
  reply,
});

export const settingsRows: readonly Row[] = [
  {
    request: 'GET /v1/settings',
    fact: 'seed: settings; api 10.1, 7: JSON as text, two spaces, final newline',
    status: 200,
    type: 'text',
    reply: /^\{\n {2}"version": 19,\n[\s\S]*\n\}\n$/,
    replyHeaders: { etag: /^"[\w-]{43}"$/ },
    after: async (_wire, { body }) => {
      expect(Object.keys(JSON.parse(body))).toEqual(KEYS);
      expect(body).toBe(pretty(JSON.parse(body)));
    },
  },
  {
    request: 'GET /v1/settings',
    when: 'If-None-Match with the tag',
    fact: 'ours: never 304',
    headers: { 'If-None-Match': '*' },
    status: 200,
    type: 'text',
  },
  { request: 'GET /v1/settings/locked', fact: 'api 10.5', status: 200, type: 'text', reply: '{}\n' },

  put('nothing differs', { version: 19 }, 'api 10.3', 'no changes necessary'),
  put('equal value', { version: 19, kubernetes: { port: 6443 } }, 'api 10.2', 'no changes necessary'),
  put('only unknown keys', { version: 19, kubernets: { port: 1 } }, 'api 10.3, 10.4', 'no changes necessary'),
  put('stored alone', { version: 19, images: { showAll: false } }, 'api 10.3', 'settings updated; no restart required'),
  {
    ...put(
      'text as number',
      { version: 19, kubernetes: { port: '6444' } },
      'api 10.4',
      'settings updated; no restart required',
    ),
    loose: true,
  },
  put(
    'docker means moby',
    { version: 19, containerEngine: { name: 'docker' } },
    'seed: engine; api 10.4',
    'no changes necessary',
  ),
  put(
    'older shape',
    { version: 4, kubernetes: { containerEngine: 'moby' } },
    'seed: versions; api 10.6',
    'no changes necessary',
  ),
  {
    ...put(
      'unknown beside known keys',
      { version: 19, images: { showAll: false, 'show all': 1 }, x: 1 },
      'api 19.11: dropped, named in a header',
      'settings updated; no restart required',
    ),
    replyHeaders: { 'rdctl-ignored-keys': /images\.show%20all, x/, 'rdctl-generation': /^\d+$/, etag: /^"/ },
    after: async ({ send }) => {
      const { body } = await send('GET /v1/settings');
      expect(JSON.parse(body)).not.toHaveProperty('x');
      expect(JSON.parse(body).images).toEqual({ showAll: false, namespace: 'default' });
    },
  },
  {
    ...put(
      'restart',
      { version: 19, containerEngine: { name: 'containerd' } },
      'api 10.3; seed: `set` usually resets the cluster',
      'reconfiguring Rancher Desktop to apply changes (this may take a while)',
    ),
    given: { power: 'started' },
    before: 'converged',
  },
  {
    ...put(
      'while it starts',
      { version: 19, containerEngine: { name: 'containerd' } },
      'api 10.3',
      'UI is currently busy, but will eventually be reconfigured to apply requested changes',
    ),
    given: { power: 'started', env: { RDCTL_SIMULATED_LATENCY_MS: '3600000' }, stopLimitMs: 1 },
    before: async ({ client }) => {
      await expect.poll(async () => (await client.backendState()).vmState).toBe('STARTING');
    },
  },
  {
    ...put(
      'the tag of before',
      { version: 19, images: { showAll: false } },
      'ours: If-Match',
      /have changed since/,
      412,
    ),
    headers: { 'If-Match': '"stale"' },
  },
  {
    ...put('any tag', { version: 19, images: { showAll: false } }, 'ours: If-Match', /no restart required/),
    headers: { 'If-Match': '*' },
  },

  put(
    'no version',
    { images: { showAll: false } },
    'api 10.6; design 8',
    `${UPDATE}\nupdating settings requires specifying an API version, but no version was specified`,
    400,
  ),
  put(
    'a version that is no number',
    { version: 'x' },
    'api 10.6',
    /^errors in attempt to update settings:\nupdating settings requires specifying an API version, but .* is not a proper config version$/,
    400,
  ),
  put('version 0', { version: 0 }, 'api 10.6', /but "0" is not a positive number$/, 400),
  put(
    'a newer version',
    { version: 20 },
    'api 10.6',
    `${UPDATE}\nChanging field "version" via the API isn't supported.`,
    400,
  ),
  refused('bad value', { kubernetes: { port: 0 } }, 'api 10.8', 'Invalid value for "kubernetes.port": <0>'),
  refused(
    'every problem, in the order of the payload',
    { containerEngine: { name: 'podman' }, images: { showAll: 7 }, portForwarding: 'bob' },
    'api 10.2, 10.8',
    'Invalid value for "containerEngine.name": <"podman">; must be one of ["containerd","moby","docker"]',
    'Invalid value for "images.showAll": <7>',
    'Setting "portForwarding" should wrap an inner object, but got <bob>.',
  ),
  refused(
    'duplicates',
    { containerEngine: { allowedImages: { patterns: ['b', 'a', 'b', 'a'] } } },
    'api 10.8; 18.2: scripts match it',
    'field "containerEngine.allowedImages.patterns" has duplicate entries: "a", "b"',
  ),
  refused(
    'of another platform',
    { kubernetes: { ingress: { localhostOnly: true } } },
    'api 10.7',
    `Changing field "kubernetes.ingress.localhostOnly" via the API isn't supported.`,
  ),
  refused(
    'disk size shrinks',
    { experimental: { virtualMachine: { diskSize: '1GiB' } } },
    'seed: never shrinks; api 10.8',
    'Cannot decrease "experimental.virtualMachine.diskSize" from 100GiB to 1GiB',
  ),
  refused('unknown version', { kubernetes: { version: '0.0.1' } }, 'api 10.8', 'Kubernetes version "0.0.1" not found.'),
  refused(
    'a map that is none',
    { diagnostics: { mutedChecks: 3 } },
    'api 10.8',
    'Proposed field "diagnostics.mutedChecks" should be an object, got <3>.',
  ),
  ...bodyRows('PUT /v1/settings', {
    empty: NO_SETTINGS,
    notJson: NOT_JSON,
    null: `${UPDATE}\nupdating settings requires specifying an API version, but no version was specified`,
    scalar: NOT_AN_OBJECT,
    array: NOT_AN_OBJECT,
  }),

  {
    ...put(
      'keys that every object inherits',
      { version: 19, constructor: { x: 1 }, images: { toString: 'x' } },
      'ours: unknown as any other',
      'no changes necessary',
    ),
    replyHeaders: { 'rdctl-ignored-keys': 'constructor, images.toString' },
  },
  put(
    'version with a fraction',
    { version: 1.5 },
    'ours: no step of the migration would run',
    `${UPDATE}\nupdating settings requires specifying an API version, but "1.5" is not a proper config version`,
    400,
  ),
  refused(
    'several mistakes',
    { kubernetes: { port: 0 }, application: { extensions: { allowed: { list: ['A b'] } } } },
    'ours: one does not hide another',
    'Invalid value for "kubernetes.port": <0>',
    'application.extensions.allowed.list: "A b" does not describe an image reference',
  ),
  put(
    'null for an extension that is not there',
    { version: 19, application: { extensions: { installed: { 'a/b': null } } } },
    'ours: nothing changes',
    'no changes necessary',
  ),
  put(
    'a restart would be needed, and nothing runs',
    { version: 19, containerEngine: { name: 'containerd' } },
    'ours: it stays off',
    'settings updated; no restart required',
  ),

  proposed('nothing', {}, 'api 11.1', '{}'),
  {
    ...proposed(
      'a cluster of an older version than the installed one is switched on',
      { kubernetes: { enabled: true, version: '1.30.2' } },
      'ours: what is lost is named',
      '{"kubernetes.version":{"current":"1.33.4","desired":"1.30.2","severity":"reset"},"kubernetes.enabled":{"current":false,"desired":true,"severity":"restart"}}',
    ),
    before: async ({ send, converged }) => {
      await converged();
      await send('PUT /v1/settings', { version: 19, kubernetes: { enabled: false } });
      await converged();
    },
  },
  { ...proposed('nothing runs', { containerEngine: { name: 'containerd' } }, 'api 11.1', '{}'), given: stopped },
  {
    ...proposed(
      'restart',
      { containerEngine: { name: 'containerd' }, images: { showAll: false } },
      'api 11.1, 11.2; 19.14: only what was proposed',
      '{"containerEngine.name":{"current":"moby","desired":"containerd","severity":"restart"}}',
    ),
    before: 'converged',
    after: async ({ send }) => expect((await send('GET /v1/settings')).body).toContain('"name": "moby"'),
  },
  proposed(
    'bad value',
    { kubernetes: { port: 0 } },
    'api 11.1',
    `${PROPOSAL}\nInvalid value for "kubernetes.port": <0>`,
    400,
  ),
  proposed(
    'another version',
    { version: 4 },
    'api 10.6',
    `${PROPOSAL}\nChanging field "version" via the API isn't supported.`,
    400,
  ),
  ...bodyRows('PUT /v1/propose_settings', {
    empty: NO_SETTINGS,
    notJson: NOT_JSON,
    scalar: NOT_AN_OBJECT,
    array: NOT_AN_OBJECT,
  }),
  { ...proposed('null', 'null' as unknown as object, 'api 8: as {}', '{}'), loose: true },
];
