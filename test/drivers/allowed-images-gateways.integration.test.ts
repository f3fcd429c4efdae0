import { X509Certificate } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, RequestListener, Server } from 'node:http';
import { createServer, request } from 'node:http';
import type { AddressInfo, Socket, Server as TcpServer } from 'node:net';
import { createServer as createTcpServer, connect as dial } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls, TLSSocket } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { authzPlugin } from '../../src/drivers/engines/authz-plugin.ts';
import { hostCertificates, newAuthority } from '../../src/drivers/engines/gateway-authority.ts';
import { outboundProxy, registryGateway } from '../../src/drivers/engines/gateways.ts';
import type { GuardParts } from '../../src/drivers/engines/pull-guard.ts';
import { pullPolicy } from '../../src/drivers/engines/pull-policy.ts';
import { createRegistryDialer, proxyFor } from '../../src/drivers/engines/registry-dialer.ts';

const servers: (Server | TcpServer)[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    if ('closeAllConnections' in server) server.closeAllConnections();
    server.close();
  }
});

async function listening(server: Server | TcpServer): Promise<number> {
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

interface Answer {
  status: number;
  phrase: string;
  headers: IncomingMessage['headers'];
  body: string;
}

/** Of the gateway, and of the registries with TLS. */
const AUTHORITY = newAuthority(Date.now());
const REGISTRY_AUTHORITY = newAuthority(Date.now());

/** A server with TLS that has a certificate of that authority for 127.0.0.1. */
function withTls(server: Server, authority = REGISTRY_AUTHORITY): TcpServer {
  const secureContext = hostCertificates(authority, () => Date.now())('127.0.0.1');
  return createTcpServer((socket) => {
    socket.on('error', () => socket.destroy());
    const secure = new TLSSocket(socket, { isServer: true, secureContext, ALPNProtocols: ['http/1.1'] });
    secure.on('error', () => socket.destroy());
    server.emit('connection', secure);
  });
}

const SECRET = 'told-to-root-only';
const LOGIN = `Basic ${Buffer.from(`rdctl:${SECRET}`).toString('base64')}`;
/** The credentials that clients of both gateways have. */
const KNOWN = { cookie: `rdctl-gateway=${SECRET}`, 'proxy-authorization': LOGIN };

function ask(port: number, path: string, method = 'GET', own: Record<string, string> = {}): Promise<Answer> {
  const headers = { ...KNOWN, ...own };
  return new Promise((resolve, reject) => {
    const call = request({ host: '127.0.0.1', port, path, method, headers, agent: false }, async (response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk);
      const { statusCode = 0, statusMessage = '' } = response;
      const body = Buffer.concat(chunks).toString();
      resolve({ status: statusCode, phrase: statusMessage, headers: response.headers, body });
    });
    call.on('error', reject);
    call.end();
  });
}

/** A registry whose images have the digest `sha256:cc…` behind an index. */
const CHILD = `sha256:${'c'.repeat(64)}`;
const LIST = `sha256:${'d'.repeat(64)}`;

async function world(
  patterns: readonly string[],
  serve: (parts: GuardParts) => Server,
  { env = {}, tls = false }: { env?: Record<string, string>; tls?: boolean } = {},
) {
  const seen: { method: string; url: string; headers: IncomingMessage['headers'] }[] = [];
  const registry: RequestListener = (incoming, response) => {
    const { method = '', url = '', headers } = incoming;
    seen.push({ method, url, headers });
    if (url.includes('/blobs/')) {
      const elsewhere = url.includes('kept') ? '/kept?x=1' : 'https://store.example/layer';
      response.writeHead(307, { location: url.includes('own') ? '/v2/own/tags/list?x=1' : elsewhere });
      return response.end();
    }
    if (url.includes('/private/')) {
      response.writeHead(401, { 'www-authenticate': 'Bearer realm="https://auth.example/token"' });
      return response.end();
    }
    const body = JSON.stringify({ manifests: [{ digest: CHILD }] });
    const packed = headers['accept-encoding'] === 'gzip';
    response.writeHead(200, { 'docker-content-digest': LIST, ...(packed ? { 'content-encoding': 'gzip' } : {}) });
    response.end(packed ? gzipSync(body) : body);
  };
  const plain = createServer(registry);
  const registryPort = await listening(tls ? withTls(plain) : plain);
  const policy = pullPolicy();
  policy.set(patterns.map((pattern) => pattern.replace('REG', `127.0.0.1:${registryPort}`)));
  const refusals: string[] = [];
  const parts: GuardParts = {
    policy,
    dialer: createRegistryDialer(env),
    onDenied: (why) => refusals.push(why),
    onQuery: () => undefined,
    secret: SECRET,
    authority: AUTHORITY,
  };
  const port = await listening(serve(parts));
  return { port, host: `127.0.0.1:${registryPort}`, seen, refusals, policy };
}

describe('the gateway for containerd clients', () => {
  test('resolves a tag, then the digests it led to, and nothing else', async () => {
    const { port, host, seen, refusals } = await world(['REG/app:1'], registryGateway);
    const of = (reference: string) => `/v2/app/manifests/${reference}?ns=${host}`;
    expect(await ask(port, of(LIST))).toMatchObject({ status: 403 });
    expect(await ask(port, of('1'), 'HEAD')).toMatchObject({ status: 200, headers: { 'docker-content-digest': LIST } });
    expect(await ask(port, of(CHILD))).toMatchObject({ status: 403 });
    // The index must arrive unchanged, or it could not be parsed.
    expect(await ask(port, of(LIST), 'GET', { 'accept-encoding': 'gzip' })).toMatchObject({
      status: 200,
      body: JSON.stringify({ manifests: [{ digest: CHILD }] }),
    });
    expect(await ask(port, of(CHILD))).toMatchObject({ status: 200 });
    const denied = await ask(port, of('2'));
    expect(denied).toMatchObject({ status: 403, phrase: expect.stringMatching(/^Forbidden: .*app:2 is not among/) });
    expect(JSON.parse(denied.body)).toEqual({
      errors: [{ code: 'DENIED', message: expect.stringContaining(`${host}/app:2`) }],
    });
    expect(refusals).toHaveLength(3);
    expect(seen.map(({ url }) => url)).not.toContain('/v2/app/manifests/2');
  });

  test('passes on credentials, challenges and other query parameters, but not hop-by-hop headers', async () => {
    const { port, host, seen } = await world(['REG'], registryGateway);
    const asked = await ask(port, `/v2/private/manifests/1?ns=${host}&n=3`, 'GET', {
      authorization: 'Bearer token',
      accept: 'application/json',
    });
    expect(asked).toMatchObject({ status: 401, headers: { 'www-authenticate': expect.stringContaining('realm') } });
    expect(seen[0]).toMatchObject({
      url: '/v2/private/manifests/1?n=3',
      headers: { authorization: 'Bearer token', accept: 'application/json', host },
    });
    for (const secret of Object.keys(KNOWN)) expect(seen[0]?.headers).not.toHaveProperty(secret);
  });

  test('follows redirects to layers elsewhere, and routes those within the registry through itself', async () => {
    const { port, host } = await world(['REG'], registryGateway);
    const location = async (path: string) => (await ask(port, `${path}?ns=${host}`)).headers.location;
    expect(await location(`/v2/app/blobs/${CHILD}`)).toBe('https://store.example/layer');
    expect(await location(`/v2/own/blobs/${CHILD}`)).toBe(`/v2/own/tags/list?x=1&ns=${encodeURIComponent(host)}`);
    expect(await location(`/v2/kept/blobs/${CHILD}`)).toBe(`http://${host}/kept?x=1`);
  });

  test.each(['/v2/', '/v2/app/manifests/1', '/v2/?ns=', '/v2/?ns=a/b', '/v2/?ns=a@b', '/v2/?ns=a%20b'])(
    '%s names no registry',
    async (path) => {
      const { port } = await world(['*'], registryGateway);
      expect(await ask(port, path)).toMatchObject({ status: 400, body: expect.stringContaining('--hosts-dir') });
    },
  );

  test('reports an unreachable registry', async () => {
    const { port, host } = await world(['*'], registryGateway);
    servers.splice(0, 1)[0]?.close();
    expect(await ask(port, `/v2/app/manifests/1?ns=${host}`)).toMatchObject({
      status: 502,
      body: expect.stringContaining(`${host} cannot be reached`),
    });
  });

  test('forgets digests learned under an earlier list', async () => {
    const { port, host, policy } = await world(['REG/app:1'], registryGateway);
    await ask(port, `/v2/app/manifests/1?ns=${host}`);
    policy.set([`${host}/app:1`]);
    expect(await ask(port, `/v2/app/manifests/${CHILD}?ns=${host}`)).toMatchObject({ status: 403 });
  });
});

describe('the proxy for dockerd', () => {
  test('checks plain requests by image', async () => {
    const { port, host, seen } = await world(['REG/app'], outboundProxy);
    expect(await ask(port, `http://${host}/v2/app/manifests/1`)).toMatchObject({ status: 200 });
    expect(await ask(port, `http://${host}/v2/evil/manifests/1`)).toMatchObject({ status: 403 });
    expect(await ask(port, `http://${host}/v2/evil/blobs/${CHILD}`)).toMatchObject({ status: 403 });
    expect(await ask(port, 'http://evil.example/anything')).toMatchObject({ status: 403 });
    expect(seen.map(({ url }) => url)).toEqual(['/v2/app/manifests/1']);
  });

  test.each(['/v2/', 'https://a.b/v2/', 'ftp://a.b/', 'nonsense'])('%s is not a proxy request', async (path) => {
    const { port } = await world(['*'], outboundProxy);
    expect(await ask(port, path)).toMatchObject({ status: 400 });
  });

  test('checks tunnels by host, and gives the reason in the status line', async () => {
    const { port } = await world(['REG/app'], outboundProxy);
    expect(await tunnel(port, 'evil.example:443')).toMatchObject({
      status: 403,
      phrase: expect.stringMatching(/^nothing of evil\.example is among the allowed images/),
    });
    expect(await tunnel(port, 'nonsense')).toMatchObject({ status: 400 });
  });
});

test('survives nonsense and clients that disconnect halfway', async () => {
  const { port: gateway, host } = await world(['*'], registryGateway);
  const { port: proxy, host: beyond } = await world(['REG'], outboundProxy);
  const { port: plugin } = await world(['*'], authzPlugin);
  const known = `Host: x\r\nCookie: ${KNOWN.cookie}\r\nProxy-Authorization: ${LOGIN}\r\n`;
  const nonsense = [
    '\r\n\r\n',
    '\u0000\u0001\u0002',
    `GET /v2/x/blobs/${CHILD}?ns=${host} HTTP/1.1\r\n${known}`,
    `GET /v2/x/manifests/1?ns=${host} HTTP/1.1\r\n${known}\r\n`,
    `POST /v2/x/blobs/uploads/?ns=${host} HTTP/1.1\r\n${known}Content-Length: 100\r\n\r\nabc`,
    `GET http://${beyond}/v2/x/manifests/1 HTTP/1.1\r\n${known}\r\n`,
    `CONNECT ${beyond} HTTP/1.1\r\n${known}\r\nnonsense`,
    `CONNECT 127.0.0.1:1 HTTP/1.1\r\n${known}\r\n`,
    'POST /AuthZPlugin.AuthZReq HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n{"R',
    'POST /AuthZPlugin.AuthZReq HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{',
  ];
  for (const port of [gateway, proxy, plugin]) {
    for (const text of nonsense) {
      const socket = dial({ host: '127.0.0.1', port });
      socket.on('error', () => undefined);
      await once(socket, 'connect');
      await new Promise((sent) => socket.write(text, sent));
      socket.destroy();
    }
  }
  expect(await ask(gateway, `/v2/x/manifests/1?ns=${host}`)).toMatchObject({ status: 200 });
  expect(await ask(proxy, `http://${beyond}/v2/x/manifests/1`)).toMatchObject({ status: 200 });
  const activated = await ask(plugin, '/Plugin.Activate', 'POST');
  expect(JSON.parse(activated.body)).toEqual({ Implements: ['authz'] });
  const unreadable = await ask(plugin, '/AuthZPlugin.AuthZReq', 'POST');
  expect(JSON.parse(unreadable.body)).toMatchObject({ Allow: false });
});

describe('the plugin', () => {
  const askPlugin = (port: number, body: string, path = '/AuthZPlugin.AuthZReq') =>
    new Promise<unknown>((resolve, reject) => {
      const call = request({ host: '127.0.0.1', port, path, method: 'POST', agent: false }, async (response) =>
        resolve(JSON.parse(await text(response))),
      );
      call.on('error', reject);
      call.end(body);
    });
  const pull = JSON.stringify({ RequestMethod: 'POST', RequestUri: '/images/create?fromImage=good&tag=1' });

  test.each([
    '',
    '{',
    'null',
    '[]',
    '{}',
    '"x"',
    '{"RequestMethod":"GET"}',
    '{"RequestMethod":7,"RequestUri":"/_ping"}',
    '{"RequestMethod":"GET","RequestUri":null}',
    pull.slice(0, -1),
    '['.repeat(1_000_000),
    ' '.repeat(9 * 1024 * 1024),
  ])('denies what it cannot parse: %.40j', async (body) => {
    const { port } = await world(['*'], authzPlugin);
    expect(await askPlugin(port, body)).toMatchObject({ Allow: false });
    expect(await askPlugin(port, pull)).toEqual({ Allow: true });
  });

  test('denies unknown paths, and passes responses of any length', async () => {
    const { port } = await world(['*'], authzPlugin);
    expect(await askPlugin(port, pull, '/AuthZPlugin.Other')).toMatchObject({ Allow: false });
    expect(await askPlugin(port, `"${'x'.repeat(20 * 1024 * 1024)}"`, '/AuthZPlugin.AuthZRes')).toEqual({
      Allow: true,
    });
  });

  test('checks a hundred requests at once, each on its own', async () => {
    const { port } = await world(['good', '*/never'], authzPlugin);
    const asked = Array.from({ length: 100 }, (_, index) =>
      askPlugin(port, pull.replace('good', index % 2 ? 'evil' : 'good')),
    );
    const answers = await Promise.all(asked);
    for (const [index, answer] of answers.entries()) expect(answer).toMatchObject({ Allow: index % 2 === 0 });
  });
});

describe('access', () => {
  const WRONG = [
    {},
    { cookie: 'rdctl-gateway=', 'proxy-authorization': 'Basic ' },
    { cookie: `${KNOWN.cookie}x`, 'proxy-authorization': `${LOGIN}x` },
    { cookie: `other=1; ${KNOWN.cookie}`, 'proxy-authorization': `Bearer ${SECRET}` },
  ];

  test.each(WRONG)('is denied to a client with %o', async (headers) => {
    const { port: gateway, host, seen } = await world(['*'], registryGateway);
    const { port: proxy, host: beyond, seen: seenBeyond } = await world(['*', 'REG'], outboundProxy);
    const without = { cookie: '', 'proxy-authorization': '', ...headers };
    expect(await ask(gateway, `/v2/x/manifests/1?ns=${host}`, 'GET', without)).toMatchObject({ status: 403 });
    expect(await ask(proxy, `http://${beyond}/v2/x/manifests/1`, 'GET', without)).toMatchObject({
      status: 407,
      headers: { 'proxy-authenticate': 'Basic realm="rdctl"' },
    });
    const refused = await tunnel(proxy, beyond, without['proxy-authorization']);
    expect(refused).toMatchObject({ status: 407, headers: { 'proxy-authenticate': 'Basic realm="rdctl"' } });
    expect([...seen, ...seenBeyond]).toEqual([]);
  });

  test.each(['*', '*/app', '*:*'])('%s does not let a client through the proxy to this machine', async (pattern) => {
    const { port, host, seen } = await world([pattern], outboundProxy);
    const registryPort = host.split(':')[1];
    for (const name of ['127.0.0.1', 'localhost', '127.1', '0.0.0.0', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]']) {
      expect((await tunnel(port, `${name}:${registryPort}`)).status).not.toBe(200);
      expect((await ask(port, `http://${name}:${registryPort}/v2/app/manifests/1`)).status).not.toBe(200);
    }
    expect((await tunnel(port, '169.254.169.254:80')).status).not.toBe(200);
    expect(seen).toEqual([]);
  });
});

test('a refused tunnel is closed even when the client keeps its end open', async () => {
  const server = outboundProxy({
    policy: pullPolicy(),
    dialer: createRegistryDialer({}),
    onDenied: () => undefined,
    onQuery: () => undefined,
    secret: SECRET,
    authority: AUTHORITY,
  });
  const port = await listening(server);
  for (const request of ['evil.example:443', 'nonsense']) {
    for (const login of [LOGIN, 'none']) {
      const client = dial({ host: '127.0.0.1', port, allowHalfOpen: true });
      const [taken] = await once(server, 'connection');
      client.write(`CONNECT ${request} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: ${login}\r\n\r\n`);
      const [answer] = await once(client, 'data');
      expect(String(answer)).toMatch(/^HTTP\/1\.1 40[037] /);
      if (!taken.destroyed) await once(taken, 'close');
      client.destroy();
    }
  }
});

test('a client that disconnects while the registry is dialed takes the connection with it', async () => {
  for (const serve of [registryGateway, outboundProxy]) {
    const [near, far] = await pair();
    let reached: (socket: Socket) => void = () => undefined;
    const events = new EventEmitter();
    const asked = once(events, 'asked');
    const policy = pullPolicy();
    policy.set(['a.b']);
    const server = serve({
      policy,
      dialer: {
        connect() {
          events.emit('asked');
          return new Promise((resolve) => {
            reached = resolve;
          });
        },
      },
      onDenied: () => undefined,
      onQuery: () => undefined,
      secret: SECRET,
      authority: AUTHORITY,
    });
    const port = await listening(server);
    const path = serve === outboundProxy ? 'http://a.b/v2/x/manifests/1' : '/v2/x/manifests/1?ns=a.b';
    const call = request({ host: '127.0.0.1', port, path, headers: KNOWN, agent: false });
    call.on('error', () => undefined);
    call.end();
    const [[taken]] = await Promise.all([once(server, 'connection'), asked]);
    const gone = once(taken, 'close');
    call.destroy();
    await gone;
    const closed = once(far, 'close');
    reached(near);
    await closed;
  }
});

test.each(['Content-Length: 40\r\n', 'Transfer-Encoding: chunked\r\n'])(
  'a GET cannot smuggle another request in its body (%s)',
  async (framing) => {
    const hidden = 'GET /v2/evil/manifests/1 HTTP/1.1\r\n\r\n  ';
    const body = framing.startsWith('T') ? `28\r\n${hidden}\r\n0\r\n\r\n` : hidden;
    for (const serve of [registryGateway, outboundProxy]) {
      const { port, host, seen } = await world(['REG/app'], serve);
      const path = serve === outboundProxy ? `http://${host}/v2/app/manifests/1` : `/v2/app/manifests/1?ns=${host}`;
      const client = dial({ host: '127.0.0.1', port });
      const known = `Cookie: ${KNOWN.cookie}\r\nProxy-Authorization: ${LOGIN}\r\nConnection: close\r\n`;
      client.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n${known}${framing}\r\n${body}`);
      expect(await text(client)).toMatch(/^HTTP\/1\.1 400 /);
      expect(seen).toEqual([]);
    }
  },
);

test('a chunked body stays chunked for any method', async () => {
  const { port, host, seen } = await world(['REG'], outboundProxy);
  for (const [method, path] of [
    ['POST', '/v2/app/blobs/uploads/'],
    ['DELETE', '/v2/app/manifests/1'],
  ]) {
    const client = dial({ host: '127.0.0.1', port });
    client.write(
      `${method} http://${host}${path} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: ${LOGIN}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
    );
    await text(client);
  }
  expect(seen).toMatchObject([
    { method: 'POST', headers: { 'transfer-encoding': 'chunked' } },
    { method: 'DELETE', headers: { 'transfer-encoding': 'chunked' } },
  ]);
});

describe('requests that are not in canonical form the way clients spell them', () => {
  const PATHS = [
    '/v2/evil/manifests/1/',
    '/v2//evil/manifests/1',
    '/V2/evil/manifests/1',
    '/x/v2/evil/manifests/1',
    '/v1/evil',
  ];

  test.each(PATHS)('%s reaches no registry', async (path) => {
    const { port: gateway, host, seen } = await world(['REG/app'], registryGateway);
    const { port: proxy, host: beyond, seen: seenBeyond } = await world(['REG/app'], outboundProxy);
    expect(await ask(gateway, `${path}?ns=${host}`)).toMatchObject({ status: 403 });
    expect(await ask(proxy, `http://${beyond}${path}`)).toMatchObject({ status: 403 });
    expect([...seen, ...seenBeyond]).toEqual([]);
  });

  test('the gateway passes no write, no other host and no second registry', async () => {
    const { port, host, seen } = await world(['REG', '*'], registryGateway);
    const path = `/v2/app/manifests/1?ns=${host}`;
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
      expect(await ask(port, path, method)).toMatchObject({ status: 400 });
    expect(await ask(port, `/token?ns=${host}`)).toMatchObject({ status: 403 });
    expect(await ask(port, `${path}&ns=evil.example`)).toMatchObject({ status: 400 });
    expect(await ask(port, `/v2/app/manifests/1?ns=127.1:${host.split(':')[1]}`)).toMatchObject({ status: 400 });
    expect(await ask(port, `/v2/app/manifests/1?ns=a.b.`)).toMatchObject({ status: 400 });
    expect(seen).toEqual([]);
  });

  test('the proxy passes no address that normalization would change', async () => {
    const { port, host, seen } = await world(['REG/app', '*'], outboundProxy);
    const path = '/v2/app/manifests/1';
    for (const address of [
      `HTTP://${host}${path}`,
      `http:/${host}${path}`,
      `http:${host}${path}`,
      `http:\\\\${host}${path}`,
      `http://a:b@${host}${path}`,
      `http://a@${host}${path}`,
      `http://${host}.${path}`,
      `http://${host}/x/..${path}`,
      `http://${host}/x/%2e%2e${path}`,
      `http://${host}\\v2/app/manifests/1`,
      `http://${host}${path}#x`,
      `http://127.1:${host.split(':')[1]}${path}`,
      `http://0x7f.1:${host.split(':')[1]}${path}`,
      `http://%31${host.slice(1)}${path}`,
      `http://${host.replace(':', ':0')}${path}`,
    ]) {
      expect(await ask(port, address), address).toMatchObject({ status: 400 });
    }
    expect(seen).toEqual([]);
    expect(await ask(port, `http://${host}${path}?x="'|`)).toMatchObject({ status: 200 });
  });

  test.each([
    'a@reg.example:443',
    'evil.example#.reg.example:443',
    'evil.example/.reg.example:443',
    'x%2ereg.example:443',
    'reg.example.:443',
    'reg.example:0443',
    'reg.example:0',
    'reg.example:65536',
    'reg.example',
    'http://reg.example:443',
    'reg.example:443:443',
    '[::1%25eth0]:443',
  ])('no tunnel leads to %s', async (authority) => {
    const { port } = await world(['reg.example', '*.reg.example', '*'], outboundProxy);
    expect(await tunnel(port, authority)).toMatchObject({ status: 400 });
  });

  test('no client header can change path, method or host on a server', async () => {
    const { port, host, seen } = await world(['REG/app'], registryGateway);
    const tricks = {
      'x-http-method-override': 'DELETE',
      'x-original-url': '/v2/evil/manifests/1',
      'x-rewrite-url': '/v2/evil/manifests/1',
      'x-forwarded-host': 'evil',
      forwarded: 'host=evil',
    };
    await ask(port, `/v2/app/manifests/1?ns=${host}`, 'GET', { ...tricks, accept: 'a/b', range: 'bytes=1-' });
    expect(seen).toHaveLength(1);
    expect(seen[0]?.headers).toMatchObject({ accept: 'a/b' });
    for (const name of [...Object.keys(tricks), 'range']) expect(seen[0]?.headers).not.toHaveProperty(name);
  });
});

/** Both ends of one connection. */
async function pair(): Promise<[Socket, Socket]> {
  const server = createTcpServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const near = dial({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
  const [far] = await once(server, 'connection');
  server.close();
  far.resume();
  return [near, far];
}

test('a tunnel uses the upstream proxy for HTTPS', async () => {
  const asked: string[] = [];
  const company = createServer((_request, response) => response.writeHead(500).end());
  company.on('connect', (incoming, client) => {
    asked.push(incoming.url ?? '');
    client.end('HTTP/1.1 418 No\r\n\r\n');
  });
  const env = { https_proxy: `127.0.0.1:${await listening(company)}` };
  const { port } = await world(['far.example'], outboundProxy, { env });
  expect(await tunnel(port, 'far.example:443')).toMatchObject({
    status: 502,
    phrase: expect.stringMatching(/^the proxy .* refused far\.example:443: 418$/),
  });
  expect(asked).toEqual(['far.example:443']);
});

describe('inside an encrypted connection', () => {
  let folder: string;
  let env: Record<string, string>;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'rd-ca-'));
    const file = join(folder, 'ca.pem');
    writeFileSync(file, REGISTRY_AUTHORITY.certificate);
    env = { SSL_CERT_FILE: file };
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  /** What dockerd does: a tunnel, in which it speaks TLS and trusts the authority of the gateway. */
  async function secureAsk(
    port: number,
    host: string,
    path: string,
    { ca = AUTHORITY.certificate, method = 'GET', headers = {} } = {},
  ): Promise<Answer> {
    const { status, phrase, socket } = await tunnel(port, host);
    if (status !== 200) return { status, phrase, headers: {}, body: '' };
    const [, name = '127.0.0.1'] = /^([a-z.]+):/.exec(host) ?? [];
    const secure = connectTls({ socket, host: name, ca, ...(name === '127.0.0.1' ? {} : { servername: name }) });
    await once(secure, 'secureConnect');
    const call = request({ path, method, headers: { host, ...headers }, createConnection: () => secure });
    call.end();
    const [response] = await once(call, 'response');
    return {
      status: response.statusCode,
      phrase: response.statusMessage,
      headers: response.headers,
      body: await text(response),
    };
  }

  test('every request is checked by the full name of the image', async () => {
    const { port, host, seen, refusals } = await world(['REG/app:1'], outboundProxy, { env, tls: true });
    const of = (reference: string, name = 'app') => secureAsk(port, host, `/v2/${name}/manifests/${reference}`);
    expect(await secureAsk(port, host, '/v2/')).toMatchObject({ status: 200 });
    expect(await of(CHILD)).toMatchObject({ status: 403 });
    expect(await of('1')).toMatchObject({ status: 200, headers: { 'docker-content-digest': LIST } });
    expect(await of(CHILD)).toMatchObject({ status: 200 });
    expect(await of('2')).toMatchObject({ status: 403, phrase: expect.stringContaining('app:2 is not among') });
    expect(await of('1', 'other')).toMatchObject({ status: 403 });
    expect(await secureAsk(port, host, `/v2/other/blobs/${CHILD}`)).toMatchObject({ status: 403 });
    expect(refusals).toHaveLength(4);
    expect(seen.map(({ url }) => url)).toEqual(['/v2/', '/v2/app/manifests/1', `/v2/app/manifests/${CHILD}`]);
  });

  test('requests arrive as the client made them, from the host of the tunnel', async () => {
    const { port, host, seen } = await world(['REG'], outboundProxy, { env, tls: true });
    const headers = { authorization: 'Bearer token', accept: 'a/b', host: 'evil.example', 'x-original-url': '/evil' };
    await secureAsk(port, host, '/v2/app/manifests/1?n=3', { method: 'HEAD', headers });
    expect(seen).toMatchObject([
      {
        method: 'HEAD',
        url: '/v2/app/manifests/1?n=3',
        headers: { authorization: 'Bearer token', accept: 'a/b', host },
      },
    ]);
    expect(seen[0]?.headers).not.toHaveProperty('x-original-url');
  });

  test.each([
    '/x/../v2/app/manifests/1',
    '/v2/app/manifests/%2e%2e/1#x',
    '//v2/other/manifests/1',
    '/V2/other/manifests/1',
  ])('%s reaches no registry', async (path) => {
    const { port, host, seen } = await world(['REG/app'], outboundProxy, { env, tls: true });
    expect([400, 403]).toContain((await secureAsk(port, host, path)).status);
    expect(seen).toEqual([]);
  });

  test('a redirect of an allowed request leads to that URL, and to nothing else of that host', async () => {
    const store = createServer((incoming, response) => response.end(`content of ${incoming.url}`));
    const storePort = await listening(withTls(store));
    const registry = createServer((incoming, response) => {
      const location = `https://127.0.0.1:${storePort}${incoming.url?.replace('/v2/app/', '/v2/elsewhere/app/')}?signed=1`;
      response.writeHead(307, { location }).end();
    });
    const registryPort = await listening(withTls(registry));
    const { port, policy } = await world([], outboundProxy, { env });
    const pattern = `127.0.0.1:${registryPort}/app:1`;
    const at = `127.0.0.1:${storePort}`;
    // The host of the store is this computer, which only a pattern opens.
    policy.set([pattern, `${at}/nothing`]);
    const path = '/v2/elsewhere/app/manifests/1?signed=1';
    expect(await secureAsk(port, at, path)).toMatchObject({ status: 403 });
    const moved = await secureAsk(port, `127.0.0.1:${registryPort}`, '/v2/app/manifests/1');
    expect(moved).toMatchObject({ status: 307, headers: { location: `https://${at}${path}` } });
    expect(await secureAsk(port, at, path)).toMatchObject({ status: 200, body: `content of ${path}` });
    expect(await secureAsk(port, at, path.replace('signed=1', 'signed=2'))).toMatchObject({ status: 403 });
    expect(await secureAsk(port, at, path.replace('manifests/1', 'manifests/2'))).toMatchObject({ status: 403 });
    policy.set([pattern, `${at}/nothing`]);
    expect(await secureAsk(port, at, path)).toMatchObject({ status: 403 });
  });

  test('the certificate of a registry is verified, and a client that trusts only the registry gets none', async () => {
    const { port, host, seen } = await world(['REG'], outboundProxy, { tls: true });
    expect(await secureAsk(port, host, '/v2/')).toMatchObject({
      status: 502,
      phrase: expect.stringMatching(/cannot be reached: .*certificate/),
    });
    const trusted = await world(['REG'], outboundProxy, { env, tls: true });
    const refused = secureAsk(trusted.port, trusted.host, '/v2/', { ca: REGISTRY_AUTHORITY.certificate });
    await expect(refused).rejects.toThrow(/certificate|signature/);
    expect([...seen, ...trusted.seen]).toEqual([]);
  });

  test('a tunnel ends when a new list no longer allows it, and stays open when it does', async () => {
    const { port, host, policy } = await world(['REG/app'], outboundProxy, { env, tls: true });
    const { socket } = await tunnel(port, host);
    const secure = connectTls({ socket, host: '127.0.0.1', ca: AUTHORITY.certificate });
    await once(secure, 'secureConnect');
    const ask = async (path: string) => {
      secure.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
      return String(await once(secure, 'data'));
    };
    expect(await ask('/v2/app/manifests/1')).toContain('200 OK');
    policy.set([`${host}/other`]);
    expect(await ask('/v2/app/manifests/1')).toContain('403 Forbidden');
    const closed = once(socket, 'close');
    policy.set([]);
    await closed;
  });

  test('certificates are of the authority, for one host, and renewed before they end', () => {
    const day = 24 * 3600 * 1000;
    let now = Date.now();
    const certificates = hostCertificates(AUTHORITY, () => now);
    const first = certificates('registry.example');
    expect(certificates('registry.example')).toBe(first);
    expect(certificates('::1')).not.toBe(first);
    now += 14 * day;
    expect(certificates('registry.example')).toBe(first);
    now += 2 * day;
    expect(certificates('registry.example')).not.toBe(first);
    const authority = new X509Certificate(AUTHORITY.certificate);
    expect(authority).toMatchObject({ ca: true, subject: 'CN=rdctl registry gateway' });
    expect(Date.parse(authority.validTo) - Date.now()).toBeGreaterThan(3600 * day);
  });
});

async function tunnel(port: number, path: string, login = LOGIN) {
  const headers = { 'proxy-authorization': login };
  const call = request({ host: '127.0.0.1', port, method: 'CONNECT', path, headers, agent: false });
  call.end();
  const [response, socket] = await once(call, 'connect');
  return { status: response.statusCode, phrase: response.statusMessage, headers: response.headers, socket };
}

async function text(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

describe('the upstream proxy', () => {
  const env = {
    HTTP_PROXY: 'http://plain:1',
    https_proxy: 'secure:2',
    NO_PROXY: 'a.b, .c.d,10.0.0.0/8,e.f:5000,*.g.h',
  };
  test.each([
    ['x.y', 80, false, 'http://plain:1/'],
    ['x.y', 443, true, 'http://secure:2/'],
    ['a.b', 443, true, undefined],
    ['x.a.b', 443, true, undefined],
    ['xa.b', 443, true, 'http://secure:2/'],
    ['x.c.d', 443, true, undefined],
    ['10.1.2.3', 443, true, undefined],
    ['11.1.2.3', 443, true, 'http://secure:2/'],
    ['e.f', 5000, true, undefined],
    ['e.f', 443, true, 'http://secure:2/'],
    ['x.g.h', 443, true, undefined],
    ['localhost', 443, true, undefined],
    ['127.0.0.1', 80, false, undefined],
    ['::1', 80, false, undefined],
  ])('for %s:%i (TLS: %s) is %s', (host, port, tls, expected) => {
    expect(proxyFor(env, { host, port, tls })?.href).toBe(expected);
  });

  test('may be unset, may be bypassed for everything, and must be usable', () => {
    const target = { host: 'x.y', port: 443, tls: true };
    expect(proxyFor({}, target)).toBeUndefined();
    expect(proxyFor({ HTTPS_PROXY: 'http://p', NO_PROXY: '*' }, target)).toBeUndefined();
    expect(() => proxyFor({ HTTPS_PROXY: 'socks5://p' }, target)).toThrow('not the URL of an HTTP proxy');
  });
});
