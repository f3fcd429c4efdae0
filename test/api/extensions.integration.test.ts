import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { RdError } from '../../src/errors.ts';
import type { Extensions } from '../../src/features/extensions/contract.ts';
import { startApi } from '../helpers/api.ts';
import { startService, type TestService, type TestServiceOptions } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

interface Answer {
  status: number;
  type: string | undefined;
  body: string;
  interim: number[];
  reason: string | undefined;
}

/** One request as any program would send it. */
function raw({ service }: TestService, method: string, path: string): Promise<Answer> {
  const { port, user, password } = service.connection;
  return new Promise((resolve, reject) => {
    const interim: number[] = [];
    const call = request({ host: '127.0.0.1', port, method, path, auth: `${user}:${password}`, agent: false });
    call.on('information', ({ statusCode }) => interim.push(statusCode));
    call.on('error', reject);
    call.on('response', (response) => {
      let body = '';
      response.on('data', (part: Buffer) => {
        body += part.toString();
      });
      response.on('end', () => {
        const { 'content-type': type, 'rdctl-reason': reason } = response.headers;
        const told = typeof reason === 'string' ? decodeURIComponent(reason) : undefined;
        resolve({ status: response.statusCode ?? 0, type, body, interim, reason: told });
      });
    });
    call.end();
  });
}

async function running(options: TestServiceOptions = {}): Promise<TestService> {
  const service = await startService(options);
  await service.converged();
  return service;
}

const install = (service: TestService, id: string) =>
  raw(service, 'POST', `/v1/extensions/install?id=${encodeURIComponent(id)}`);
const uninstall = (service: TestService, id: string) =>
  raw(service, 'POST', `/v1/extensions/uninstall?id=${encodeURIComponent(id)}`);
const list = (service: TestService) => raw(service, 'GET', '/v1/extensions');

async function installed(service: TestService): Promise<unknown> {
  const { settings } = await service.client.settings();
  return (settings as { application: { extensions: { installed: unknown } } }).application.extensions.installed;
}

const INSTALLED = 'application.extensions.installed';

test('before an engine has run, every route says it is not ready, except when the id is missing', async () => {
  const service = await running({ power: 'stopped' });
  for (const [method, path] of [
    ['GET', ''],
    ['POST', '/install?id=simulated/hello'],
    ['POST', '/uninstall?id=simulated/hello'],
  ] as const) {
    const answer = await raw(service, method, `/v1/extensions${path}`);
    expect(answer).toMatchObject({ status: 503, body: 'Extension manager is not ready yet.' });
  }
  expect(await raw(service, 'POST', '/v1/extensions/install')).toMatchObject({
    status: 400,
    body: 'Extension ID is required in the id= parameter.',
    interim: [],
  });
});

test.each(['install', 'uninstall'])('exactly one id is required: %s', async (word) => {
  const service = await running();
  for (const query of ['', '?id=', '?other=x']) {
    expect(await raw(service, 'POST', `/v1/extensions/${word}${query}`)).toMatchObject({
      status: 400,
      body: 'Extension ID is required in the id= parameter.',
    });
  }
  expect(await raw(service, 'POST', `/v1/extensions/${word}?id=a&id=b`)).toMatchObject({
    status: 400,
    body: 'Invalid extension id ["a","b"]: not a string.',
  });
});

test('install, list, upgrade and uninstall an extension', async () => {
  const service = await running();
  expect(await list(service)).toMatchObject({ status: 200, type: 'application/json; charset=utf-8', body: '{}' });
  expect(existsSync(join(service.home, 'extensions'))).toBe(false);

  expect(await install(service, 'simulated/hello:1.0.0')).toMatchObject({
    status: 201,
    body: 'Created',
    interim: [102],
  });
  expect(await install(service, 'simulated/hello:1.0.0')).toMatchObject({ status: 204, body: '' });
  expect(await installed(service)).toEqual({ 'simulated/hello': '1.0.0' });
  const directory = join(service.home, 'extensions', Buffer.from('simulated/hello').toString('base64url'));
  expect(readdirSync(directory).sort()).toEqual([
    'bin',
    'icon.svg',
    'labels.json',
    'metadata.json',
    'ui',
    'version.txt',
  ]);
  expect(readFileSync(join(directory, 'version.txt'), 'utf8')).toBe('1.0.0');
  expect(readdirSync(join(directory, 'ui', 'dashboard-tab')).sort()).toEqual([
    'index.html',
    'start.html',
    'version.txt',
  ]);

  // Without a tag, the highest version replaces the installed one.
  expect(await install(service, 'simulated/hello')).toMatchObject({ status: 201, body: 'Created' });
  expect(await installed(service)).toEqual({ 'simulated/hello': '1.1.0' });
  expect(readFileSync(join(directory, 'ui', 'dashboard-tab', 'version.txt'), 'utf8')).toBe('1.1.0');
  expect(JSON.parse((await list(service)).body)).toEqual({
    'simulated/hello': {
      version: '1.1.0',
      metadata: { icon: 'icon.svg', ui: expect.any(Object), vm: {} },
      labels: expect.objectContaining({ 'org.opencontainers.image.title': 'Hello' }),
    },
  });

  expect(await uninstall(service, 'simulated/hello:1.0.0')).toMatchObject({ status: 204, body: '' });
  expect(await uninstall(service, 'simulated/hello')).toMatchObject({ status: 201, body: 'Deleted simulated/hello' });
  expect(await uninstall(service, 'simulated/hello')).toMatchObject({ status: 204, body: '' });
  expect(await uninstall(service, 'not a name')).toMatchObject({ status: 204 });
  expect(await installed(service)).toEqual({});
  expect(readdirSync(join(service.home, 'extensions'))).toEqual([]);
  const { counters } = await service.client.status();
  expect(counters.restarts).toBe(0);
});

describe('a refused installation leaves nothing behind', () => {
  test.each([
    [
      'simulated/broken:1.0.0',
      422,
      'The image simulated/broken:1.0.0 has invalid extension metadata',
      '"icon" is missing',
    ],
    [
      'simulated/none:1',
      422,
      'The image simulated/none:1 has invalid extension metadata',
      'its image could not be fetched: the simulated registry has no image docker.io/simulated/none:1. Check the name',
    ],
    [
      'simulated/escaping',
      422,
      'The image simulated/escaping failed to install: Could not copy UI dashboard-tab',
      'leaves the tree',
    ],
    [
      'simulated/none',
      500,
      'Internal Server Error',
      'no default tag was found for simulated/none. Check the name, or specify a tag: simulated/none:TAG',
    ],
    ['localhost:5055/ext/tool', 403, 'The image localhost:5055/ext/tool is not an allowed extension', '127.0.0.1:5055'],
    ['Upper/Case:1', 403, 'The image Upper/Case:1 is not an allowed extension', 'not the name of an image'],
    [
      'simulated/hello@sha256:00',
      403,
      'The image simulated/hello@sha256:00 is not an allowed extension',
      'not the name',
    ],
  ])('%s', async (id, status, body, reason) => {
    const service = await running();
    const answer = await install(service, id);
    expect(answer).toMatchObject({ status, body, interim: [102] });
    expect(answer.reason).toContain(reason);
    expect(await installed(service)).toEqual({});
    const root = join(service.home, 'extensions');
    expect(existsSync(root) ? readdirSync(root) : []).toEqual([]);
  });

  test('a failed upgrade keeps the installed version', async () => {
    const service = await running();
    await install(service, 'simulated/hello:1.0.0');
    expect(await install(service, 'simulated/hello:9.9.9')).toMatchObject({ status: 422 });
    expect(await installed(service)).toEqual({ 'simulated/hello': '1.0.0' });
    expect(JSON.parse((await list(service)).body)).toMatchObject({ 'simulated/hello': { version: '1.0.0' } });
  });
});

test('the allow list is checked before anything is fetched', async () => {
  const service = await running();
  const allowed = { enabled: true, list: ['simulated/hello:1.0.0'] };
  await service.client.putSettings({ version: 19, application: { extensions: { allowed } } });
  const refused = await install(service, 'simulated/panel:v1');
  expect(refused).toMatchObject({ status: 403, body: 'The image simulated/panel:v1 is not an allowed extension' });
  // Some version of it is allowed, but not the highest.
  expect(await install(service, 'simulated/hello')).toMatchObject({ status: 403 });
  const model = readdirSync(service.here.state, { recursive: true, encoding: 'utf8' }).find((name) =>
    name.endsWith('machine.json'),
  );
  expect(readFileSync(join(service.here.state, model ?? ''), 'utf8')).not.toContain('simulated/panel');
  expect(await install(service, 'simulated/hello:1.0.0')).toMatchObject({ status: 201 });
});

test('a settings PUT neither installs nor uninstalls', async () => {
  const service = await running();
  const body = { version: 19, application: { extensions: { installed: { 'simulated/hello': '1.0.0' } } } };
  await expect(service.client.putSettings(body)).rejects.toMatchObject({
    message: expect.stringContaining('not by writing settings'),
  });
});

test('a damaged extension does not hide the others', async () => {
  const service = await running();
  await install(service, 'simulated/hello');
  await install(service, 'simulated/panel');
  const directory = join(service.home, 'extensions', Buffer.from('simulated/hello').toString('base64url'));
  writeFileSync(join(directory, 'metadata.json'), '{');
  expect(Object.keys(JSON.parse((await list(service)).body))).toEqual(['simulated/panel']);
});

test('concurrent calls run one after the other', async () => {
  const service = await running();
  const ids = ['simulated/hello:1.0.0', 'simulated/hello:1.1.0', 'simulated/panel:v1', 'simulated/panel:v2'];
  const answers = await Promise.all([...ids, ...ids].map((id) => install(service, id)));
  expect(answers.every(({ status }) => status === 201 || status === 204)).toBe(true);
  const found: Record<string, { version: string }> = JSON.parse((await list(service)).body);
  const versions = Object.fromEntries(Object.entries(found).map(([name, { version }]) => [name, version]));
  expect(await installed(service)).toEqual(versions);
  expect(Object.keys(versions).sort()).toEqual(['simulated/hello', 'simulated/panel']);
});

test('a lock on the map also applies to these routes', async () => {
  const home = temporaryDirectory();
  const locked = join(home, 'locked.json');
  writeFileSync(
    locked,
    JSON.stringify({ version: 19, application: { extensions: { installed: { 'simulated/hello': '1.0.0' } } } }),
  );
  const service = await running({ home: join(home, 'h'), policies: { locked } });
  // What the lock requires was installed when the engine came up, which the first call waits for.
  expect(await install(service, 'simulated/hello:1.0.0')).toMatchObject({ status: 204 });
  for (const answer of [await install(service, 'simulated/panel'), await uninstall(service, 'simulated/hello')]) {
    expect(answer.status).toBe(400);
    expect(answer.body).toContain(`"${INSTALLED}" is locked by`);
  }
  expect(Object.keys(JSON.parse((await list(service)).body))).toEqual(['simulated/hello']);
});

test('installed extensions survive a stop, an engine switch and a service restart', async () => {
  const first = await running();
  await install(first, 'simulated/panel:v1');
  const { generation = 0 } = await first.client.putSettings({ version: 19, containerEngine: { name: 'containerd' } });
  await first.converged(generation);
  expect(await installed(first)).toEqual({ 'simulated/panel': 'v1' });
  await first.service.stop('the test starts another');
  const second = await running({ home: first.home });
  expect(JSON.parse((await list(second)).body)).toMatchObject({ 'simulated/panel': { version: 'v1' } });
  expect(await installed(second)).toEqual({ 'simulated/panel': 'v1' });
});

test.each([
  ['a character that the cut would split', `x${'\u{1F433}'.repeat(1500)}`, `x${'\u{1F433}'.repeat(999)}`],
  ['half a character', 'a \ud83d b', 'a \ufffd b'],
])('a reason with %s is reported', async (_what, message, told) => {
  const cause = new RdError('ERR_EXTENSION_INVALID', message);
  const refusal = new RdError('ERR_EXTENSION_INVALID', 'The image x:1 failed to install', { cause });
  const extensions: Extensions = {
    ready: true,
    list: async () => ({}),
    install: () => Promise.reject(refusal),
    uninstall: async () => 'unchanged',
    engineIsUp: () => undefined,
    idle: async () => undefined,
    close: async () => undefined,
  };
  const { client } = startApi({ extensions });
  const { status, headers } = await client.request({ method: 'POST', path: '/v1/extensions/install?id=x:1' });
  expect(status).toBe(422);
  expect(decodeURIComponent(String(headers['rdctl-reason']))).toBe(told);
});
