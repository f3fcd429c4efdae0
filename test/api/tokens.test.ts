import { type IncomingMessage, ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import type { OpenApiDocument } from '../../src/api/openapi.ts';
import { createTokenReplies } from '../../src/api/token-guard.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import type { TokenCheck, TokenScope } from '../../src/state/tokens.ts';
import { PASSWORD, startApi, type TestApi } from '../helpers/api.ts';

/** Every route with the least scope of a token that may call it. `closed`: none may; `open`: no credentials are needed. */
const ROUTES: Readonly<Record<string, TokenScope | 'closed' | 'open'>> = {
  'GET /': 'read',
  'GET /v0': 'read',
  'GET /v1': 'read',
  'GET /v1/about': 'read',
  'GET /v0/settings': 'read',
  'PUT /v0/settings': 'write',
  'GET /v1/settings': 'read',
  'PUT /v1/settings': 'write',
  'GET /v1/settings/locked': 'read',
  'PUT /v1/propose_settings': 'plan',
  'GET /v1/backend_state': 'read',
  'PUT /v1/backend_state': 'write',
  'PUT /v0/shutdown': 'write',
  'PUT /v1/shutdown': 'write',
  'PUT /v1/factory_reset': 'closed',
  'POST /v1/port_forwarding': 'write',
  'DELETE /v1/port_forwarding': 'write',
  'GET /v2/port_forwards': 'read',
  'POST /v2/port_forwards': 'write',
  'GET /v1/transient_settings': 'read',
  'PUT /v1/transient_settings': 'write',
  'GET /v1/diagnostic_categories': 'read',
  'GET /v1/diagnostic_ids': 'read',
  'GET /v1/diagnostic_checks': 'read',
  'POST /v1/diagnostic_checks': 'plan',
  'GET /v1/snapshots': 'read',
  'POST /v1/snapshots': 'write',
  'DELETE /v1/snapshots': 'write',
  'POST /v1/snapshot/restore': 'write',
  'POST /v1/snapshots/cancel': 'write',
  'PUT /v1/k8s_reset': 'write',
  'GET /v1/extensions': 'read',
  'POST /v1/extensions/install': 'write',
  'POST /v1/extensions/uninstall': 'write',
  'GET /v2/kept': 'read',
  'DELETE /v2/kept': 'write',
  'GET /v2/status': 'read',
  'GET /v2/events': 'read',
  'GET /v2/metrics': 'read',
  'GET /v2/history': 'read',
  'GET /v2/proof': 'open',
  'GET /v2/settings/layers': 'read',
  'GET /v2/openapi.json': 'read',
  'POST /v2/plan': 'plan',
  'POST /v2/apply': 'write',
};
/** Endpoints of which `/v0` only says where they are now. */
const MOVED = /^[A-Z]+ \/v0\/(?!settings$|shutdown$)./;

const SECRET = 'a-secret-of-the-test';
const SCOPES = ['read', 'plan', 'write'] as const;

const CHECKS: Readonly<Record<string, TokenCheck>> = {
  ...Object.fromEntries(SCOPES.map((scope) => [scope, { kind: 'valid', name: `a-${scope}`, scope }])),
  expired: { kind: 'expired', name: 'old', expiresAt: '2026-01-01T00:00:00.000Z' },
  revoked: { kind: 'unknown', name: 'gone' },
  unreadable: { kind: 'unreadable', name: 'odd' },
};

/** A service with a secret, in which a token says what is known of it: `rdctl_revoked`. */
function withTokens(): TestApi {
  const settings = defaultSettings({ platform: 'win32', arch: 'x64' });
  settings.experimental.virtualMachine.proxy.password = SECRET;
  return startApi({
    settings,
    platform: 'win32',
    checkToken: async (token) => CHECKS[token.slice('rdctl_'.length)] ?? { kind: 'malformed' },
  });
}

interface Sent {
  status: number;
  headers: Record<string, unknown>;
  text: string;
}

/** `credentials`: a token, `full` or `none`. Only the head of an event stream is read. */
async function send({ app }: TestApi, route: string, credentials: string, body?: unknown): Promise<Sent> {
  const [method = '', url = ''] = route.split(' ');
  const authorization =
    credentials === 'full'
      ? `Basic ${Buffer.from(`user:${PASSWORD}`).toString('base64')}`
      : `Bearer rdctl_${credentials}`;
  const response = await app.inject({
    method: method as 'GET',
    url,
    headers: { host: '127.0.0.1', ...(credentials === 'none' ? {} : { authorization }) },
    ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
    payloadAsStream: true,
  });
  const stream = response.stream();
  const parts: Buffer[] = [];
  if (url === '/v2/events') stream.destroy();
  else for await (const part of stream) parts.push(part);
  return { status: response.statusCode, headers: response.headers, text: Buffer.concat(parts).toString() };
}

async function documentOf(api: TestApi): Promise<OpenApiDocument> {
  return JSON.parse((await send(api, 'GET /v2/openapi.json', 'full')).text);
}

function scopeOf(route: string): TokenScope | 'closed' | 'open' | undefined {
  return MOVED.test(route) ? 'read' : ROUTES[route];
}

test('every route is open to the tokens of its scope, and to no others', async () => {
  const api = withTokens();
  const { paths } = await documentOf(api);
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(Object.keys(ROUTES).filter((route) => !routes.includes(route))).toEqual([]);
  expect(routes.length).toBeGreaterThan(50);
  const answers: string[] = [];
  const expected: string[] = [];
  for (const route of routes) {
    const scope = scopeOf(route);
    const [method = '', path = ''] = route.split(' ');
    expect(paths[path]?.[method.toLowerCase()]?.security, route).toEqual(securityOf(scope));
    for (const who of ['none', 'full', 'malformed', ...Object.keys(CHECKS)]) {
      const { status } = await send(api, route, who);
      const refused = status === 401 || status === 403 ? status : 'accepted';
      answers.push(`${route} for ${who}: ${refused}`);
      expected.push(`${route} for ${who}: ${expectedFor(scope, who)}`);
    }
  }
  expect(answers).toEqual(expected);
});

function expectedFor(scope: ReturnType<typeof scopeOf>, who: string): number | 'accepted' {
  if (scope === 'open' || who === 'full') return 'accepted';
  const scopes: readonly (string | undefined)[] = SCOPES;
  if (!scopes.includes(who)) return 401;
  return scopes.includes(scope) && scopes.indexOf(who) >= scopes.indexOf(scope) ? 'accepted' : 403;
}

function securityOf(scope: ReturnType<typeof scopeOf>): unknown {
  if (scope === 'open') return [];
  return scope === 'closed' ? undefined : [{ basic: [] }, { token: [scope] }];
}

test('a refusal says why, in the words of RFC 6750, and changes nothing', async () => {
  const api = withTokens();
  const put = await send(api, 'PUT /v1/settings', 'read', { version: 19, images: { namespace: 'x' } });
  expect(put).toMatchObject({
    status: 403,
    headers: { 'www-authenticate': 'Bearer realm="rdctl", error="insufficient_scope", scope="write"' },
  });
  expect(put.text).toBe(
    'PUT /v1/settings requires the scope write; the token "a-read" has read\n' +
      'Create a token with that scope: rdctl token create --scope write --name NAME',
  );
  expect(api.script.desired).toEqual([]);
  const expired = await send(api, 'GET /v2/status', 'expired');
  expect(JSON.parse(expired.text)).toMatchObject({
    code: 'ERR_UNAUTHORIZED',
    message: 'Unauthorized: the token "old" expired at 2026-01-01T00:00:00.000Z',
  });
  expect(expired.headers['www-authenticate']).toBe('Bearer realm="rdctl", error="invalid_token"');
  const closed = await send(api, 'PUT /v1/factory_reset', 'write');
  expect(closed.text).toMatch(/^PUT \/v1\/factory_reset is not open to tokens/);
  expect(api.stops).toEqual([]);
  expect((await send(api, 'GET /v1/nothing', 'read')).status).toBe(404);
  expect((await send(api, 'GET /v1/nothing', 'revoked')).status).toBe(401);
});

test('without a token, a refusal is that of the compatible interface', async () => {
  const api = withTokens();
  const { status, text, headers } = await send(api, 'GET /v1/settings', 'none');
  expect([status, text]).toEqual([401, 'Unauthorized']);
  expect(headers['www-authenticate']).toBe('Basic realm="rdctl", charset="UTF-8"');
});

test('a token is also the password of the user "token"', async () => {
  const { app } = withTokens();
  const basic = (user: string, password: string) =>
    app.inject({
      url: '/v1/backend_state',
      headers: { host: '127.0.0.1', authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` },
    });
  expect((await basic('token', 'rdctl_read')).statusCode).toBe(200);
  expect((await basic('token', 'rdctl_revoked')).statusCode).toBe(401);
  expect((await basic('user', 'rdctl_read')).statusCode).toBe(401);
  expect((await basic('token', PASSWORD)).statusCode).toBe(401);
});

test('a page in a browser cannot use a token either', async () => {
  const { app } = withTokens();
  const headers = { host: '127.0.0.1', authorization: 'Bearer rdctl_read', origin: 'http://example.com' };
  expect((await app.inject({ url: '/v1/settings', headers })).statusCode).toBe(403);
});

test('refused tokens are logged with their name, without what was presented, and not for each request', async () => {
  const api = withTokens();
  for (let round = 0; round < 20; round += 1) await send(api, 'GET /v1/settings', 'revoked');
  for (let round = 0; round < 20; round += 1) await send(api, 'PUT /v1/settings', 'read');
  await send(api, 'GET /v1/settings', SECRET);
  await api.refusalClock.pass(60_000);
  const warnings = api.logged.filter(({ level }) => level === 'warn');
  const line = (message: string, values: object) => ({
    level: 'warn',
    message: `a token was refused${message}`,
    values: { path: '/v1/settings', ...values },
  });
  const revoked = { method: 'GET', reason: 'unknown', token: 'gone' };
  const weak = { method: 'PUT', reason: 'scope', token: 'a-read' };
  expect(warnings).toEqual([
    ...Array.from({ length: 5 }, () => line('', revoked)),
    ...Array.from({ length: 5 }, () => line('', weak)),
    line('', { method: 'GET', reason: 'malformed' }),
    line(' … more', { ...revoked, more: 15 }),
    line(' … more', { ...weak, more: 15 }),
  ]);
  expect(JSON.stringify(api.logged)).not.toContain(SECRET);
});

test.each(SCOPES)('with the scope %s, no reply contains a secret or anything derived from it', async (scope) => {
  const api = withTokens();
  const { paths } = await documentOf(api);
  const reads = Object.keys(paths).filter((path) => paths[path]?.get && path !== '/v2/events');
  expect((await send(api, 'GET /v1/settings', 'full')).text).toContain(SECRET);
  const replies = await Promise.all(reads.map((path) => send(api, `GET ${path}`, scope)));
  for (const { text } of replies) expect(text).not.toContain(SECRET);
  const other = withTokens();
  const tags = [await send(api, 'GET /v1/settings', scope), await send(other, 'GET /v1/settings', scope)];
  // Equal settings: a tag that could be computed from them would be a way to test guesses.
  expect(tags[0]?.headers.etag).not.toBe(tags[1]?.headers.etag);
  if (scope === 'read') return;
  const request = { settings: { version: 19 }, state: 'unmanaged', prune: [] };
  const planned = await send(api, 'POST /v2/plan?live=true', scope, request);
  expect(JSON.parse(planned.text).live.settings.experimental.virtualMachine.proxy).toMatchObject({ enabled: false });
  expect(planned.text).not.toContain(SECRET);
});

test('settings that a token has read can be written back, and keep the secret', async () => {
  const api = withTokens();
  const { text, headers } = await send(api, 'GET /v1/settings', 'write');
  expect(JSON.parse(text).experimental.virtualMachine.proxy).not.toHaveProperty('password');
  const answer = await send(api, 'PUT /v1/settings', 'write', JSON.parse(text));
  expect([answer.status, answer.text, answer.headers.etag]).toEqual([202, 'no changes necessary', headers.etag]);
});

/** A reply without a connection. */
function reply(): ServerResponse {
  return new ServerResponse({ method: 'GET', httpVersionMajor: 1, httpVersionMinor: 1 } as IncomingMessage);
}

test('streams of a token end once it is no longer valid; a result that is still being computed does not', async () => {
  let valid = true;
  const replies = createTokenReplies(1_000_000);
  const [stream, pending, other] = [reply(), reply(), reply()];
  const holder = { name: 'a', isValid: async () => valid };
  replies.add(holder, stream);
  replies.add(holder, pending);
  replies.add({ name: 'b', isValid: async () => true }, other);
  stream.writeHead(200).write('x');
  other.writeHead(200).write('x');
  await replies.check();
  expect(stream.writableEnded).toBe(false);
  valid = false;
  await replies.check();
  expect([stream, pending, other].map(({ writableEnded }) => writableEnded)).toEqual([true, false, false]);
  stream.write('late');
  expect(stream.destroyed).toBe(false);
  // Its reader takes nothing.
  await replies.check();
  expect([stream, pending, other].map(({ destroyed }) => destroyed)).toEqual([true, false, false]);
});
