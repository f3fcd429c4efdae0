import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { expect, test } from 'vitest';
import { parsePrometheus } from '../helpers/prometheus-text.ts';
import { startService, type TestService } from '../helpers/service.ts';

async function scraped({ client }: Pick<TestService, 'client'>) {
  const reply = await client.request({ method: 'GET', path: '/v2/metrics' });
  expect(reply.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
  const metrics = parsePrometheus(reply.body.toString());
  const samples = Object.assign({}, ...Object.values(metrics).map((metric) => metric.samples));
  return { metrics, value: (sample: string): number | undefined => samples[sample] };
}

test('what happened before the first scrape is counted, and counts go on', async () => {
  const service = await startService({ power: 'started' });
  await service.converged();
  await service.client.putSettings({ version: 19, images: { namespace: 'web' } });
  const first = await scraped(service);
  expect(first.value('rdctl_generations_total{how="start"}')).toBe(1);
  expect(first.value('rdctl_generations_total{how="set"}')).toBe(1);
  expect(first.value('rdctl_generations_total{how="power"}')).toBe(0);
  expect(first.value('rdctl_steps_total')).toBe(3);
  expect(first.value('rdctl_build_info{version="0.1.0",driver="simulated"}')).toBe(1);
  expect(first.value('rdctl_convergence_seconds_count{cause="start",result="converged"}')).toBe(1);

  await service.client.putSettings({ version: 19, containerEngine: { name: 'containerd' } });
  await service.converged();
  await service.client.setBackendState('STOPPED');
  const { generation } = await service.converged();
  const { value } = await scraped(service);
  expect(value('rdctl_generations_total{how="set"}')).toBe(2);
  expect(value('rdctl_generations_total{how="power"}')).toBe(1);
  expect(value('rdctl_restarts_total')).toBe(1);
  expect(value('rdctl_drift_total')).toBe(0);
  expect(value('rdctl_generation')).toBe(generation);
  expect(value('rdctl_converged')).toBe(1);
  expect(value('rdctl_backend_state{state="STOPPED"}')).toBe(1);
  expect(value('rdctl_backend_state{state="STARTED"}')).toBe(0);
  expect(value('rdctl_convergence_seconds_count{cause="change",result="converged"}')).toBe(3);
  expect(value('rdctl_http_request_duration_seconds_count{method="PUT",route="/v1/settings",status="202"}')).toBe(2);
  expect(value('process_resident_memory_bytes')).toBeGreaterThan(1e6);
});

test('two services in one process count for themselves', async () => {
  const [one, other] = [await startService(), await startService()];
  await one.client.putSettings({ version: 19, images: { namespace: 'web' } });
  expect((await scraped(one)).value('rdctl_generations_total{how="set"}')).toBe(1);
  expect((await scraped(other)).value('rdctl_generations_total{how="set"}')).toBe(0);
});

test('what clients send becomes no label, and an event stream is no slow request', async () => {
  const service = await startService();
  const { host, port } = service.client.connection;
  const ask = (path: string, headers = {}) =>
    new Promise<number>((done) => {
      const request = get({ host, port, path, headers, agent: false }, (reply) => {
        reply.resume().once('close', () => done(reply.statusCode ?? 0));
        reply.once('data', () => reply.destroy());
      });
      request.end();
    });
  await scraped(service);
  for (const path of ['/v2/x"y', '/a%0ab', '/v9/settings?x=1', '/v2/metrics']) await ask(path);
  const { user, password } = service.client.connection;
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  expect(await ask('/v2/events', { authorization })).toBe(200);
  const { metrics, value } = await scraped(service);
  const counted = Object.keys(metrics.rdctl_http_request_duration_seconds?.samples ?? {}).filter((name) =>
    name.includes('_count'),
  );
  expect(counted.map((name) => name.replace(/^[^{]*/, '')).sort()).toEqual([
    '{method="GET",route="/v2/metrics",status="200"}',
    '{method="GET",route="/v2/metrics",status="401"}',
    '{method="other",route="other",status="401"}',
  ]);
  expect(value('rdctl_http_request_duration_seconds_count{method="other",route="other",status="401"}')).toBe(3);
});

test('docs/metrics.md lists every metric with its type, and no other', async () => {
  const { metrics } = await scraped(await startService());
  const rows = [...readFileSync('docs/metrics.md', 'utf8').matchAll(/^\| `([a-z_]+)` \| (\w+) \|/gm)];
  expect(rows.map(([, name, type]) => `${name} ${type}`).sort()).toEqual(
    Object.entries(metrics)
      .map(([name, { type }]) => `${name} ${type}`)
      .sort(),
  );
});
