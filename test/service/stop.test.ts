import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startService } from '../helpers/service.ts';

test('shutdown over the API answers, then everything stops and nothing is left behind', async () => {
  const { client, service, here, converged } = await startService({ power: 'started' });
  await converged();
  expect(await client.shutdown()).toBe('Shutting down.');
  await service.stopped;
  expect(existsSync(here.connectionFile)).toBe(false);
  expect(readdirSync(here.serviceLock)).toEqual([]);
  await expect(client.status()).rejects.toMatchObject({ code: 'ERR_NOT_RUNNING' });
  await service.stop('again');
});

test('a backend that does not stop does not keep the service for ever', async () => {
  const env = { RDCTL_SIMULATED_FAULTS: 'machine.stop:hang' };
  const { service, here, converged } = await startService({ power: 'started', env, stopLimitMs: 20 });
  await converged();
  await service.stop('the test wants it');
  expect(existsSync(here.connectionFile)).toBe(false);
  expect(readFileSync(join(here.logs, 'service.log'), 'utf8')).toContain('the backend did not stop');
});

test('a service that stops takes no more writes', async () => {
  const env = { RDCTL_SIMULATED_LATENCY_MS: '150' };
  const { client, service, here, converged } = await startService({ power: 'started', env });
  await converged();
  const before = readFileSync(here.settingsFile, 'utf8');
  const stopped = service.stop('the test wants it');
  await expect(client.putSettings({ version: 19, images: { namespace: 'late' } })).rejects.toMatchObject({
    code: 'ERR_NOT_READY',
    message: 'the service is shutting down',
  });
  await stopped;
  expect(readFileSync(here.settingsFile, 'utf8')).toBe(before);
});

test('no secret gets into the log', async () => {
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
