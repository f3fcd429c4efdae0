import { expect, test } from 'vitest';
import { createMetrics } from '../../src/service/metrics.ts';
import { parsePrometheus } from '../helpers/prometheus-text.ts';
import { start } from '../reconcile/loop.ts';

const ROUTE = { method: 'GET', route: '/v2/status', status: '200' };
const COUNT = 'rdctl_http_request_duration_seconds_count{method="GET",route="/v2/status",status="200"}';

test('records wait for the first scrape, or until there are a thousand of them', async () => {
  const { controllers } = start();
  let read = 0;
  const metrics = createMetrics({
    now: () => 0,
    sources() {
      read += 1;
      return {
        version: '1',
        driver: 'simulated',
        startedAt: new Date(0).toISOString(),
        status: controllers.status,
        streams: () => 0,
      };
    },
  });
  for (let at = 0; at < 999; at++) metrics.request(ROUTE, 2);
  await new Promise((done) => setImmediate(done));
  expect(read).toBe(0);
  metrics.request(ROUTE, 2);
  await expect.poll(() => read).toBe(1);
  metrics.request(ROUTE, 30_000);
  const { samples = {} } = parsePrometheus(await metrics.text()).rdctl_http_request_duration_seconds ?? {};
  expect(samples[COUNT]).toBe(1_001);
  expect(samples[COUNT.replace('_count{', '_bucket{le="0.005",')]).toBe(1_000);
  expect(samples[COUNT.replace('_count', '_sum')]).toBeCloseTo(32);
  expect(read).toBe(1);
});
