import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { BODY_LIMIT } from '../../src/api/wire-texts.ts';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import { ERRORS } from '../../src/errors.ts';
import { PASSWORD, runsWith, startApi } from '../helpers/api.ts';
import { schemaCheck } from '../helpers/schema-check.ts';
import { startService } from '../helpers/service.ts';

function problemsOf(schema: string, document: unknown): unknown {
  const check = schemaCheck(schema);
  return check(document) ? [] : check.errors;
}

test('the status document matches its schema in every state', async () => {
  const { client, script } = startApi();
  expect(problemsOf('status', await client.status())).toEqual([]);
  const settings = (await client.settings()).settings;
  script.observed = runsWith(startApi().ports.store.snapshot().desired.settings);
  const status = await client.status();
  expect(problemsOf('status', status)).toEqual([]);
  expect(status).toMatchObject({
    product: 'rdctl',
    version: '1.2.3',
    pid: 42,
    home: '/home/of/the/test',
    driver: { name: 'simulated', simulated: true, reason: 'it was requested' },
    engine: { name: (settings.containerEngine as { name: string }).name, state: 'running', endpoint: 'unix:///e.sock' },
  });
  script.observed.engines.moby = { state: 'unresponsive', message: 'it does not answer' };
  expect(await client.status()).toMatchObject({ engine: { name: 'moby', state: 'unresponsive' } });
});

test('the status shows machine access and ports while the machine is on', async () => {
  const access = { ssh: ['ssh', '-S', '/a'], target: 'there', before: [] };
  const ports = [
    { protocol: 'udp', port: 80, state: 'failed', reason: 'it is taken' },
    { protocol: 'tcp', port: 8080, state: 'forwarded', addresses: ['127.0.0.1', '::1'] },
  ] as const;
  const driver = { ...SIMULATED_INFO, access: () => access, published: () => ports };
  const { client, script, ports: api } = startApi({ driver });
  const off = await client.status();
  expect(off).not.toHaveProperty('ports');
  expect(off).not.toHaveProperty('access');
  script.observed = runsWith(api.store.snapshot().desired.settings);
  const on = await client.status();
  expect(on).toMatchObject({ access, ports });
  expect(problemsOf('status', on)).toEqual([]);
  expect(problemsOf('status', { ...on, ports: [{ protocol: 'tcp', port: 0, state: 'forwarded' }] })).not.toEqual([]);
});

test('the status document of a real service matches its schema, including the path of its connection file', async () => {
  const { client, converged, here } = await startService({ power: 'started' });
  expect(problemsOf('status', await converged())).toEqual([]);
  expect(problemsOf('connection', JSON.parse(readFileSync(here.connectionFile, 'utf8')))).toEqual([]);
  const plan = await client.plan({
    settings: { containerEngine: { name: 'containerd' } },
    state: 'started',
    prune: [],
  });
  expect(problemsOf('plan', plan)).toEqual([]);
});

test('the plan document lists the user files it touches, as its schema says', async () => {
  const update = [{ file: '/home/user/.bashrc', action: 'update', what: 'removes /home/user/bin from PATH' }] as const;
  const foreseen = {
    path: { manual: update, rcfiles: [] },
    autostart: { on: [], off: [] },
    docker: { selected: [], 'given back': [], removed: [] },
    kube: { present: [], renewed: [], removed: [] },
  };
  const request = {
    settings: { application: { pathManagementStrategy: 'manual' } },
    state: 'unmanaged' as const,
    prune: [],
  };
  const plan = await startApi({ userFiles: { foreseen } }).client.plan(request);
  expect(plan.userFiles).toEqual(update);
  expect(problemsOf('plan', plan)).toEqual([]);
  expect(problemsOf('plan', { ...plan, userFiles: [{ file: '/home/user/.bashrc' }] })).not.toEqual([]);
  const { userFiles: _, ...older } = plan;
  expect(problemsOf('plan', older)).toEqual([]);
  const untouched = await startApi().client.plan(request);
  expect(untouched.changes.length).toBeGreaterThan(0);
  expect(untouched.userFiles, 'where the integration is off').toEqual([]);
});

test('the schemas reject missing and wrong fields', async () => {
  const { kind: _, ...rest } = await startApi().client.status();
  expect(problemsOf('status', rest)).not.toEqual([]);
  expect(problemsOf('status', { ...rest, kind: 'Status', generation: 0 })).not.toEqual([]);
  expect(problemsOf('connection', { user: 'user', password: 'x', port: 0, pid: 1 })).not.toEqual([]);
  expect(problemsOf('error', { code: 'oops', message: 'x' })).not.toEqual([]);
});

test('every error code produces a valid error document', async () => {
  for (const code of Object.keys(ERRORS)) expect(problemsOf('error', { code, message: 'm' })).toEqual([]);
  const { client } = startApi();
  const refused = await client.request({
    method: 'POST',
    path: '/v2/plan',
    body: '{"settings":{"a":1},"state":"started","prune":[]}',
  });
  const document: unknown = JSON.parse(refused.body.toString());
  expect(problemsOf('error', document)).toEqual([]);
  expect(document).toMatchObject({
    code: 'ERR_SETTINGS_INVALID',
    details: [expect.stringContaining('"a" is not a setting')],
  });
});

test.each([
  ['GET', '/v2/nothing', undefined, {}, 'ERR_NOT_FOUND'],
  ['GET', '/v2/status', undefined, { authorization: 'Basic x' }, 'ERR_UNAUTHORIZED'],
  ['GET', '/v2/status', undefined, { origin: 'http://example.com' }, 'ERR_FORBIDDEN'],
  ['GET', '/v2/status', undefined, { host: 'example.com' }, 'ERR_FORBIDDEN'],
  ['POST', '/v2/plan', '{', {}, 'ERR_BODY_INVALID'],
  ['POST', '/v2/plan', '{}', {}, 'ERR_BODY_INVALID'],
  ['POST', '/v2/plan', ' '.repeat(BODY_LIMIT + 1), {}, 'ERR_BODY_TOO_LARGE'],
  ['POST', '/v2/plan', '{"settings":{"a":1},"state":"started","prune":[]}', {}, 'ERR_SETTINGS_INVALID'],
] as const)('%s %s %.10s is refused with advice', async (method, url, payload, headers, code) => {
  const { app } = startApi();
  const authorization = `Basic ${Buffer.from(`user:${PASSWORD}`).toString('base64')}`;
  const response = await app.inject({
    method,
    url,
    headers: { host: '127.0.0.1', authorization, ...headers },
    ...(payload === undefined ? {} : { payload }),
  });
  const document = response.json();
  expect(problemsOf('error', document)).toEqual([]);
  expect(document).toMatchObject({ code, advice: expect.stringMatching(/^[A-Z].*\.$/) });
});
