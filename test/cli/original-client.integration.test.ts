import { existsSync, mkdirSync, readdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/json.ts';
import { startService, type TestService } from '../helpers/service.ts';

// What the original command-line client puts on the wire, byte for byte, sent without a client of ours (cli facts, 3.1, 6.4).

/** The settings it sends with every change: every group is present, even if it is empty. */
const SKELETON = {
  version: 19,
  application: { extensions: { allowed: {} }, telemetry: {}, updater: {}, window: {} },
  containerEngine: { allowedImages: {} },
  virtualMachine: { mount: {} },
  kubernetes: { options: {}, ingress: {} },
  experimental: {
    containerEngine: { webAssembly: {} },
    kubernetes: { options: {} },
    virtualMachine: { mount: { '9p': {} }, proxy: {} },
  },
  WSL: {},
  portForwarding: {},
  images: {},
  containers: {},
  diagnostics: { connectivity: {} },
};
const CHANGE =
  '{"version":19,"application":{"extensions":{"allowed":{}},"telemetry":{},"updater":{},"window":{}},' +
  '"containerEngine":{"name":"docker","allowedImages":{}},"virtualMachine":{"mount":{}},' +
  '"kubernetes":{"enabled":false,"options":{},"ingress":{}},' +
  '"experimental":{"containerEngine":{"webAssembly":{}},"kubernetes":{"options":{}},' +
  '"virtualMachine":{"mount":{"9p":{}},"proxy":{}}},"WSL":{},"portForwarding":{},"images":{},"containers":{},' +
  '"diagnostics":{"connectivity":{}}}';

interface Raw {
  status: number;
  reason: string;
  headers: Map<string, string>;
  body: string;
}

/** One request as documented, on its own connection, which the server closes. */
function exchange({ service }: TestService, method: string, path: string, body?: string): Promise<Raw> {
  const { user, password } = service.connection;
  const length =
    body === undefined
      ? method === 'GET'
        ? []
        : ['Content-Length: 0']
      : [`Content-Length: ${Buffer.byteLength(body)}`];
  const head = [
    `${method} ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${service.port}`,
    'User-Agent: Go-http-client/1.1',
    'Connection: close',
    ...length,
    `Authorization: Basic ${btoa(`${user}:${password}`)}`,
    `Content-Type: ${body === undefined ? 'text/plain' : 'application/json'}`,
    'Accept-Encoding: gzip',
  ];
  return new Promise((resolve, reject) => {
    const socket = connect(service.port, '127.0.0.1');
    const parts: Buffer[] = [];
    socket.on('data', (part) => parts.push(part));
    socket.once('error', reject);
    // Only the server's close ends the exchange.
    socket.once('end', () => resolve(parsed(Buffer.concat(parts).toString('utf8'))));
    socket.write(`${head.join('\r\n')}\r\n\r\n${body ?? ''}`);
  });
}

/** Interim responses are skipped, as that client does with the first five. */
function parsed(answer: string): Raw {
  const interim = /^(?:HTTP\/1\.1 1\d\d .*?\r\n\r\n){1,5}/s.exec(answer)?.[0] ?? '';
  const text = answer.slice(interim.length);
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [line = '', ...lines] = head.split('\r\n');
  const [, status = '', reason = ''] = /^HTTP\/1\.1 (\d{3}) (.*)$/.exec(line) ?? [];
  const headers = new Map(
    lines.map((each) => [each.slice(0, each.indexOf(':')).toLowerCase(), each.slice(each.indexOf(':') + 2)]),
  );
  const body = rest.join('\r\n\r\n');
  return { status: Number(status), reason, headers, body };
}

test('its skeleton is that of the recorded request', () => {
  const { containerEngine, kubernetes, ...rest } = SKELETON;
  expect(JSON.parse(CHANGE)).toEqual({
    ...rest,
    containerEngine: { name: 'docker', ...containerEngine },
    kubernetes: { enabled: false, ...kubernetes },
  });
});

describe('set', () => {
  test('changes only what it names', async () => {
    const running = await startService({ power: 'stopped' });
    const before = (await running.client.settings()).settings;
    const reply = await exchange(running, 'PUT', '/v1/settings', CHANGE);
    expect(reply).toMatchObject({
      status: 202,
      reason: 'Accepted',
      body: 'settings updated; no restart required',
    });
    expect(reply.headers.get('content-type')).toMatch(/^text\/plain/);
    const kubernetes = { ...(before.kubernetes as JsonObject), enabled: false };
    expect((await running.client.settings()).settings).toEqual({ ...before, kubernetes });
    expect(await exchange(running, 'PUT', '/v1/settings', CHANGE)).toMatchObject({
      status: 202,
      body: 'no changes necessary',
    });
  });

  test('the empty skeleton changes nothing', async () => {
    const running = await startService({ power: 'stopped' });
    const reply = await exchange(running, 'PUT', '/v1/settings', JSON.stringify(SKELETON));
    expect(reply).toMatchObject({ status: 202, body: 'no changes necessary' });
    expect(reply.headers.get('rdctl-ignored-keys')).toBeUndefined();
  });

  test('reports what it triggers while the backend runs', async () => {
    const running = await startService({ power: 'started' });
    await running.converged();
    const other = CHANGE.replace('"name":"docker"', '"name":"containerd"');
    expect(await exchange(running, 'PUT', '/v1/settings', other)).toMatchObject({
      status: 202,
      body: 'reconfiguring Rancher Desktop to apply changes (this may take a while)',
    });
  });

  test.each([
    [
      '"name":"beefalo"',
      'Invalid value for "containerEngine.name": <"beefalo">; must be one of ["containerd","moby","docker"]',
    ],
    ['"name":5', 'Invalid value for "containerEngine.name": <5>'],
  ])('refuses %s with the line that scripts match', async (part, line) => {
    const running = await startService({ power: 'stopped' });
    const reply = await exchange(running, 'PUT', '/v1/settings', CHANGE.replace('"name":"docker"', part));
    expect(reply).toMatchObject({ status: 400, reason: 'Bad Request' });
    expect(reply.body).toMatch(/^errors in attempt to update settings:\n/);
    expect(reply.body).toContain(line);
  });

  test('of a newer client is refused', async () => {
    const running = await startService({ power: 'stopped' });
    const reply = await exchange(running, 'PUT', '/v1/settings', JSON.stringify({ ...SKELETON, version: 20 }));
    expect(reply.status).toBe(400);
  });
});

describe('other commands', () => {
  test('list-settings, start and create-profile read the settings', async () => {
    const running = await startService({ power: 'stopped' });
    const reply = await exchange(running, 'GET', '/v1/settings');
    expect(reply.status).toBe(200);
    expect(reply.body.endsWith('}\n')).toBe(true);
    expect(JSON.parse(reply.body)).toMatchObject({ version: 19 });
    expect(reply.headers.get('content-length')).toBe(String(Buffer.byteLength(reply.body)));
    expect(reply.headers.get('connection')).toBe('close');
    expect(reply.headers.get('content-encoding')).toBeUndefined();
  });

  test('start --wait reads the state, snapshot writes it', async () => {
    const running = await startService({ power: 'started' });
    await running.converged();
    const state = async () => JSON.parse((await exchange(running, 'GET', '/v1/backend_state')).body);
    expect(await state()).toEqual({ vmState: 'STARTED', locked: false });
    const put = (body: string) => exchange(running, 'PUT', '/v1/backend_state', body);
    expect(await put('{"vmState":"STOPPED","locked":true}')).toMatchObject({ status: 202 });
    await running.converged();
    expect(await state()).toMatchObject({ vmState: 'STOPPED' });
    expect(await put('{"vmState":"STARTED","locked":false}')).toMatchObject({ status: 202 });
    await running.converged();
    expect(await state()).toEqual({ vmState: 'STARTED', locked: false });
  });

  test('snapshot create and restore, which only look at files, are told that they cannot, and take their lock back', async () => {
    const running = await startService({ power: 'started' });
    await running.converged();
    const { backendLock } = running.here;
    writeFileSync(backendLock, '{\n  "action": "Creating snapshot "one""\n}\n');
    const put = (body: string) => exchange(running, 'PUT', '/v1/backend_state', body);
    const { generation } = await running.client.status();
    const reply = await put('{"vmState":"STOPPED","locked":true}');
    // It prints code and reason, and no body, then removes its lock.
    expect(reply).toMatchObject({ status: 409, reason: expect.stringContaining('snapshots of this desktop') });
    expect(reply.body).toContain('Use `rdctl snapshot`');
    expect(await running.client.status()).toMatchObject({ generation, backendState: 'STARTED' });
    // Left behind by a killed one, it prevents no stop.
    expect(await put('{"vmState":"STOPPED","locked":false}')).toMatchObject({ status: 202 });
    unlinkSync(backendLock);
    expect(await put('{"vmState":"STARTED","locked":false}')).toMatchObject({ status: 202 });
    await running.converged();
    expect(await put('{"vmState":"STOPPED","locked":true}')).toMatchObject({ status: 202 });
  });

  test('api', async () => {
    const running = await startService({ power: 'stopped' });
    expect(JSON.parse((await exchange(running, 'GET', '/')).body).slice(0, 3)).toEqual(['GET /', 'GET /v0', 'GET /v1']);
    expect(await exchange(running, 'GET', '/v1/foo%20bar')).toMatchObject({ status: 404 });
    expect(await exchange(running, 'PUT', '/v1/settings', '')).toMatchObject({ status: 400 });
    expect(await exchange(running, 'GET', '/v0/diagnostic_ids')).toMatchObject({ status: 400 });
  });

  test('reset', async () => {
    const running = await startService({ power: 'started' });
    await running.converged();
    expect(await exchange(running, 'PUT', '/v1/k8s_reset', '{"mode":"fast"}')).toMatchObject({
      status: 200,
      body: 'Rancher Desktop fast reset successful',
    });
    expect(await exchange(running, 'PUT', '/v1/k8s_reset', '{"mode":"wipe"}')).toMatchObject({
      status: 200,
      body: 'Rancher Desktop wipe reset successful',
    });
  });

  test('extension', async () => {
    const running = await startService({ power: 'started' });
    await running.converged();
    expect(await exchange(running, 'GET', '/v1/extensions')).toMatchObject({ status: 200, body: '{}' });
    expect(await exchange(running, 'POST', '/v1/extensions/uninstall?id=no/such')).toMatchObject({
      status: 204,
      body: '',
    });
    expect((await exchange(running, 'POST', '/v1/extensions/install')).status).toBe(400);
    // It puts the name into the URL unescaped.
    expect((await exchange(running, 'POST', '/v1/extensions/install?id=a b')).status).toBe(400);
  });

  test('shutdown', async () => {
    const running = await startService({ power: 'started' });
    await running.converged();
    expect(await exchange(running, 'PUT', '/v1/shutdown')).toMatchObject({ status: 202, body: 'Shutting down.' });
    await running.service.stopped;
  });

  test('a wrong password', async () => {
    const running = await startService({ power: 'stopped' });
    const { connection, port } = running.service;
    const other = { ...running, service: { ...running.service, port, connection: { ...connection, password: 'x' } } };
    expect(await exchange(other, 'GET', '/v1/settings')).toMatchObject({ status: 401, reason: 'Unauthorized' });
  });
});

/** Its `snapshot list`, which only looks at files: whatever it lists can be restored there, over the files of the service. */
function listedByOriginal(root: string): string[] {
  return readdirSync(root)
    .filter((name) => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(name))
    .flatMap((directory) => {
      // One unreadable snapshot breaks all of its snapshot commands.
      const { name, id } = JSON.parse(readFileSync(join(root, directory, 'metadata.json'), 'utf8'));
      return existsSync(join(root, id, 'complete.txt')) ? [name] : [];
    });
}

describe('snapshots on disk', () => {
  const names = async ({ client }: TestService) =>
    JSON.parse((await client.request({ method: 'GET', path: '/v1/snapshots' })).body.toString()).map(
      ({ name }: { name: string }) => name,
    );
  const create = async (running: TestService, name: string) => {
    await running.converged();
    expect(await exchange(running, 'POST', '/v1/snapshots', JSON.stringify({ name }))).toMatchObject({ status: 200 });
    await running.converged();
  };
  const restore = async (running: TestService, name: string) => {
    await running.converged();
    return exchange(running, 'POST', `/v1/snapshot/restore?name=${name}`);
  };

  test('those of ours are hidden from the original, but listed here', async () => {
    const running = await startService({ power: 'started' });
    await create(running, 'one');
    expect(listedByOriginal(running.here.snapshots)).toEqual([]);
    expect(await names(running)).toEqual(['one']);
    expect(await restore(running, 'one')).toMatchObject({ status: 200 });
  });

  test('those of the original are listed and deleted, but not restored or changed', async () => {
    const running = await startService({ power: 'started' });
    await create(running, 'one');
    const root = running.here.snapshots;
    const theirs = '00000000-0000-4000-8000-000000000000';
    mkdirSync(join(root, theirs));
    const metadata = { created: '2026-01-02T03:04:05Z', name: 'theirs', id: theirs, description: '' };
    writeFileSync(join(root, theirs, 'metadata.json'), JSON.stringify(metadata));
    const mark = 'The presence of this file indicates that this snapshot is complete and valid.';
    writeFileSync(join(root, theirs, 'complete.txt'), mark);
    await running.service.stop('the test goes on');

    const next = await startService({ home: running.home });
    expect(listedByOriginal(root)).toEqual(['theirs']);
    expect(readFileSync(join(root, theirs, 'complete.txt'), 'utf8')).toBe(mark);
    expect(await names(next)).toEqual(['theirs', 'one']);
    expect(await restore(next, 'theirs')).toMatchObject({
      status: 400,
      body: expect.stringContaining('was not made by this product'),
    });
    expect(await exchange(next, 'DELETE', '/v1/snapshots?name=theirs')).toMatchObject({ status: 200 });
    expect(await names(next)).toEqual(['one']);
  });

  test('those with the same name are distinguished: ours can be restored', async () => {
    const running = await startService({ power: 'started' });
    const theirs = join(running.here.snapshots, '00000000-0000-4000-8000-000000000000');
    await create(running, 'one');
    mkdirSync(theirs);
    const metadata = { created: '2026-01-02T03:04:05Z', name: 'one', id: 'x', description: '' };
    writeFileSync(join(theirs, 'metadata.json'), JSON.stringify(metadata));
    writeFileSync(join(theirs, 'complete.txt'), '');
    expect(await restore(running, 'one')).toMatchObject({ status: 200 });
  });
});
