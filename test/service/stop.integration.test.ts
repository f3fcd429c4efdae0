import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect, type NetConnectOpts } from 'node:net';
import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { homeService, SERVICE_STOP_MS } from '../../src/client/home-service.ts';
import { lockHome } from '../../src/state/home-lock.ts';
import { places } from '../../src/state/places.ts';
import { startService, type TestService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

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

const SLOW = { RDCTL_SIMULATED_LATENCY_MS: '300' };

/** `refused`, or `accepted`. */
function knock(where: NetConnectOpts): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(where);
    socket.once('connect', () => resolve('accepted')).once('error', () => resolve('refused'));
    onTestFinished(() => void socket.destroy());
  });
}

describe.each([
  ['PUT /v1/shutdown', ({ client }: TestService) => client.shutdown()],
  ['PUT /v1/factory_reset', ({ client }: TestService) => client.request({ method: 'PUT', path: '/v1/factory_reset' })],
  // What follows a signal.
  [
    'SIGTERM',
    async ({ service, here }: TestService) => {
      void service.stop('SIGTERM');
      await expect.poll(() => existsSync(here.connectionFile)).toBe(false);
    },
  ],
])('%s', (_, ask) => {
  test('once it is answered, nothing listens or leads there, though the backend has yet to stop', async () => {
    const running = await startService({ power: 'started', env: SLOW });
    await running.converged();
    const { service, here } = running;
    const { reached } = service.connection;
    const path = reached.by === 'socket' ? reached.path : '';
    expect(await knock({ path })).toBe('accepted');
    let isOver = false;
    void service.stopped.then(() => {
      isOver = true;
    });
    await ask(running);
    expect(await knock({ port: service.port, host: '127.0.0.1' })).toBe('refused');
    expect(await knock({ path })).toBe('refused');
    expect([path, here.connectionFile].filter((each) => existsSync(each))).toEqual([]);
    expect(await homeService(here)).toMatchObject({ kind: 'passing', holder: { ending: true } });
    expect(isOver).toBe(false);
    await service.stopped;
  });
});

test('a request under way when the service began to stop is answered, and writes nothing', async () => {
  const { service, here, converged } = await startService({ power: 'started', env: SLOW });
  await converged();
  const before = readFileSync(here.settingsFile, 'utf8');
  const { user, password } = service.connection;
  const put = request({
    method: 'PUT',
    port: service.port,
    host: '127.0.0.1',
    path: '/v1/settings',
    auth: `${user}:${password}`,
    headers: { Expect: '100-continue', 'Content-Type': 'application/json' },
  });
  put.flushHeaders();
  await once(put, 'continue');
  const stopped = service.stop('the test wants it');
  put.end('{"version":19,"images":{"namespace":"late"}}');
  const [reply] = await once(put, 'response');
  expect(reply.statusCode).toBe(503);
  expect(await text(reply)).toContain('the service is shutting down');
  await stopped;
  expect(readFileSync(here.settingsFile, 'utf8')).toBe(before);
});

describe('a service started while the last one is ending', () => {
  test('waits for it, says so, and has the settings it was started with', async () => {
    const first = await startService({ power: 'started', env: SLOW });
    await first.converged();
    let isOver = false;
    void first.service.stopped.then(() => {
      isOver = true;
    });
    await first.client.shutdown();
    const said: string[] = [];
    const next = await startService({
      home: first.home,
      settings: { version: 19, images: { namespace: 'n1' } },
      say: (line) => void said.push(line),
    });
    expect(isOver).toBe(true);
    expect(said).toEqual([`The last service (pid ${process.pid}) is ending; waiting for it to exit.`]);
    expect((await next.client.settings()).settings).toMatchObject({ images: { namespace: 'n1' } });
  });

  test('takes over what that one could not stop', async () => {
    const env = { RDCTL_SIMULATED_FAULTS: 'machine.stop:hang' };
    const first = await startService({ power: 'started', env, stopLimitMs: 300 });
    await first.converged();
    await first.client.shutdown();
    const next = await startService({ home: first.home });
    expect(first.service.backendStopped()).toBe(false);
    expect((await next.converged()).backendState).toMatch(/STARTED|DISABLED/);
  });

  test('does not wait for one that was killed meanwhile', async () => {
    const home = temporaryDirectory();
    const here = places({ RDCTL_HOME: home }, 'linux', '');
    mkdirSync(here.serviceLock, { recursive: true });
    // No process has such a pid.
    const entry = { pid: 2 ** 30, started: 'x', since: new Date().toISOString(), held: true, ending: true };
    writeFileSync(join(here.serviceLock, 'x.json'), JSON.stringify(entry));
    const said: string[] = [];
    await startService({ home, say: (line) => void said.push(line) });
    expect(said).toEqual([]);
  });

  test('gives up on one that hangs, and on request', async () => {
    const home = temporaryDirectory();
    const here = places({ RDCTL_HOME: home }, 'linux', '');
    const lock = await lockHome(here.serviceLock, here.data);
    onTestFinished(() => lock.release());
    await lock.update({ ending: true });
    let now = 0;
    const clock = {
      now: () => now,
      sleep: async (ms: number) => {
        now += 100 * ms;
      },
    };
    await expect(startService({ home, clock })).rejects.toMatchObject({
      code: 'ERR_ALREADY_RUNNING',
      message: expect.stringContaining(
        `(pid ${process.pid}) was asked to stop but is still running after ${SERVICE_STOP_MS / 1000} s`,
      ),
    });
    const cancelled = startService({ home, clock, signal: AbortSignal.abort('SIGTERM') });
    await expect(cancelled).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  });
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
