import { existsSync, readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { startApi } from '../helpers/api.ts';
import { startService } from '../helpers/service.ts';

async function put(body?: string) {
  const { client, stops } = startApi();
  const path = '/v1/factory_reset';
  const {
    status,
    headers,
    body: answer,
  } = await client.request({ method: 'PUT', path, ...(body === undefined ? {} : { body }) });
  return { status, type: headers['content-type'], text: answer.toString(), stops };
}

test.each([
  [undefined, 'factory reset, downloads too'],
  ['{}', 'factory reset, downloads too'],
  ['{"keepSystemImages":false}', 'factory reset, downloads too'],
  ['{"keepSystemImages":true}', 'factory reset, without downloads'],
])('%s: answers first, then acts', async (body, done) => {
  expect(await put(body)).toEqual({
    status: 202,
    type: 'text/plain; charset=utf-8',
    text: 'Doing a full factory reset....',
    stops: [done],
  });
});

test.each([
  ['{"keepSystemImages":"true"}', '"keepSystemImages" must be true or false, not "true"'],
  ['{"keepSystemImages":null}', '"keepSystemImages" must be true or false, not null'],
  ['{"keepSystemImage":true}', 'unknown field "keepSystemImage"'],
  ['null', 'error processing JSON request block'],
  ['[]', 'error processing JSON request block'],
  ['{', 'error processing JSON request block'],
])('%s is refused and nothing happens', async (body, text) => {
  expect(await put(body)).toMatchObject({ status: 400, text: expect.stringContaining(text), stops: [] });
});

test('a factory reset stops the backend, removes the files and ends the service', async () => {
  const { client, service, converged, home, here } = await startService({ power: 'started' });
  await converged();
  expect(existsSync(here.settingsFile)).toBe(true);
  const { status } = await client.request({ method: 'PUT', path: '/v1/factory_reset' });
  expect(status).toBe(202);
  await service.stopped;
  expect(readdirSync(home)).toEqual([]);
  const summary = service.resetSummary();
  expect(summary?.failed).toEqual([]);
  expect(summary?.removed).toContain(here.state);
  await expect(client.status()).rejects.toMatchObject({ code: 'ERR_NOT_RUNNING' });
});

test('a plain shutdown removes nothing', async () => {
  const { service, here } = await startService();
  await service.stop('the test asked for it');
  expect(service.resetSummary()).toBeUndefined();
  expect(existsSync(here.settingsFile)).toBe(true);
});
