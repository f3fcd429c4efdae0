import { readFileSync, rmSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { rounds } from '../helpers/rounds.ts';
import { toolHome } from '../helpers/tool-home.ts';
import { isStandalone } from '../helpers/tool-program.ts';

const SUBSCRIBERS = 100;
/** Milliseconds under load. */
const DURATION = rounds(5_000, 600_000);
/** Writes that fill the held events and have the code compiled; what is in use after them is the reference. */
const WARM_UP = rounds(60, 500);
/** A megabyte for events that are held (docs/events.md), and compiled code. */
const ALLOWANCE = 4 * 1024 * 1024;

test('100 subscribers of events cost the built service no memory over time', async () => {
  const report = join(tmpdir(), `rdctl-heap-${process.pid}`);
  onTestFinished(() => rmSync(report, { force: true }));
  const preload = resolve('test/helpers/heap-report.cjs');
  const { home, rdctl, servicePid } = toolHome({
    ...{ RDCTL_SIMULATED_LATENCY_MS: '0', RDCTL_TEST_HEAP_REPORT: report },
    ...(isStandalone ? { BUN_OPTIONS: `--preload ${preload}` } : { NODE_OPTIONS: `--require ${preload}` }),
  });
  expect((await rdctl('start', '--driver', 'simulated')).exit).toBe(0);
  const pid = servicePid();
  const { port, user, password } = JSON.parse(readFileSync(join(home, 'app-engine.json'), 'utf8'));
  const client = createClient({ host: '127.0.0.1', port, user, password, foreign: false, reached: { by: 'word' } });
  const inUse = async () => {
    rmSync(report, { force: true });
    process.kill(pid, 'SIGUSR2');
    return vi.waitFor(() => Number(readFileSync(report, 'utf8')), { timeout: 30_000 });
  };
  const received = Array.from({ length: SUBSCRIBERS }, () => 0);
  for (const index of received.keys()) {
    const options = {
      host: '127.0.0.1',
      port,
      path: '/v2/events?kinds=all',
      auth: `${user}:${password}`,
      agent: false,
    };
    const request = get(options, (response) => {
      response.on('data', (part: Buffer) => {
        received[index] = (received[index] ?? 0) + part.length;
      });
      response.on('error', () => undefined);
    });
    request.on('error', () => undefined);
    onTestFinished(() => void request.destroy());
  }
  await vi.waitFor(() => expect(received.every((bytes) => bytes > 0)).toBe(true));
  let writes = 0;
  const write = () => client.putSettings({ version: 19, images: { namespace: `round-${writes++}` } });
  while (writes < WARM_UP) await write();
  const reference = await inUse();
  const end = performance.now() + DURATION;
  while (performance.now() < end) await write();
  const after = await inUse();
  expect(after - reference).toBeLessThan(ALLOWANCE);
  expect(Math.min(...received)).toBeGreaterThan(writes * 100);
  expect(servicePid()).toBe(pid);
});
