import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createApp } from '../../src/api/app.ts';
import { httpTransport } from '../../src/client/http.ts';
import { bindListener, type Listener } from '../../src/service/listener.ts';
import { PASSWORD, startApi } from '../helpers/api.ts';

/** Base64 decoders ignore blanks. */
const basic = (text: string, scheme = 'Basic ') => `${scheme}${Buffer.from(text).toString('base64')}`;
const GOOD = basic(`user:${PASSWORD}`);

let listener: Listener;
beforeAll(async () => {
  const { ports } = startApi({ allowHosts: ['desk.example'] });
  listener = await bindListener(0);
  await createApp(ports, listener.server).ready();
});
afterAll(() => listener.close());

/** Sends exactly these lines and reads the whole response. */
async function raw(requestLine: string, headers: Record<string, string | undefined> = {}, body = '') {
  const all = { Host: `127.0.0.1:${listener.port}`, Authorization: GOOD, Connection: 'close', ...headers };
  const lines = Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]));
  const socket = connect(listener.port, '127.0.0.1');
  socket.write(`${[`${requestLine} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n${body}`);
  let text = '';
  for await (const part of socket) text += String(part);
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [statusLine = '', ...headerLines] = head.split('\r\n');
  return {
    status: Number(statusLine.split(' ')[1]),
    headers: Object.fromEntries(headerLines.map((line) => line.toLowerCase().split(': ', 2))),
    body: rest.join('\r\n\r\n'),
  };
}

test.each(['/V1/Settings', '/v1/settings/', '/v1/settings?x=1', '/v0/settings', '/v0/'])('%s matches', async (path) => {
  expect((await raw(`GET ${path}`)).status).toBe(200);
});

test.each(['//v1/settings', '/v1//settings', '/v1/sett%69ngs', '/v1/settings%2F', '/v1/settings%3Fx'])(
  '%s does not match, and is named as it was sent',
  async (path) => {
    expect(await raw(`GET ${path}?q=1`)).toMatchObject({ status: 404, body: `Unknown command: GET ${path}` });
  },
);

test.each(['/v1/%', '/v1/%zz', '/%ff'])('the malformed escape in %s gets 400', async (path) => {
  expect(await raw(`GET ${path}`)).toMatchObject({ status: 400, body: `Malformed escape in the path: ${path}` });
});

test('HEAD is GET without the body', async () => {
  const [head, get] = [await raw('HEAD /v1/settings'), await raw('GET /v1/settings')];
  expect(head).toMatchObject({
    status: 200,
    body: '',
    headers: { 'content-length': get.headers['content-length'], etag: get.headers.etag },
  });
  expect(await raw('HEAD /v1/nothing')).toMatchObject({ status: 404, body: '' });
});

test('OPTIONS gets 204 for any path, without credentials, and grants nothing to foreign pages', async () => {
  for (const path of ['/v1/settings', '/nothing', '/v1/sett%69ngs']) {
    const { status, headers, body } = await raw(`OPTIONS ${path}`, {
      Authorization: undefined,
      Origin: 'http://evil.example',
    });
    expect([status, body]).toEqual([204, '']);
    expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
  }
});

test.each([GOOD, basic(`user:${PASSWORD}`, 'basic '), basic(`user:${PASSWORD}`, 'BASIC    '), `${GOOD} trailing`])(
  'credentials are accepted: %s',
  async (authorization) => {
    expect((await raw('GET /v1/about', { Authorization: authorization })).status).toBe(200);
  },
);

test.each([
  undefined,
  '',
  'Basic',
  'Basic !!!',
  'Bearer abc',
  basic('user'),
  basic(`other:${PASSWORD}`),
  basic('user:wrong'),
  basic(`user:${PASSWORD}x`),
  basic(`user:${PASSWORD.slice(1)}`),
])('credentials are refused: %s', async (authorization) => {
  for (const path of ['/v1/about', '/nothing']) {
    expect(await raw(`GET ${path}`, { Authorization: authorization })).toMatchObject({
      status: 401,
      body: 'Unauthorized',
      headers: { 'content-type': 'text/plain; charset=utf-8', 'www-authenticate': expect.stringContaining('basic') },
    });
  }
});

test.each([
  '127.0.0.1',
  '127.0.0.1:1',
  'localhost',
  'LOCALHOST:6107',
  'localhost.',
  '[::1]:6107',
  '192.168.5.2',
  'desk.example:6107',
])('the host %s is accepted', async (host) => expect((await raw('GET /v1/about', { Host: host })).status).toBe(200));

test.each([
  'evil.example',
  'localhost.evil.example',
  '127.0.0.1.nip.io:6107',
  'desk.example.org',
  '[::1',
  'a b',
  'x@localhost',
  '',
])('the host %j is refused before credentials are checked', async (host) => {
  const { status, body } = await raw('GET /v1/settings', { Host: host, Authorization: undefined });
  expect(status).toBe(403);
  expect(body).toContain(`requests for the host ${JSON.stringify(host)} are not accepted`);
});

test('pages of a foreign origin are refused; our own are accepted', async () => {
  for (const origin of ['http://evil.example', 'null', 'https://127.0.0.1:6107', 'http://localhost:3000']) {
    expect((await raw('PUT /v1/shutdown', { Origin: origin })).status).toBe(403);
  }
  const own = `http://127.0.0.1:${listener.port}`;
  const { status, headers } = await raw('GET /v1/about', { Origin: own });
  expect(status).toBe(200);
  expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
});

test('a page elsewhere is refused also where browsers send no Origin, as for images and links', async () => {
  for (const line of ['GET /v2/proof?nonce=5', 'GET /v1/about', 'PUT /v1/shutdown', 'GET /nothing']) {
    for (const site of ['cross-site', 'same-site', 'Cross-Site']) {
      const { status, body } = await raw(line, { 'Sec-Fetch-Site': site });
      expect([status, body]).toEqual([403, expect.stringContaining('pages of other sites are not accepted')]);
    }
  }
  for (const site of ['none', 'same-origin']) {
    expect((await raw('GET /v1/about', { 'Sec-Fetch-Site': site })).status).toBe(200);
  }
});

test.each([
  undefined,
  'application/json',
  'application/x-www-form-urlencoded',
  'text/plain',
  'nonsense',
  'multipart/form-data',
])('a body of media type %s is read as JSON', async (type) => {
  const body = '{"version":19}';
  const headers = { 'Content-Type': type, 'Content-Length': String(body.length) };
  expect(await raw('PUT /v1/settings', headers, body)).toMatchObject({ status: 202, body: 'no changes necessary' });
});

test('a missing body is an empty body', async () => {
  expect(await raw('PUT /v1/settings')).toMatchObject({ status: 400, body: 'no settings specified in the request' });
  expect((await raw('PUT /v1/settings', { 'Content-Length': '0' })).status).toBe(400);
});

test('a chunked body is reassembled', async () => {
  const chunked = '9\r\n{"version\r\n5\r\n":19}\r\n0\r\n\r\n';
  expect(await raw('PUT /v1/settings', { 'Transfer-Encoding': 'chunked' }, chunked)).toMatchObject({ status: 202 });
});

test('4 MiB are accepted; one byte more is read to the end and refused with the message', async () => {
  const connection = {
    host: '127.0.0.1',
    port: listener.port,
    user: 'user',
    password: PASSWORD,
    foreign: false,
    reached: { by: 'word' },
  } as const;
  const limit = 4 * 1024 * 1024;
  const start = '{"version":19,"x":"';
  const body = `${start}${'x'.repeat(limit - start.length - 2)}"}`;
  const put = (text: string, path: string) => httpTransport(connection, { method: 'PUT', path, body: text });
  expect((await put(body, '/v1/settings')).status).toBe(202);
  for (const path of ['/v1/settings', '/v1/propose_settings', '/v1/backend_state', '/v1/k8s_reset']) {
    const answer = await put(`${body} `, path);
    expect(answer.status).toBe(413);
    expect(answer.body.toString()).toBe('request body is too long, request body size exceeds 4194304');
  }
  const plan = await httpTransport(connection, { method: 'POST', path: '/v2/plan', body: 'x'.repeat(12_000_000) });
  expect(JSON.parse(plan.body.toString())).toMatchObject({ code: 'ERR_BODY_TOO_LARGE' });
});

test('errors of v2 routes are documents, whatever refused the request', async () => {
  const answer = await raw('GET /v2/status', { Authorization: undefined });
  expect(answer.status).toBe(401);
  expect(JSON.parse(answer.body)).toMatchObject({ code: 'ERR_UNAUTHORIZED' });
});

test('no response carries a caching or implementation header', async () => {
  const { headers } = await raw('GET /v1/about');
  for (const name of ['etag', 'x-powered-by', 'server', 'cache-control']) expect(headers).not.toHaveProperty(name);
});
