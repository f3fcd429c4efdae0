import fastify from 'fastify';
import { expect, test } from 'vitest';
import type { OpenApiDocument } from '../../src/api/openapi.ts';
import { collectRoutes, withDoc } from '../../src/api/route-doc.ts';
import { isObject } from '../../src/json.ts';
import { startApi } from '../helpers/api.ts';
import { agreementWith } from './agreement.ts';

async function described(): Promise<OpenApiDocument> {
  const reply = await startApi().client.request({ method: 'GET', path: '/v2/openapi.json' });
  return JSON.parse(reply.body.toString());
}

const operations = (document: OpenApiDocument) =>
  Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  );

test('a route without a description cannot be registered', () => {
  const app = fastify();
  const routes = collectRoutes(app);
  expect(() => app.get('/v1/secret', () => 'x')).toThrow('the route GET /v1/secret is not documented');
  app.get(
    '/v1/open',
    withDoc({ scope: 'read', summary: 'Open', replies: { 200: { description: 'always', body: 'text' } } }),
    () => 'x',
  );
  expect(routes).toMatchObject([{ method: 'GET', path: '/v1/open' }]);
});

test('every listed endpoint is described, and others are older, ours or marked', async () => {
  const document = await described();
  const listed = JSON.parse((await startApi().client.request({ method: 'GET', path: '/' })).body.toString());
  const named = operations(document).map(({ method, path }) => `${method.toUpperCase()} ${path}`);
  expect(named).toEqual(expect.arrayContaining(listed));
  const others = named.filter((line) => !listed.includes(line));
  expect(others.filter((line) => !/^\w+ \/v[02]\//.test(line))).toEqual([]);
});

test('the document has the structure of OpenAPI 3.1', async () => {
  const document = await described();
  expect(document).toMatchObject({
    openapi: '3.1.0',
    info: { title: expect.any(String), version: expect.any(String) },
  });
  for (const path of Object.keys(document.paths)) expect(path).toMatch(/^\//);
  for (const { method, path, operation } of operations(document)) {
    const name = `${method} ${path}`;
    expect(['get', 'put', 'post', 'delete'], name).toContain(method);
    expect(Object.keys(operation.responses).length, name).toBeGreaterThan(0);
    expect(operation.summary, name).toMatch(/^[A-Z`].*[^.]$/);
    for (const [status, response] of Object.entries(operation.responses)) {
      expect(status, name).toMatch(/^[1-5]\d\d$/);
      expect(response.description, `${name} ${status}`).not.toBe('');
      for (const [type, media] of Object.entries(response.content ?? {})) {
        expect(type, name).toMatch(/^[a-z]+\/[a-z]+/);
        expect(isObject(media.schema), name).toBe(true);
      }
    }
    const parameters = (operation.parameters ?? []).map((parameter) => `${parameter.in} ${parameter.name}`);
    expect(new Set(parameters).size, name).toBe(parameters.length);
  }
  const ids = operations(document).map(({ operation }) => operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
  const tags = new Set(document.tags.map((tag) => tag.name));
  for (const { operation } of operations(document)) for (const tag of operation.tags) expect(tags).toContain(tag);
});

test('every reference resolves', async () => {
  const document = await described();
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, target = '']) => target);
  expect(references.length).toBeGreaterThan(5);
  for (const target of new Set(references)) {
    expect(target).toMatch(/^#\//);
    const found = target
      .slice(2)
      .split('/')
      .reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), document);
    expect(found, target).toBeDefined();
  }
});

test('examples match their schemas', async () => {
  const document = await described();
  const { reply: agrees } = agreementWith(document);
  for (const { method, path, operation } of operations(document)) {
    for (const [status, { content = {} }] of Object.entries(operation.responses)) {
      for (const [type, { example }] of Object.entries(content)) {
        if (example === undefined) continue;
        const body = typeof example === 'string' ? example : JSON.stringify(example);
        const reply = { status: Number(status), reason: '', headers: { 'content-type': type }, body };
        expect(agrees(method.toUpperCase(), path, reply), `${method} ${path} ${status}`).toEqual([]);
      }
    }
  }
});

test('a response that differs from its description is detected', async () => {
  const { reply: agrees } = agreementWith(await described());
  const json = { 'content-type': 'application/json; charset=utf-8' };
  const text = { 'content-type': 'text/plain; charset=utf-8' };
  const state = (status: number, headers: Record<string, string>, body: string) =>
    agrees('GET', '/V1/backend_state/?x', { status, reason: '', headers, body });
  expect(state(200, json, '{"vmState":"STARTED","locked":false}')).toEqual([]);
  expect(state(201, json, '{"vmState":"STARTED","locked":false}')).toEqual(['status 201 is not described']);
  expect(state(200, text, '{"vmState":"STARTED","locked":false}')).toHaveLength(1);
  expect(state(200, json, '{"vmState":"PAUSED","locked":false}')).toHaveLength(1);
  expect(state(200, json, '{"vmState":"STARTED"}')).toHaveLength(1);
  expect(state(200, json, '{')).toHaveLength(1);
  expect(
    agrees('GET', '/v1/settings', { status: 200, reason: '', headers: text, body: '{"version":19}' }),
  ).toHaveLength(1);
  expect(agrees('GET', '/v1/unheard', { status: 200, reason: '', headers: text, body: '' })).toHaveLength(1);
});

test('requests that the service refuses do not match the description', async () => {
  const { request } = agreementWith(await described());
  const put = (target: string, body: object) => request('PUT', target, JSON.stringify(body)).length > 0;
  expect(put('/v1/settings', { version: 19, diagnostics: { mutedChecks: { A: null } } })).toBe(false);
  expect(put('/v1/settings', { version: 4, kubernetes: { containerEngine: 'docker' } })).toBe(false);
  expect(put('/v1/settings', { images: { showAll: false } })).toBe(true);
  expect(put('/v1/settings', { version: 20 })).toBe(true);
  expect(put('/v1/settings', { version: 19, kubernetes: { port: 0 } })).toBe(true);
  expect(put('/v1/settings', { version: 19, containerEngine: { name: 'podman' } })).toBe(true);
  expect(put('/v1/propose_settings', { kubernetes: { port: 0 } })).toBe(true);
  expect(put('/v1/transient_settings', { preferences: { navItem: { current: 'Images' } } })).toBe(true);
  expect(request('PUT', '/v1/settings', '')).toEqual(['no body, where one is required']);
});

test('the examples of listings are the listings', async () => {
  const document = await described();
  for (const path of ['/', '/v0', '/v1']) {
    const { body } = await startApi().client.request({ method: 'GET', path });
    const [media] = Object.values(document.paths[path]?.get?.responses[200]?.content ?? {});
    expect(media?.example, path).toEqual(JSON.parse(body.toString()));
  }
});
