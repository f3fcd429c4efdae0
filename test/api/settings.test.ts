import { expect, test } from 'vitest';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import { RdError } from '../../src/errors.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import type { Settings } from '../../src/settings/settings.gen.ts';
import { runsWith, startApi, type TestApiOptions } from '../helpers/api.ts';

const defaults = (): Settings => defaultSettings({ platform: 'linux', arch: 'x64' });
const CONTAINERD = { version: 19, containerEngine: { name: 'containerd' } };

/** Sends a body and returns status and text. */
async function put(body: unknown, options: TestApiOptions = {}, path = '/v1/settings') {
  const api = startApi(options);
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await api.client.request({ method: 'PUT', path, body: text });
  return { ...api, status: response.status, text: response.body.toString(), headers: response.headers };
}

test('GET returns indented JSON as text, with an ETag that never leads to 304', async () => {
  const { client } = startApi();
  const first = await client.request({ method: 'GET', path: '/v1/settings' });
  expect(first.status).toBe(200);
  expect(first.headers['content-type']).toBe('text/plain; charset=utf-8');
  expect(first.body.toString()).toBe(`${JSON.stringify(defaults(), null, 2)}\n`);
  expect(first.headers.etag).toMatch(/^"[\w-]{43}"$/);
  const again = await client.request({
    method: 'GET',
    path: '/v1/settings',
    headers: { 'If-None-Match': String(first.headers.etag) },
  });
  expect(again.status).toBe(200);
  const old = await client.request({ method: 'GET', path: '/v0/settings' });
  expect(old.body).toEqual(first.body);
});

test('a change is stored, passed on with the next generation, and read back', async () => {
  const { client, script, ports } = startApi();
  const before = await client.settings();
  const reply = await client.putSettings({ version: 19, images: { namespace: 'k8s.io' } });
  expect(reply).toMatchObject({ text: 'settings updated; no restart required', generation: 2, ignoredKeys: [] });
  expect(script.desired).toHaveLength(1);
  expect(script.desired[0]).toMatchObject({
    generation: 2,
    power: 'started',
    settings: { images: { namespace: 'k8s.io' } },
  });
  const after = await client.settings();
  expect(after.settings).toMatchObject({ images: { namespace: 'k8s.io' } });
  expect(after.etag).toBe(reply.etag);
  expect(after.etag).not.toBe(before.etag);
  expect(ports.counters).toEqual({ settingsPuts: 1, settingsWrites: 1 });
});

test('a newer version is refused alone, whatever else is wrong', async () => {
  const said = `errors in attempt to update settings:\nChanging field "version" via the API isn't supported.`;
  const { client, status, text } = await put({ version: 20, kubernetes: { port: -1 }, images: { namespace: 'x' } });
  expect({ status, text }).toEqual({ status: 400, text: said });
  expect((await client.settings()).settings).toEqual(defaults());
});

test.each([true, false])('updates on a platform without them are %s as given, and trigger nothing', async (enabled) => {
  const { client, script } = startApi();
  const updater = { version: 19, application: { updater: { enabled } } };
  await client.putSettings(updater);
  expect((await client.settings()).settings).toMatchObject({ application: { updater: { enabled } } });
  expect(script.desired.map(({ settings }) => settings.application.updater.enabled)).toEqual(enabled ? [] : [false]);
  expect(await client.putSettings(updater)).toMatchObject({ text: 'no changes necessary' });
});

test('a PUT without differences: no write, no new generation, the same ETag', async () => {
  let writes = 0;
  const { client, script } = startApi({ persist: async () => void writes++ });
  const { settings, etag } = await client.settings();
  const reply = await client.putSettings(settings);
  expect(reply).toEqual({ text: 'no changes necessary', generation: 1, etag, ignoredKeys: [] });
  expect(writes).toBe(0);
  expect(script.desired).toEqual([]);
});

test.each([
  ['docker', { containerEngine: { name: 'docker' } }],
  ['a disk size spelled differently', { experimental: { virtualMachine: { diskSize: '100 GiB' } } }],
  ['a number as text', { kubernetes: { port: '6443' } }],
  ['a part of a map', { diagnostics: { mutedChecks: { A: true } } }],
])('an equal value in another spelling is not a change: %s', async (_name, body) => {
  const settings = defaults();
  settings.diagnostics.mutedChecks = { A: true, B: false };
  const { text } = await put({ version: 19, ...body }, { settings });
  expect(text).toBe('no changes necessary');
});

test('an empty cluster version replaces a stored one, costs nothing, and is not a change in a plan', async () => {
  const settings = defaults();
  settings.kubernetes.version = '1.30.2';
  const { client, script } = startApi({ settings, versions: ['1.30.2', '1.31.0'] });
  script.observed = runsWith(settings);
  const wanted = { kubernetes: { enabled: true, version: '' } };
  expect((await client.plan({ settings: wanted, state: 'unmanaged', prune: [] })).changes).toEqual([]);
  expect((await client.putSettings({ version: 19, ...wanted })).text).toBe('settings updated; no restart required');
  expect((await client.settings()).settings).toMatchObject(wanted);
});

test.each([
  ['STARTED', 'reconfiguring Rancher Desktop to apply changes (this may take a while)'],
  ['DISABLED', 'reconfiguring Rancher Desktop to apply changes (this may take a while)'],
  ['STARTING', 'UI is currently busy, but will eventually be reconfigured to apply requested changes'],
  ['STOPPING', 'UI is currently busy, but will eventually be reconfigured to apply requested changes'],
] as const)('a change that restarts something says so: %s', async (state, text) => {
  const { client, script } = startApi();
  script.observed = runsWith(defaults());
  script.backendState = state;
  expect((await client.putSettings(CONTAINERD)).text).toBe(text);
});

test('a change that would restart something does not mention it while nothing runs or should run', async () => {
  expect((await put(CONTAINERD)).text).toBe('settings updated; no restart required');
  const { client, script } = startApi({ power: 'stopped' });
  script.observed = runsWith(defaults());
  script.backendState = 'STOPPING';
  expect((await client.putSettings(CONTAINERD)).text).toBe('settings updated; no restart required');
});

const HEADING = 'errors in attempt to update settings:\n';

test.each([
  ['', 'no settings specified in the request'],
  ['{', 'error processing JSON request block'],
  ['\u00ff\ufffe{', 'error processing JSON request block'],
  ['5', 'settings payload is not an object'],
  ['"text"', 'settings payload is not an object'],
  ['true', 'settings payload is not an object'],
  ['[]', 'settings payload is not an object'],
  ['[418,"x"]', 'settings payload is not an object'],
  ['null', `${HEADING}updating settings requires specifying an API version, but no version was specified`],
  ['{}', `${HEADING}updating settings requires specifying an API version, but no version was specified`],
  [
    '{"version":"19"}',
    `${HEADING}updating settings requires specifying an API version, but "19" is not a proper config version`,
  ],
  ['{"version":0}', `${HEADING}updating settings requires specifying an API version, but "0" is not a positive number`],
  ['{"version":20}', `${HEADING}Changing field "version" via the API isn't supported.`],
])('bad body %j gets 400 with its text', async (body, text) => {
  for (const path of ['/v1/settings', '/v0/settings']) {
    const answer = await put(body, {}, path);
    expect(answer.status).toBe(400);
    expect(answer.text).toBe(text);
    expect(answer.headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(answer.script.desired).toEqual([]);
  }
});

test('bytes that are not UTF-8 are not JSON', async () => {
  const { client } = startApi();
  const body = Buffer.concat([
    Buffer.from('{"version":19,"images":{"namespace":"'),
    Buffer.from([0xff]),
    Buffer.from('"}}'),
  ]);
  const answer = await client.request({ method: 'PUT', path: '/v1/settings', body });
  expect(answer.body.toString()).toBe('error processing JSON request block');
});

test('all errors are reported, in payload order, and nothing is changed', async () => {
  const { text, status, script } = await put({
    version: 19,
    portForwarding: 'bob',
    virtualMachine: { memoryInGB: 'carl' },
    containerEngine: { name: 'podman' },
    images: { namespace: 'other' },
  });
  expect(status).toBe(400);
  expect(text).toBe(
    `${HEADING}Setting "portForwarding" should wrap an inner object, but got <bob>.\n` +
      'Invalid value for "virtualMachine.memoryInGB": <"carl">\n' +
      'Invalid value for "containerEngine.name": <"podman">; must be one of ["containerd","moby","docker"]',
  );
  expect(script.desired).toEqual([]);
});

test('a locked field cannot be changed, but may repeat its current value', async () => {
  const locks = { version: true, containerEngine: { name: true } };
  expect((await put(CONTAINERD, { locks })).text).toBe(`${HEADING}field "containerEngine.name" is locked`);
  expect((await put({ version: 19, containerEngine: { name: 'moby' } }, { locks })).text).toBe('no changes necessary');
  const { client } = startApi({ locks });
  const answer = await client.request({ method: 'GET', path: '/v1/settings/locked' });
  expect(answer.headers['content-type']).toBe('text/plain; charset=utf-8');
  expect(answer.body.toString()).toBe(`${JSON.stringify(locks, null, 2)}\n`);
  expect(await startApi().client.locked()).toEqual({});
});

test('a field refused by both platform and driver gets one line', async () => {
  const unsupported = { level: 'unsupported', reason: 'there is no WSL' } as const;
  const driver = { ...SIMULATED_INFO, support: { ...SIMULATED_INFO.support, 'WSL.integrations': unsupported } };
  const body = { version: 19, WSL: { integrations: { Debian: true } } };
  expect((await put(body, { driver, platform: 'linux' })).text).toBe(
    `${HEADING}Changing field "WSL.integrations" via the API isn't supported.`,
  );
  expect((await put(body, { driver, platform: 'win32' })).text).toBe(
    `${HEADING}"WSL.integrations" cannot be changed with the simulated driver: there is no WSL.`,
  );
});

test('a change the driver does not support is refused with its reason, along with the other errors', async () => {
  const driver = {
    ...SIMULATED_INFO,
    support: {
      ...SIMULATED_INFO.support,
      'virtualMachine.memoryInGB': { level: 'unsupported', reason: 'there is no virtual machine' },
      'kubernetes.enabled': { level: 'unsupported', reason: 'there is no cluster', accepts: [false] },
    },
  } as const;
  const settings = defaults();
  const { text, status } = await put(
    { version: 19, virtualMachine: { memoryInGB: settings.virtualMachine.memoryInGB + 1 }, kubernetes: { port: 0 } },
    { driver, settings },
  );
  expect(status).toBe(400);
  expect(text).toContain('Invalid value for "kubernetes.port": <0>');
  expect(text).toContain(
    '"virtualMachine.memoryInGB" cannot be changed with the simulated driver: there is no virtual machine.',
  );
  const same = { version: 19, virtualMachine: { memoryInGB: settings.virtualMachine.memoryInGB } };
  expect((await put(same, { driver, settings })).text).toBe('no changes necessary');
  expect((await put({ version: 19, kubernetes: { enabled: false } }, { driver })).status).toBe(202);
  settings.kubernetes.enabled = false;
  expect((await put({ version: 19, kubernetes: { enabled: true } }, { driver, settings })).text).toContain(
    'there is no cluster',
  );
});

test('unknown keys are reported and never stored', async () => {
  const { client, logged } = startApi();
  const reply = await client.putSettings({ version: 19, imagez: 1, images: { namespace: 'x', 'b, ä': 2 } });
  expect(reply.text).toBe('settings updated; no restart required');
  expect(reply.ignoredKeys).toEqual(['imagez', 'images.b, ä']);
  expect((await client.settings()).text).not.toContain('imagez');
  expect(logged).toContainEqual(
    expect.objectContaining({ level: 'warn', values: { keys: reply.ignoredKeys, count: 2 } }),
  );
  expect((await client.putSettings({ version: 19, nothing: {} })).text).toBe('no changes necessary');
});

test('the unknown-keys header stays short and valid for any input', async () => {
  const { client } = startApi();
  const keys = Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`unknown_${index}`, 1]));
  const { ignoredKeys } = await client.putSettings({ version: 19, '\ud800half': 1, 'line\r\nbreak': 1, ...keys });
  expect(ignoredKeys.slice(0, 3)).toEqual(['\ufffdhalf', 'line\r\nbreak', 'unknown_0']);
  expect(ignoredKeys.at(-1)).toBe('…');
  expect(ignoredKeys.length).toBeLessThan(500);
  expect((await client.putSettings({ version: 19, ['x'.repeat(9000)]: 1 })).ignoredKeys).toEqual(['…']);
});

test('keys with a special meaning in JavaScript are harmless', async () => {
  const { client } = startApi();
  const body =
    '{"version":19,"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"images":{"__proto__":{"namespace":"p"}}}';
  const answer = await client.request({ method: 'PUT', path: '/v1/settings', body });
  expect(answer.body.toString()).toBe('no changes necessary');
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
});

test('older versions are migrated, and nothing that was not sent is added', async () => {
  const settings = defaults();
  settings.containerEngine.mobyStorageDriver = 'classic';
  const { client } = startApi({ settings });
  const reply = await client.putSettings({
    version: 4,
    kubernetes: { memoryInGB: 3, containerEngine: 'containerd' },
    debug: true,
  });
  expect(reply.text).toBe('settings updated; no restart required');
  expect((await client.settings()).settings).toMatchObject({
    version: 19,
    application: { debug: true },
    virtualMachine: { memoryInGB: 3 },
    containerEngine: { name: 'containerd', mobyStorageDriver: 'classic' },
  });
});

test('If-Match is compared inside the write queue', async () => {
  const { client } = startApi();
  const { etag = '' } = await client.settings();
  const body = (namespace: string) => ({ version: 19, images: { namespace } });
  const [first, second] = await Promise.allSettled([
    client.putSettings(body('a'), { ifMatch: etag }),
    client.putSettings(body('b'), { ifMatch: etag }),
  ]);
  expect(first.status).toBe('fulfilled');
  expect(second).toMatchObject({ status: 'rejected', reason: { code: 'ERR_PRECONDITION_FAILED' } });
  expect((await client.settings()).settings).toMatchObject({ images: { namespace: 'a' } });
  await client.putSettings(body('c'), { ifMatch: '*' });
  const now = (await client.settings()).etag ?? '';
  await client.putSettings(body('d'), { ifMatch: `"other", ${now}` });
  const weak = (await client.settings()).etag;
  await expect(client.putSettings(body('e'), { ifMatch: `W/${weak}` })).rejects.toMatchObject({
    code: 'ERR_PRECONDITION_FAILED',
  });
});

test('locks are part of the ETag', async () => {
  const one = await startApi().client.settings();
  const other = await startApi({ locks: { version: true } }).client.settings();
  expect(one.text).toBe(other.text);
  expect(one.etag).not.toBe(other.etag);
});

test('concurrent writes are serialized and none is lost', async () => {
  let running = 0;
  const { client, script } = startApi({
    async persist() {
      expect(++running).toBe(1);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    },
  });
  const checks = Array.from({ length: 30 }, (_, index) => `CHECK_${index}`);
  const replies = await Promise.all(
    checks.map((check) => client.putSettings({ version: 19, diagnostics: { mutedChecks: { [check]: true } } })),
  );
  expect(replies.map(({ generation }) => generation).sort((a = 0, b = 0) => a - b)).toEqual(
    checks.map((_, index) => index + 2),
  );
  expect(script.desired).toHaveLength(30);
  const { settings } = await client.settings();
  expect(settings).toMatchObject({
    diagnostics: { mutedChecks: Object.fromEntries(checks.map((check) => [check, true])) },
  });
});

test('a change that cannot be stored does not take effect: 500 with a message', async () => {
  let full = true;
  const { client, script, logged } = startApi({
    async persist() {
      if (full)
        throw new RdError('ERR_IO', 'could not write /s.json: no space left on the device', {
          advice: 'Free some space.',
        });
    },
  });
  const before = await client.settings();
  const answer = await client.request({ method: 'PUT', path: '/v1/settings', body: JSON.stringify(CONTAINERD) });
  expect(answer.status).toBe(500);
  expect(answer.body.toString()).toBe('could not write /s.json: no space left on the device\nFree some space.');
  expect(await client.settings()).toEqual(before);
  expect(script.desired).toEqual([]);
  expect(logged).toContainEqual(expect.objectContaining({ level: 'error', message: 'request failed' }));
  full = false;
  expect((await client.putSettings(CONTAINERD)).generation).toBe(2);
});

test('a bug gets 500 without details, and its stack is logged', async () => {
  const { client, logged } = startApi({
    persist: () => Promise.reject(new TypeError('secret detail')),
  });
  const answer = await client.request({ method: 'PUT', path: '/v1/settings', body: JSON.stringify(CONTAINERD) });
  expect([answer.status, answer.body.toString()]).toEqual([500, 'Internal Server Error']);
  expect(logged[0]).toMatchObject({ level: 'error', values: { error: expect.any(TypeError) } });
});
