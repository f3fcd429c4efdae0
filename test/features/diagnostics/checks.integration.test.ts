import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { MachineConfinement } from '../../../src/drivers/driver.ts';
import type { Finding } from '../../../src/features/diagnostics/check.ts';
import { allChecks } from '../../../src/features/diagnostics/checks/index.ts';
import { engineSpec } from '../../../src/plan/backend.ts';
import { DEFAULT_BLOCKS } from '../../../src/settings/blocks.gen.ts';
import { defaultSettings } from '../../../src/settings/defaults.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';
import { fingerprint } from '../../helpers/user-home.ts';
import { type ContextChange, checkContext } from './context.ts';

const never = new AbortController().signal;
const CLUSTER_OFF = { kubernetes: { enabled: false } };

async function look(id: string, change: ContextChange = {}): Promise<readonly Finding[] | 'does not apply'> {
  const context = checkContext(change);
  const check = allChecks(context.platform).find((one) => one.id === id);
  if (check === undefined) throw new Error(`there is no check ${id}`);
  return check.applies(context) ? check.run(context, never) : 'does not apply';
}

/** The only finding of a check. */
async function finding(id: string, change: ContextChange = {}): Promise<Finding> {
  const findings = await look(id, change);
  if (findings === 'does not apply' || findings.length !== 1)
    throw new Error(`not one finding: ${JSON.stringify(findings)}`);
  return findings[0] as Finding;
}

/** The URL of a server that lives as long as the test. */
async function listen(listener: RequestListener, path?: string): Promise<string> {
  const server = createHttpServer(listener);
  await new Promise<void>((done) =>
    path === undefined ? server.listen(0, '127.0.0.1', done) : server.listen(path, done),
  );
  onTestFinished(() => {
    server.closeAllConnections();
    return new Promise<void>((done) => server.close(() => done()));
  });
  const address = server.address();
  return typeof address === 'object' && address ? `http://127.0.0.1:${address.port}/` : `unix://${path}`;
}

function runningMoby(endpoint: string): ContextChange {
  const spec = engineSpec(defaultSettings({ platform: 'linux', arch: 'x64' }), DEFAULT_BLOCKS);
  return {
    status: {
      power: 'started',
      backendState: 'STARTED',
      engines: {
        moby: { state: 'running', spec, endpoint, version: '1', workload: {} },
        containerd: { state: 'stopped' },
      },
    },
  };
}

test('every check is explained in the documentation under its id', () => {
  const page = readFileSync('docs/diagnostics.md', 'utf8');
  const headings = [...page.matchAll(/^### (.+)$/gm)].map(([, title]) => title);
  expect(headings.sort()).toEqual(
    allChecks('linux')
      .map(({ id }) => id)
      .sort(),
  );
});

test.each([200, 204, 302, 401, 404, 503])('the Internet is reachable when a server answers with %i', async (status) => {
  const asked: string[] = [];
  const connectivityUrl = await listen((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.writeHead(status, { Location: 'http://127.0.0.1:1/' }).end();
  });
  const found = await finding('CONNECTED_TO_INTERNET', { connectivityUrl });
  expect(found).toMatchObject({ passed: true, fixes: [] });
  expect(found.description).toMatch(/^The application can reach/);
  expect(asked).toEqual(['HEAD /']);
});

test('a proxy in the environment is ignored', async () => {
  const proxy = await listen((_request, response) => response.end());
  const env = { http_proxy: proxy, HTTP_PROXY: proxy, all_proxy: proxy };
  expect(await finding('CONNECTED_TO_INTERNET', { env, connectivityUrl: 'http://127.0.0.1:9/' })).toMatchObject({
    passed: false,
    description: expect.stringContaining('ECONNREFUSED'),
    fixes: [{ description: expect.any(String) }],
  });
});

test('a silent server fails the check after the configured timeout', async () => {
  const connectivityUrl = await listen(() => undefined);
  const settings = { diagnostics: { connectivity: { timeout: 30 } } };
  expect(await finding('CONNECTED_TO_INTERNET', { connectivityUrl, settings })).toMatchObject({
    passed: false,
    description: expect.stringContaining('nothing within 30 ms'),
  });
});

test.each([
  ['the usual port', { port: 6107, requested: false }, true],
  ['a port that was asked for', { port: 7000, requested: true }, true],
  ['the next one', { port: 6108, requested: false }, false],
])('the API on %s', async (_name, api, passes) => {
  const found = await finding('PORT_IN_USE', { api, settings: CLUSTER_OFF });
  expect(found).toMatchObject({ sub: 'API', passed: passes });
  expect(found.fixes.length).toBe(passes ? 0 : 1);
});

test('the cluster port is free, taken, or used by the cluster itself', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((done) => server.once('listening', done));
  onTestFinished(() => void server.close());
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const settings = { kubernetes: { port } };
  const cluster = async (change: ContextChange = {}) => (await look('PORT_IN_USE', { settings, ...change })).at(1);
  expect(await cluster()).toMatchObject({ sub: 'KUBERNETES', passed: false });
  expect(await cluster({ hasCluster: false })).toBeUndefined();
  expect(await cluster({ status: { cluster: { state: 'unknown' } } })).toBeUndefined();
  const spec = {
    version: '1.30.2',
    port,
    traefik: true,
    flannel: true,
    spinkube: false,
    localhostOnly: false,
    engine: 'moby',
  } as const;
  const running = { state: 'running', installedVersion: '1.30.2', spec, ready: true } as const;
  expect(await cluster({ status: { cluster: running } })).toMatchObject({ passed: true });
  expect(await cluster({ settings: { kubernetes: { port: 1 } } })).toMatchObject({ passed: true });
});

test('a docker plugin is present, missing, a broken link, a link loop, or not executable', async () => {
  const home = temporaryDirectory();
  const bin = join(home, 'bin');
  const plugins = join(home, '.docker', 'cli-plugins');
  mkdirSync(bin);
  mkdirSync(plugins, { recursive: true });
  writeFileSync(join(bin, 'docker'), '#!/bin/sh\n', { mode: 0o755 });
  const file = join(plugins, 'docker-nonesuch');
  const { dockerCliPlugin } = await import('../../../src/features/diagnostics/checks/docker-cli.ts');
  const check = dockerCliPlugin('docker-nonesuch');
  const found = async () => (await check.run(checkContext({ home, env: { PATH: bin } }), never))[0];
  expect(check.id).toBe('RD_BIN_DOCKER_CLI_SYMLINK_DOCKER-NONESUCH');
  expect(await found()).toMatchObject({ passed: false, description: expect.stringContaining('has no plugin') });
  symlinkSync(join(bin, 'gone'), file);
  expect(await found()).toMatchObject({ passed: false, description: expect.stringContaining('not there') });
  symlinkSync(join(plugins, 'b'), join(bin, 'gone'));
  symlinkSync(join(bin, 'gone'), join(plugins, 'b'));
  expect(await found()).toMatchObject({ passed: false, description: expect.stringContaining('in a circle') });
  const elsewhere = join(home, 'elsewhere');
  mkdirSync(join(elsewhere, 'cli-plugins'), { recursive: true });
  writeFileSync(join(elsewhere, 'cli-plugins', 'docker-nonesuch'), '', { mode: 0o644 });
  const env = { PATH: bin, DOCKER_CONFIG: elsewhere };
  const there = async () => (await check.run(checkContext({ home, env }), never))[0];
  expect(await there()).toMatchObject({ passed: false, description: expect.stringContaining('not executable') });
  chmodSync(join(elsewhere, 'cli-plugins', 'docker-nonesuch'), 0o755);
  expect(await there()).toMatchObject({ passed: true, fixes: [] });
});

test('each shell file has its own finding', async () => {
  const file = (name: string) => `/home/of/someone/${name}`;
  const integration = {
    integrationOutcomes: () => [
      { part: 'path', file: file('.bashrc'), state: 'managed' } as const,
      { part: 'path', file: file('.zshrc'), state: 'failed', message: 'it has a second name' } as const,
      { part: 'path', file: file('.cshrc'), state: 'left', message: 'it is a link out of the home' } as const,
      { part: 'autostart', file: file('x.desktop'), state: 'failed' } as const,
    ],
  };
  expect(await look('PATH_MANAGEMENT', { integration })).toMatchObject([
    { sub: '.bashrc', passed: true, fixes: [] },
    { sub: '.zshrc', passed: false, description: expect.stringContaining('it has a second name'), fixes: [{}] },
    { sub: '.cshrc', passed: true },
  ]);
  const off = { offBecause: 'RDCTL_HOME is set', integrationOutcomes: () => [] };
  expect(await finding('PATH_MANAGEMENT', { integration: off })).toMatchObject({
    passed: true,
    description: expect.stringContaining('because RDCTL_HOME is set'),
  });
  expect(await look('PATH_MANAGEMENT', { platform: 'win32' })).toBe('does not apply');
});

test('the search path is that of a new bash login shell', async () => {
  const home = temporaryDirectory();
  const binDirectory = join(home, '.rd', 'bin');
  const given = { home, binDirectory, env: { PATH: [binDirectory, '/usr/bin', '/bin'].join(delimiter) } };
  const outcome = (state: 'clean' | 'failed') => [{ part: 'path', file: join(home, '.bashrc'), state } as const];
  const change = { ...given, integration: { integrationOutcomes: () => outcome('failed') } };
  const before = { ...given, integration: { integrationOutcomes: () => [] } };
  expect(await look('RD_BIN_IN_BASH_PATH', before), 'nothing has been written yet').toEqual([]);
  const manualBefore = { ...given, integration: { integrationOutcomes: () => outcome('clean') } };
  expect(await look('RD_BIN_IN_BASH_PATH', manualBefore), 'the setting has just changed').toEqual([]);
  expect(await finding('RD_BIN_IN_BASH_PATH', change)).toMatchObject({
    passed: false,
    fixes: [{ description: expect.stringContaining('PATH_MANAGEMENT') }],
  });
  const manual = { ...change, settings: { application: { pathManagementStrategy: 'manual' } } };
  expect((await finding('RD_BIN_IN_BASH_PATH', manual)).fixes[0]?.description).toContain('rcfiles');
  writeFileSync(join(home, '.bash_profile'), `echo welcome\nexport PATH="${binDirectory}:$PATH"\n`);
  expect(await finding('RD_BIN_IN_BASH_PATH', change)).toMatchObject({ passed: true });
  expect(await look('RD_BIN_IN_BASH_PATH', { home })).toBe('does not apply');
});

test('a shell that is not installed passes', async () => {
  const none = { home: '/nowhere', binDirectory: '/nowhere/bin', run: () => Promise.reject(new Error('not needed')) };
  const { shellPath } = await import('../../../src/features/diagnostics/checks/search-path.ts');
  const [found] = await shellPath('X', 'no-such-shell', []).run(checkContext(none), never);
  expect(found).toMatchObject({ passed: true, description: 'no-such-shell is not installed.' });
});

test('files with secrets must be private; a missing one has none', async () => {
  const home = temporaryDirectory();
  const files = ['a.json', 'b.json', 'c.json'].map((name) => join(home, name));
  writeFileSync(files[0] as string, '', { mode: 0o600 });
  writeFileSync(files[1] as string, '');
  chmodSync(files[1] as string, 0o640);
  expect(await look('SETTINGS_FILE_PERMISSIONS', { secretFiles: files })).toMatchObject([
    { sub: 'a.json', passed: true },
    {
      sub: 'b.json',
      passed: false,
      description: expect.stringContaining('mode 640'),
      fixes: [{ description: expect.stringContaining('chmod 600') }],
    },
  ]);
});

test('a machine is confined, or the reason is given, and one that runs as before is named', async () => {
  const by = (confinement: MachineConfinement, platform: 'linux' | 'darwin' = 'linux') =>
    ({ platform, confinement: async () => confinement }) as const;
  const method = { by: 'bubblewrap' } as const;
  expect(await look('MACHINE_CONFINED')).toBe('does not apply');
  expect(await look('MACHINE_CONFINED', by({ next: method }, 'darwin'))).toBe('does not apply');
  for (const running of [{}, { running: true }]) {
    expect(await finding('MACHINE_CONFINED', by({ next: method, ...running }))).toMatchObject({ passed: true });
  }
  expect(await finding('MACHINE_CONFINED', by({ next: method, running: false }))).toMatchObject({
    passed: false,
    description: expect.stringContaining('not confined until its next start'),
    fixes: [{ description: expect.stringContaining('`rdctl shutdown`') }],
  });
  const next = { by: 'nothing', because: 'bwrap is not installed' } as const;
  expect(await finding('MACHINE_CONFINED', by({ next, running: true }))).toMatchObject({
    passed: false,
    description: expect.stringContaining('because bwrap is not installed.'),
    fixes: [{ description: expect.stringContaining('apt-get install --no-install-recommends bubblewrap') }],
  });
});

test('disk space is that of the file system with the data directory', async () => {
  expect(await finding('DISK_SPACE', { data: temporaryDirectory() })).toMatchObject({
    description: expect.stringMatching(/\d+\.\d GiB are free/),
  });
  await expect(look('DISK_SPACE', { data: '/no/such/directory' })).rejects.toMatchObject({ code: 'ENOENT' });
});

test.each([
  ['ours', '{"currentContext":"rdctl"}', true],
  ['none named', '{"auths":{}}', false],
  ['another', '{"currentContext":"desktop-linux"}', false],
  ['not JSON', '{', false],
  ['not an object', '[]', false],
])('the active docker context: %s', async (_name, text, passes) => {
  const home = temporaryDirectory();
  mkdirSync(join(home, '.docker'));
  writeFileSync(join(home, '.docker', 'config.json'), text);
  const found = await finding('DOCKER_CONTEXT', { home });
  expect(found).toMatchObject({ sub: 'DOCKER_CONTEXT', passed: passes });
  expect(found.fixes).toEqual(passes ? [] : [{ description: 'Choose it: `docker context use rdctl`' }]);
});

test('programs for credentials that docker is told to use and cannot find are each reported', async () => {
  const home = temporaryDirectory();
  const programs = temporaryDirectory();
  symlinkSync(process.execPath, join(programs, 'docker-credential-pass'));
  const check = (text: string) => {
    mkdirSync(join(home, '.docker'), { recursive: true });
    writeFileSync(join(home, '.docker', 'config.json'), text);
    return look('DOCKER_CREDENTIAL_HELPERS', { home, env: { PATH: programs } });
  };
  for (const text of [
    '',
    '{}',
    '{',
    '{"credsStore":"pass","credHelpers":{"a.example.com":"pass"}}',
    '{"credsStore":7}',
  ]) {
    expect(await check(text), text).toMatchObject([{ passed: true }]);
  }
  expect(await check('{"credsStore":"no-such","credHelpers":{"a.example":"pass","b.example":"gone"}}')).toMatchObject([
    { sub: 'docker-credential-no-such', passed: false, description: expect.stringContaining('all registries') },
    { sub: 'docker-credential-gone', passed: false, description: expect.stringContaining('b.example') },
  ]);
});

test('variables that point docker elsewhere are each reported', async () => {
  const env = { DOCKER_HOST: 'tcp://x', DOCKER_CONTEXT: '', DOCKER_CONFIG: temporaryDirectory() };
  const found = await look('DOCKER_CONTEXT', { env, home: '/nowhere' });
  expect(found).toMatchObject([
    { sub: 'DOCKER_CONTEXT' },
    { sub: 'DOCKER_CONTEXT_ENV_DOCKER_HOST', passed: false, fixes: [{ description: 'Unset it: `unset DOCKER_HOST`' }] },
    { sub: 'DOCKER_CONTEXT_ENV_DOCKER_CONFIG', passed: false },
  ]);
  expect(await look('DOCKER_CONTEXT', { settings: { containerEngine: { name: 'containerd' } } })).toBe(
    'does not apply',
  );
});

test('the engine answers, does not answer, is off, or is starting', async () => {
  const path = join(temporaryDirectory(), 'e.sock');
  let status = 200;
  const endpoint = await listen((_request, response) => void response.writeHead(status).end('OK'), path);
  expect(await finding('ENGINE_ANSWERS', runningMoby(endpoint))).toMatchObject({ passed: true });
  status = 500;
  expect(await finding('ENGINE_ANSWERS', runningMoby(endpoint))).toMatchObject({
    passed: false,
    description: expect.stringContaining('status 500'),
  });
  expect(await finding('ENGINE_ANSWERS', runningMoby('unix:///no/such.sock'))).toMatchObject({ passed: false });
  expect(await finding('ENGINE_ANSWERS', runningMoby('simulated:moby'))).toMatchObject({ passed: true });
  expect(await finding('ENGINE_ANSWERS')).toMatchObject({
    passed: true,
    description: expect.stringContaining('switched off'),
  });
  expect(await look('ENGINE_ANSWERS', { status: { power: 'started', backendState: 'STARTING' } })).toEqual([]);
  expect(await finding('ENGINE_ANSWERS', { status: { power: 'started', backendState: 'ERROR' } })).toMatchObject({
    passed: false,
  });
});

test.each([
  [0, true],
  [-4_000, true],
  [4_000, true],
  [-60_000, false],
  [60_000, false],
])('an engine clock that is %i ms off', async (off, passes) => {
  const now = Date.UTC(2030, 0, 1);
  const path = join(temporaryDirectory(), 'e.sock');
  const endpoint = await listen((_request, response) => {
    response.sendDate = false;
    response.writeHead(200, { Date: new Date(now + off).toUTCString() }).end('OK');
  }, path);
  const found = await finding('CLOCK', { ...runningMoby(endpoint), now: () => now });
  expect(found.passed).toBe(passes);
  if (!passes) expect(found.description).toContain(off < 0 ? 'behind' : 'ahead of');
});

test('reports images in the store that moby does not use', async () => {
  const data = temporaryDirectory();
  const root = join(data, 'moby');
  const path = join(temporaryDirectory(), 'e.sock');
  let driverStatus: string[][] = [['Backing Filesystem', 'extfs']];
  const endpoint = await listen((request, response) => {
    if (request.url === '/info') response.end(JSON.stringify({ DockerRootDir: root, DriverStatus: driverStatus }));
  }, path);
  const found = () => finding('MOBY_IMAGE_STORE', runningMoby(endpoint));
  // The engine of a guest has its data there.
  expect(await look('MOBY_IMAGE_STORE', runningMoby(endpoint))).toEqual([]);
  mkdirSync(join(root, 'network'), { recursive: true });
  expect(await found()).toMatchObject({ passed: true, description: expect.stringContaining('classic') });
  const classic = join(root, 'image', 'overlay2', 'imagedb', 'content', 'sha256');
  mkdirSync(classic, { recursive: true });
  writeFileSync(join(classic, 'abc'), '');
  expect(await found()).toMatchObject({ passed: true });
  driverStatus = [['driver-type', 'io.containerd.snapshotter.v1']];
  expect(await found()).toMatchObject({
    passed: false,
    description: expect.stringContaining('the `classic` store has images'),
  });
  driverStatus = [];
  const content = join(data, 'moby-containerd', 'io.containerd.content.v1.content', 'blobs', 'sha256');
  mkdirSync(content, { recursive: true });
  expect(await found()).toMatchObject({ passed: true });
  writeFileSync(join(content, 'abc'), '');
  expect(await found()).toMatchObject({
    passed: false,
    description: expect.stringContaining('the `snapshotter` store has images'),
  });
  expect(await look('MOBY_IMAGE_STORE')).toEqual([]);
});

test.each([
  ['YAML', 'apiVersion: v1\ncurrent-context: rdctl\n', true],
  ['quoted', 'current-context: "rdctl" # ours\n', true],
  ['JSON', '{"kind": "Config",\n "current-context": "rdctl"}', true],
  ['another', 'current-context: minikube\n', false],
  ['none', 'current-context: ""\ncontexts: []\n', false],
  ['no file', undefined, false],
])('the active kubectl context: %s', async (_name, text, passes) => {
  const home = temporaryDirectory();
  mkdirSync(join(home, '.kube'));
  if (text !== undefined) writeFileSync(join(home, '.kube', 'config'), text);
  expect(await finding('KUBE_CONTEXT', { home })).toMatchObject({ passed: passes });
});

test('a huge kubectl configuration is not parsed, and blank lines are skipped quickly', async () => {
  const home = temporaryDirectory();
  const file = join(home, 'config');
  const env = { KUBECONFIG: file };
  writeFileSync(file, `${'\n'.repeat(1024 * 1024)}current-context: rdctl\n`);
  expect(await finding('KUBE_CONTEXT', { home, env })).toMatchObject({ passed: true });
  writeFileSync(file, Buffer.alloc(8 * 1024 * 1024 + 1, ' '));
  await expect(finding('KUBE_CONTEXT', { home, env })).rejects.toThrow(/config: it is larger than/);
});

test('KUBECONFIG can name several files; the first with a context counts', async () => {
  const home = temporaryDirectory();
  const file = (name: string, text: string) => {
    writeFileSync(join(home, name), text);
    return join(home, name);
  };
  const files = [
    join(home, 'gone'),
    file('a', 'kind: Config\n'),
    file('b', 'current-context: rdctl\n'),
    file('c', 'current-context: x\n'),
  ];
  const env = { KUBECONFIG: files.join(delimiter) };
  expect(await finding('KUBE_CONTEXT', { home, env })).toMatchObject({ passed: true });
  expect(await look('KUBE_CONTEXT', { home, settings: CLUSTER_OFF })).toBe('does not apply');
});

test('the cluster version is offered, not offered, or unknown', async () => {
  const id = 'KUBE_VERSIONS_AVAILABLE';
  const wants = (version: string) => ({ settings: { kubernetes: { version } } });
  expect(await finding(id, wants(''))).toMatchObject({ passed: true });
  expect(await finding(id, wants('1.29.4'))).toMatchObject({ passed: true });
  expect(await finding(id, wants('1.0.0'))).toMatchObject({
    passed: false,
    fixes: [{ description: expect.stringContaining('1.30.2') }],
  });
  expect(await finding(id, { kubernetesVersions: () => undefined })).toMatchObject({ passed: false });
  expect(await look(id, { hasCluster: false })).toBe('does not apply');
});

test('checks for other systems are listed and never apply', async () => {
  for (const id of ['MOCK_CHECKER', 'WINDOWS_INTEGRATIONS', 'LIMA_OVERRIDES', 'WSL_INFO', 'STATIC_FALSE']) {
    expect(await look(id)).toBe('does not apply');
  }
});

test('no check changes anything, however often it runs', async () => {
  const home = temporaryDirectory();
  const files = {
    '.bashrc': 'export MINE=1\n',
    '.zshrc': '',
    '.docker/config.json': '{"currentContext":"default"}',
    '.kube/config': 'current-context: mine\n',
    'settings.json': '{}',
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(home, name, '..'), { recursive: true });
    writeFileSync(join(home, name), text);
  }
  const context = checkContext({
    home,
    data: home,
    env: { HOME: home, PATH: process.env.PATH ?? '', SHELL: '/bin/bash' },
    secretFiles: [join(home, 'settings.json')],
  });
  const before = fingerprint(home);
  const applying = allChecks('linux').filter((check) => check.applies(context));
  expect(applying.length).toBeGreaterThan(8);
  for (const round of [1, 2]) {
    for (const check of applying) {
      await check.run(context, never);
      expect([round, check.id, fingerprint(home)]).toEqual([round, check.id, before]);
    }
  }
});
