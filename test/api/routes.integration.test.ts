import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import type { PlanRequest } from '../../src/plan/change.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { PASSWORD, runsWith, startApi } from '../helpers/api.ts';

async function answer(line: string, body?: string) {
  const [method = '', path = ''] = line.split(' ');
  const response = await startApi().client.request({ method, path, ...(body === undefined ? {} : { body }) });
  return { status: response.status, text: response.body.toString(), type: response.headers['content-type'] };
}

test.each([
  ['GET /v1/extensions', 'Extension manager is not ready yet.'],
  ['POST /v1/extensions/install?id=x', 'Extension manager is not ready yet.'],
])('%s reports that it is not ready yet', async (line, text) => {
  expect(await answer(line)).toEqual({ status: 503, type: 'text/plain; charset=utf-8', text });
});

test.each([
  'GET /v2',
  'GET /v99-x',
  'GET /v1/nothing',
  'POST /v1/settings',
  'DELETE /v1/about',
  'GET /v1/propose_settings',
  'GET /v0/about',
  'PUT /v0/backend_state',
  'GET /v0/extensions',
  'GET /v2/nothing',
])('%s is unknown', async (line) => {
  const { status, text } = await answer(`${line}?a=1`);
  expect(status).toBe(404);
  expect(text).toContain(`Unknown command: ${line}`);
});

test.each([
  ['GET /v0/settings/locked', '/v1/settings/locked'],
  ['GET /v0/diagnostic_ids', '/v1/diagnostic_ids'],
  ['POST /v0/snapshots/cancel', '/v1/snapshots/cancel'],
  ['PUT /v0/propose_settings', '/v1/propose_settings'],
])('%s points to the newer path', async (line, newer) => {
  expect(await answer(`${line}?x=1`)).toMatchObject({
    status: 400,
    text: `Invalid version "/v0" for endpoint "${line}" - use "${newer}"`,
  });
});

test('about returns a sentence', async () => {
  expect(await answer('GET /v1/about')).toMatchObject({
    status: 200,
    text: expect.stringMatching(/version 1 .* experimental/),
  });
});

test('shutdown answers before it acts', async () => {
  for (const path of ['/v1/shutdown', '/v0/shutdown']) {
    const { client, stops } = startApi();
    const response = await client.request({ method: 'PUT', path });
    expect([response.status, response.body.toString()]).toEqual([202, 'Shutting down.']);
    expect(stops).toHaveLength(1);
  }
});

test('backend state is compact and includes the lock', async () => {
  const { client, script } = startApi({ backendLocked: true });
  script.backendState = 'STARTING';
  const response = await client.request({ method: 'GET', path: '/v1/backend_state' });
  expect(response.body.toString()).toBe('{"vmState":"STARTING","locked":true}');
  expect(await startApi().client.backendState()).toEqual({ vmState: 'STOPPED', locked: false });
});

test('a desired power state is stored and passed on; repeating it changes nothing', async () => {
  const kept: string[] = [];
  const { client, script } = startApi({ power: 'stopped', persist: async ({ power }) => void kept.push(power) });
  expect(await client.setBackendState('STARTED')).toMatchObject({ text: 'received backend state', generation: 2 });
  expect(await client.setBackendState('STARTED')).toMatchObject({ generation: 2 });
  expect(await client.setBackendState('STOPPED')).toMatchObject({ generation: 3 });
  expect(kept).toEqual(['started', 'stopped']);
  expect(script.desired.map(({ power }) => power)).toEqual(['started', 'stopped']);
});

test('a failed start can be requested again', async () => {
  const { client, script } = startApi({ power: 'started' });
  script.backendState = 'ERROR';
  expect(await client.setBackendState('STARTED')).toMatchObject({ generation: 2 });
  expect(script.desired).toHaveLength(1);
});

test.each([
  ['{"vmState":"PAUSED"}', 'invalid desired VM state "PAUSED"'],
  ['{"locked":true}', 'invalid desired VM state "undefined"'],
  ['null', 'invalid desired VM state "undefined"'],
  ['{', 'error processing JSON request block'],
  ['', 'error processing JSON request block'],
])('backend state %j gets 400', async (body, text) => {
  const response = await answer('PUT /v1/backend_state', body);
  expect(response.status).toBe(400);
  expect(response.text.split('\n')[0]).toBe(text);
});

test('accepts the `locked` field that the snapshot code sends', async () => {
  expect(await answer('PUT /v1/backend_state', '{"vmState":"STOPPED","locked":true}')).toMatchObject({ status: 202 });
});

test('propose names what would restart, and changes nothing', async () => {
  const settings = defaultSettings({ platform: 'linux', arch: 'x64' });
  settings.kubernetes.version = '1.30.1';
  const { client, script } = startApi({ settings, versions: ['1.30.1', '1.29.4'] });
  script.observed = runsWith({ ...settings, virtualMachine: { ...settings.virtualMachine, numberCPUs: 7 } });
  const body = { containerEngine: { name: 'containerd' }, kubernetes: { version: '1.29.4' } };
  const response = await client.request({ method: 'PUT', path: '/v1/propose_settings', body: JSON.stringify(body) });
  expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(response.body.toString()).toBe(
    '{"kubernetes.version":{"current":"1.30.1","desired":"1.29.4","severity":"reset"},' +
      '"containerEngine.name":{"current":"moby","desired":"containerd","severity":"restart"}}',
  );
  expect(script.desired).toEqual([]);
  expect(await client.proposal({})).toEqual({});
});

test('a bad proposal gets its own heading', async () => {
  expect(await answer('PUT /v1/propose_settings', '{"kubernetes":{"port":0}}')).toMatchObject({
    status: 400,
    text: 'Errors in proposed settings:\nInvalid value for "kubernetes.port": <0>',
  });
  expect(await answer('PUT /v1/propose_settings', '{"version":4}')).toMatchObject({
    text: `Errors in proposed settings:\nChanging field "version" via the API isn't supported.`,
  });
  expect(await answer('PUT /v1/propose_settings', '')).toMatchObject({ text: 'no settings specified in the request' });
  expect(await answer('PUT /v1/propose_settings', '[]')).toMatchObject({ text: 'settings payload is not an object' });
});

test('the service plans against its own state', async () => {
  const { client, ports } = startApi();
  const plan = await client.plan({
    settings: { version: 19, containerEngine: { name: 'docker' } },
    state: 'started',
    prune: [],
  });
  expect(plan.changes.filter(({ path }) => path === 'containerEngine.name')).toEqual([]);
  const other = await client.plan({
    settings: { containerEngine: { name: 'containerd' } },
    state: 'started',
    prune: [],
  });
  expect(other).toMatchObject({
    kind: 'Plan',
    basis: 'service',
    generation: 1,
    target: { product: 'rdctl', home: ports.about.home, driver: SIMULATED_INFO.name, simulated: true },
  });
  expect(other.changes).toContainEqual(
    expect.objectContaining({ path: 'containerEngine.name', before: 'moby', after: 'containerd' }),
  );
});

test('a plan is based on a fresh observation', async () => {
  const { client, script } = startApi();
  const settings = defaultSettings({ platform: 'linux', arch: 'x64' });
  script.look = () => {
    script.observed = runsWith(settings);
    return true;
  };
  const plan = await client.plan({
    settings: { containerEngine: { name: 'containerd' } },
    state: 'started',
    prune: [],
  });
  expect(plan.blastRadius.map(({ what }) => what).join()).toContain('stops the containers in moby');
  expect(plan.warnings).toEqual([]);
});

const AUTHORIZATION = `Basic ${btoa(`user:${PASSWORD}`)}`;
const NOTHING: PlanRequest = { settings: {}, state: 'unmanaged', prune: [] };

/** An observation that never gets its turn between steps. */
function neverLooks(signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    // The time is over before the look where the plan had to wait for its turn.
    if (signal.aborted) resolve(false);
    signal.addEventListener('abort', () => resolve(false), { once: true });
  });
}

test('a plan waits for an observation up to the given limit, and says when there was none', async () => {
  const { client, script } = startApi();
  script.look = neverLooks;
  const plan = await client.plan(NOTHING, { waitMs: 5 });
  expect(plan.warnings).toEqual([expect.stringMatching(/^What runs could not be looked at in time/)]);
  expect(plan.summary).toMatchObject({ nothingLost: false, text: 'nothing to change, what is running is unknown' });
});

test.each(['-1', '', '1.5', '600001', '1&waitMs=2'])('waitMs=%s is refused', async (waitMs) => {
  const { app, ports, script } = startApi();
  script.look = () => expect.unreachable();
  const reply = await app.inject({
    method: 'POST',
    url: `/v2/plan?waitMs=${waitMs}`,
    headers: { host: `127.0.0.1:${ports.about.port}`, authorization: AUTHORIZATION },
    payload: JSON.stringify(NOTHING),
  });
  expect(reply.statusCode).toBe(400);
  expect(reply.body).toContain('waitMs must be a number of milliseconds');
});

test('stops waiting when the client has disconnected', async () => {
  const { app, script } = startApi();
  const asked = new Promise<AbortSignal>((resolve) => {
    script.look = (signal) => {
      resolve(signal);
      return neverLooks(signal);
    };
  });
  const address = await app.listen({ port: 0, host: '127.0.0.1' });
  onTestFinished(() => app.close());
  const leaving = new AbortController();
  const call = fetch(`${address}/v2/plan?waitMs=600000`, {
    method: 'POST',
    headers: { authorization: AUTHORIZATION },
    body: JSON.stringify(NOTHING),
    signal: leaving.signal,
  });
  const signal = await asked;
  expect(signal.aborted).toBe(false);
  const ended = once(signal, 'abort');
  leaving.abort();
  await Promise.all([expect(call).rejects.toThrow(), ended]);
});

test('a plan request with errors is refused without an observation', async () => {
  const { client, script } = startApi();
  script.look = () => {
    throw new Error('not needed');
  };
  const settings = { kubernetes: { port: 0 } };
  await expect(client.plan({ settings, state: 'started', prune: [] })).rejects.toMatchObject({
    code: 'ERR_SETTINGS_INVALID',
  });
});

test('a locked change is blocked in the plan, with the file that locks it, and is not an error', async () => {
  const { client } = startApi({ locks: { containerEngine: { name: true } }, lockedBy: '/etc/p/locked.json' });
  const plan = await client.plan({
    settings: { containerEngine: { name: 'containerd' } },
    state: 'unmanaged',
    prune: [],
  });
  expect(plan.changes[0]?.blocked).toMatchObject({
    by: 'lock',
    message: expect.stringContaining('/etc/p/locked.json'),
  });
});

test.each([
  ['{', 'ERR_BODY_INVALID', 'error processing JSON request block'],
  ['', 'ERR_BODY_INVALID', 'error processing JSON request block'],
  ['[]', 'ERR_BODY_INVALID', 'must be object'],
  ['{"settings":{},"state":"on","prune":[]}', 'ERR_BODY_INVALID', 'state'],
  ['{"settings":{},"state":"started","prune":[],"x":1}', 'ERR_BODY_INVALID', 'additional'],
  ['{"settings":{},"state":"started","prune":"a"}', 'ERR_BODY_INVALID', 'prune'],
])('a bad plan request %j gets an error document', async (body, code, text) => {
  const response = await answer('POST /v2/plan', body);
  expect(response.status).toBe(400);
  expect(response.type).toBe('application/json; charset=utf-8');
  expect(JSON.parse(response.text)).toMatchObject({ code, message: expect.stringContaining(text) });
});

test('a bad plan request lists every bad setting with its pointer and the nearest name', async () => {
  const { client } = startApi();
  const settings = { kubernetes: { prot: 1, port: 0 }, containerEngine: { name: 'podman' } };
  const error = await client.plan({ settings, state: 'started', prune: [] }).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'ERR_SETTINGS_INVALID' });
  const details = (error as { details: string[] }).details.join('\n');
  expect(details.split('\n')).toEqual([
    '"kubernetes.port" cannot be 0 (/kubernetes/port); expected an integer from 1 to 65535',
    '"containerEngine.name" cannot be "podman" (/containerEngine/name); expected one of "containerd", "moby"',
    '"kubernetes.prot" is not a setting (/kubernetes/prot); did you mean port?',
  ]);
});
