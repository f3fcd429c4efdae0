import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { homeService } from '../../src/client/home-service.ts';
import { startService } from '../helpers/service.ts';

test('shutdown through the API answers, then everything stops and nothing is left behind', async () => {
  const { client, service, here, converged } = await startService({ power: 'started' });
  await converged();
  expect(await client.shutdown()).toBe('Shutting down.');
  await service.stopped;
  expect(existsSync(here.connectionFile)).toBe(false);
  expect(readdirSync(here.serviceLock)).toEqual([]);
  await expect(client.status()).rejects.toMatchObject({ code: 'ERR_NOT_RUNNING' });
  await service.stop('again');
});

test('a backend that does not stop delays the service only up to a limit', async () => {
  const env = { RDCTL_SIMULATED_FAULTS: 'machine.stop:hang' };
  const { service, here, converged } = await startService({ power: 'started', env, stopLimitMs: 20 });
  await converged();
  await service.stop('the test wants it');
  expect(existsSync(here.connectionFile)).toBe(false);
  expect(readFileSync(join(here.logs, 'service.log'), 'utf8')).toContain('the backend did not stop');
  expect(await homeService(here)).toEqual({ kind: 'left', driver: 'simulated', pid: process.pid });
});

test('a backend that did not stop is remembered until it has stopped, even across a failed start', async () => {
  const env = { RDCTL_SIMULATED_FAULTS: 'machine.stop:terminal,engine.stop:terminal' };
  const { service, here, home, converged } = await startService({ power: 'started', env });
  await converged();
  await service.stop('the test wants it');
  expect(await homeService(here)).toMatchObject({ kind: 'left' });
  const before = readFileSync(here.settingsFile, 'utf8');
  writeFileSync(here.settingsFile, '{"version":19,"kubernetes":{"port":"no number"}}');
  await expect(startService({ home })).rejects.toThrow('has errors');
  expect(await homeService(here)).toMatchObject({ kind: 'left' });
  writeFileSync(here.settingsFile, before);
  const next = await startService({ home });
  await next.service.stop('the test wants it');
  expect(await homeService(here)).toEqual({ kind: 'none' });
});

test('a factory reset removes nothing while the backend does not stop', async () => {
  const env = { RDCTL_SIMULATED_FAULTS: 'machine.stop:terminal,engine.stop:terminal' };
  const { client, service, here, home, converged } = await startService({ power: 'started', env });
  await converged();
  const before = readdirSync(home).sort();
  await client.request({ method: 'PUT', path: '/v1/factory_reset' });
  await service.stopped;
  expect(service.resetSummary()).toEqual({
    removed: [],
    kept: [],
    failed: [{ path: here.data, reason: 'the backend did not stop; nothing was removed' }],
  });
  expect(existsSync(here.settingsFile)).toBe(true);
  expect(readdirSync(home).sort()).toEqual(before.filter((name) => name !== basename(here.connectionFile)));
});

test('a stopping service accepts no more writes', async () => {
  const env = { RDCTL_SIMULATED_LATENCY_MS: '500' };
  const { client, service, here, converged } = await startService({ power: 'started', env });
  await converged();
  const before = readFileSync(here.settingsFile, 'utf8');
  const stopped = service.stop('the test wants it');
  await expect(client.putSettings({ version: 19, images: { namespace: 'late' } })).rejects.toMatchObject({
    code: 'ERR_NOT_READY',
    details: [expect.stringContaining('the service is shutting down')],
  });
  await stopped;
  expect(readFileSync(here.settingsFile, 'utf8')).toBe(before);
});

test('the log contains no secret', async () => {
  const { client, service, here } = await startService({
    power: 'stopped',
    settings: { application: { debug: true } },
  });
  const secrets = [
    'hunter-two-word',
    service.connection.password,
    Buffer.from(`user:${service.connection.password}`).toString('base64'),
  ];
  const proxy = { experimental: { virtualMachine: { proxy: { password: 'hunter-two-word' } } } };
  await client.request({ method: 'PUT', path: '/v1/settings', body: JSON.stringify({ version: 19, ...proxy }) });
  await client.request({ method: 'PUT', path: '/v1/settings', body: '{"password":"hunter-two-word", oops' });
  await client.request({
    method: 'POST',
    path: '/v2/plan',
    body: JSON.stringify({ settings: proxy, state: 'started', prune: [] }),
  });
  await client.request({ method: 'GET', path: '/v1/nothing', headers: { Authorization: 'Basic hunter-two-word' } });
  await client.putSettings({ version: 19, images: { namespace: 'seen' } });
  await service.stop('enough');
  const log = readdirSync(here.logs)
    .map((name) => readFileSync(join(here.logs, name), 'utf8'))
    .join('\n');
  expect(log).toContain('"paths":["images.namespace"]');
  expect(log).toContain('request refused');
  for (const secret of secrets) expect(log).not.toContain(secret);
});
