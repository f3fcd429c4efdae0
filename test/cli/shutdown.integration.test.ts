import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { places } from '../../src/state/places.ts';
import { rdctl } from '../helpers/cli.ts';
import { type Received, type ScriptedServer, scriptedServer, writeConnection } from '../helpers/scripted-server.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** A server that stops listening when told to, like a service. */
async function stoppable(): Promise<ScriptedServer> {
  const server = await scriptedServer(({ method, path }: Received) => {
    if (method !== 'PUT') return { body: '{"vmState":"STARTED","locked":false}' };
    expect(path).toBe('/v1/shutdown');
    // After the response has been sent.
    setImmediate(() => void server.close());
    return { body: 'Shutting down.' };
  });
  return server;
}

test('prints the answer once the service is gone', async () => {
  await using server = await stoppable();
  expect(await rdctl(['shutdown'], { env: server.env })).toEqual({ exit: 0, out: 'Shutting down.\n', err: '' });
  expect(server.received.slice(0, 2)).toMatchObject([
    { method: 'GET', path: '/v1/backend_state' },
    { method: 'PUT', path: '/v1/shutdown', body: '' },
  ]);
});

test('waits while the service still answers, and no longer', async () => {
  let looks = 0;
  await using server = await scriptedServer(({ method }) => {
    if (method === 'PUT') return { body: 'Shutting down.' };
    if (++looks === 4) setImmediate(() => void server.close());
    return { body: '{"vmState":"STARTED"}' };
  });
  expect(await rdctl(['shutdown'], { env: server.env })).toMatchObject({ exit: 0, out: 'Shutting down.\n' });
  expect(looks).toBe(4);
});

test('--wait=false returns at once and kills nothing', async () => {
  await using server = await scriptedServer(({ method }) => ({
    body: method === 'PUT' ? 'Shutting down.' : '{"vmState":"STARTED"}',
  }));
  expect(await rdctl(['shutdown', '--wait=false'], { env: server.env })).toMatchObject({
    exit: 0,
    out: 'Shutting down.\n',
  });
  expect(server.received).toHaveLength(2);
});

test('sends nothing to another program', async () => {
  await using server = await scriptedServer(() => ({ body: '<html>' }));
  const { exit, out, err } = await rdctl(['shutdown'], { env: server.env });
  expect({ exit, out }).toEqual({ exit: 0, out: '' });
  expect(err).toMatch(/^No service is running for this home; nothing was stopped: another program answers on /);
  expect(server.received.map(({ method }) => method)).toEqual(['GET']);
  const flags = ['--port', String(server.port), '--user=u', '--password=p'];
  expect(await rdctl(['shutdown', ...flags], { env: server.env })).toMatchObject({ exit: 1, out: '' });
});

test('when nothing runs, only reports a stale file', async () => {
  expect(await rdctl(['shutdown'], { env: { RDCTL_HOME: temporaryDirectory() } })).toEqual({
    exit: 0,
    out: '',
    err: '',
  });
  await using server = await stoppable();
  await server.close();
  expect(await rdctl(['shutdown'], { env: server.env })).toEqual({
    exit: 0,
    out: '',
    err: `notice: ${server.home}/app-engine.json is stale: the process that wrote it is no longer listening. \`rdctl start\` starts a service and rewrites the file.\n`,
  });
});

test('has nothing to do when nothing listens on the port, but reports what a killed service left', async () => {
  const home = temporaryDirectory();
  const { serviceLock, stateFile } = places({ RDCTL_HOME: home }, 'linux', '');
  await using server = await stoppable();
  await server.close();
  const argv = ['shutdown', '--port', String(server.port), '--user=u', '--password=p'];
  const port = argv.slice(0, 3);
  const env = { RDCTL_HOME: home };
  writeConnection(join(home, 'app-engine.json'), { user: 'user', password: 'secret', port: 1 });
  expect(await rdctl(port, { env })).toEqual({ exit: 0, out: '', err: '' });
  mkdirSync(serviceLock, { recursive: true });
  const entry = { pid: 2 ** 30, started: 'x', since: new Date().toISOString(), held: true };
  writeFileSync(join(serviceLock, 'x.json'), JSON.stringify(entry));
  writeFileSync(stateFile, JSON.stringify({ format: 1, driver: 'host', power: 'started', generation: 3 }));
  const { exit, out, err } = await rdctl(port, { env });
  expect({ exit, out }).toEqual({ exit: 0, out: '' });
  expect(err).toContain(`Nothing is listening on port ${server.port}; nothing was stopped.\n`);
  expect(err).toMatch(/^The last service \(pid \d+\) exited .*: `rdctl shutdown` without --port stops it\.$/m);
  expect(await rdctl(argv, { env })).toEqual({ exit: 0, out: '', err: '' });
});

test.each([
  [401, 'Unauthorized', '401 Unauthorized: user/password not accepted'],
  [500, 'internal error', '500 Internal Server Error: server-side problem'],
])('status %d is a failure, not a reason to kill', async (status, body, message) => {
  await using server = await scriptedServer(() => ({ status, body }));
  const { exit, out, err } = await rdctl(['shutdown'], { env: server.env });
  expect({ exit, out }).toEqual({ exit: 1, out: '' });
  expect(err.startsWith(`Error: ${message}`), err).toBe(true);
  expect(server.received).toHaveLength(1);
});

describe('the compatible application, found by discovery', () => {
  async function foreign(): Promise<{ server: ScriptedServer; env: Record<string, string>; file: string }> {
    const server = await stoppable();
    const data = join(server.home, 'data');
    const file = join(data, 'rancher-desktop', 'rd-engine.json');
    writeConnection(file, { user: 'user', password: 'secret', port: server.port });
    return { server, file, env: { XDG_DATA_HOME: data } };
  }

  test('is not stopped', async () => {
    const { server, env, file } = await foreign();
    await using _ = server;
    const { exit, out, err } = await rdctl(['shutdown'], { env });
    expect({ exit, out }).toEqual({ exit: 3, out: '' });
    expect(err).toContain(file);
    expect(err).toContain('rdctl shutdown --target rancher-desktop');
    expect(server.received.map(({ method }) => method)).toEqual(['GET']);
  });

  test('is stopped when it is named in one of three ways', async () => {
    for (const how of ['--target', '--config-path', 'RDCTL_COMPAT']) {
      const { server, env, file } = await foreign();
      await using _ = server;
      const argv = how === '--target' ? [how, 'rancher-desktop'] : how === '--config-path' ? [how, file] : [];
      const extra = how === 'RDCTL_COMPAT' ? { [how]: 'rancher-desktop' } : {};
      expect([how, await rdctl(['shutdown', ...argv], { env: { ...env, ...extra } })]).toMatchObject([
        how,
        { exit: 0 },
      ]);
    }
  });

  test('leaves nothing to do when it is gone', async () => {
    const { server, env } = await foreign();
    await using _ = server;
    await server.close();
    expect(await rdctl(['shutdown'], { env })).toEqual({ exit: 0, out: '', err: '' });
  });
});
