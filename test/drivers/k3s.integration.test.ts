import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { networkConfigOf } from '../../src/drivers/clusters/k3s/config.ts';
import { RdError } from '../../src/errors.ts';
import { run } from '../../src/os/run.ts';
import { freePort } from '../helpers/free-port.ts';
import { k3sMachine, listening, NEVER } from '../helpers/k3s-machine.ts';

test('there is no cluster before the first start', async () => {
  const { look, stop } = await k3sMachine();
  expect(await look()).toEqual({ state: 'absent' });
  await stop();
  expect(await look()).toEqual({ state: 'absent' });
});

test('a pod network of a containerd without a cluster is not a cluster, but cluster data is', async () => {
  const { cluster, data, look, start } = await k3sMachine();
  mkdirSync(networkConfigOf({ state: join(data, 'k3s', 'state') }), { recursive: true });
  expect(await look()).toEqual({ state: 'absent' });
  await start();
  await cluster.perform({ do: 'stop' }, NEVER);
  rmSync(join(data, 'k3s', 'version'));
  rmSync(join(data, '..', 'keeps', 'k3s'));
  expect(await look()).toEqual({ state: 'stopped', installedVersion: '' });
});

test('offers the versions of the server, newest first', async () => {
  const { cluster, server } = await k3sMachine();
  server.channels.set('latest', 'v1.40.0+k3s1');
  const versions = await cluster.versions(NEVER);
  expect(versions.slice(0, 3)).toEqual(['1.40.0', '1.34.2', '1.33.6']);
  expect(versions).toContain('1.32.9');
});

test('starts, is observed running, stops, and keeps its data', async () => {
  const { start, stop, look, spec, events, options, database, data } = await k3sMachine();
  await start();
  expect(await look()).toEqual({
    state: 'running',
    installedVersion: '1.33.6',
    spec: spec(),
    ready: true,
    kubeconfig: options.kubeconfig,
  });
  await start();
  expect(database()).toMatchObject({ starts: 1, version: 'v1.33.6+k3s2' });
  expect(events).toEqual(['moby loads images of v1.33.6+k3s2']);
  await stop();
  await stop();
  expect(events.at(-1)).toBe('moby stops pods');
  expect(await look()).toEqual({ state: 'stopped', installedVersion: '1.33.6' });
  await start();
  expect(database()).toMatchObject({ starts: 2 });
  expect(events.filter((event) => event.includes('loads'))).toHaveLength(1);
  expect(readdirSync(join(data, 'k3s', 'programs'))).toEqual(['v1.33.6+k3s2']);
  expect(statSync(join(data, 'k3s', 'programs', 'v1.33.6+k3s2', 'k3s')).mode & 0o777).toBe(0o755);
});

test('a kubeconfig for this host reaches the cluster, and is private', async () => {
  const { start, options, port } = await k3sMachine();
  await start();
  const value = JSON.parse(readFileSync(options.kubeconfig, 'utf8'));
  expect(value).toMatchObject({
    'current-context': 'rdctl',
    clusters: [{ name: 'rdctl', cluster: { server: `https://127.0.0.1:${port}` } }],
    contexts: [{ name: 'rdctl', context: { cluster: 'rdctl', user: 'rdctl' } }],
  });
  expect(statSync(options.kubeconfig).mode & 0o777).toBe(0o600);
});

test('the next service adopts the cluster of a killed one', async () => {
  const { start, again, pid } = await k3sMachine();
  await start();
  const before = await pid();
  const next = again();
  expect(await next.observe(NEVER)).toMatchObject({ state: 'running', ready: true });
  expect(await pid()).toBe(before);
  await next.perform({ do: 'stop' }, NEVER);
  expect(await pid()).toBeUndefined();
});

test('the cluster settings reach k3s', async () => {
  const { start, stop, database } = await k3sMachine();
  const port = await freePort();
  await start({ traefik: false, flannel: false, engine: 'containerd', port });
  expect(database().config).toMatchObject({
    'https-listen-port': port,
    disable: ['traefik'],
    'flannel-backend': 'none',
    'container-runtime-endpoint': expect.stringMatching(/containerd\.sock$/),
  });
  await stop();
  await start({ port });
  expect(database().config).toMatchObject({ docker: true });
  expect(database().config.disable).toBeUndefined();
});

test('another spec causes a restart', async () => {
  const { start, database, look, events } = await k3sMachine();
  await start();
  await start({ traefik: false });
  expect(database()).toMatchObject({ starts: 2, config: { disable: ['traefik'] } });
  expect(events).toContain('moby stops pods');
  expect(await look()).toMatchObject({ spec: { traefik: false } });
});

test('is upgraded in place with its data, and the old program is removed', async () => {
  const { start, look, database, data } = await k3sMachine();
  await start({ version: '1.32.9' });
  expect(await look()).toMatchObject({ installedVersion: '1.32.9', spec: { version: '1.32.9' } });
  await start({ version: '1.33.6' });
  expect(await look()).toMatchObject({ installedVersion: '1.33.6' });
  expect(database()).toMatchObject({ starts: 2, version: 'v1.33.6+k3s2' });
  expect(readdirSync(join(data, 'k3s', 'programs'))).toEqual(['v1.33.6+k3s2']);
});

test('stays at the installed build when a newer one appears', async () => {
  const { start, stop, database, server, options } = await k3sMachine();
  server.channels.set('v1.33', 'v1.33.6+k3s1');
  await start({ version: '1.33.6' });
  await stop();
  server.channels.set('v1.33', 'v1.33.6+k3s2');
  rmSync(join(options.cache, 'channels.json'));
  await start({ version: '1.33.6' });
  expect(database().version).toBe('v1.33.6+k3s1');
});

test('refuses a downgrade, and accepts it after a reset', async () => {
  const { start, stop, reset, look, database } = await k3sMachine();
  await start();
  await stop();
  await expect(start({ version: '1.32.9' })).rejects.toMatchObject({
    code: 'ERR_DRIVER_TERMINAL',
    message: 'Kubernetes v1.32.9+k3s1 cannot use the data of v1.33.6+k3s2',
  });
  expect(await look()).toEqual({ state: 'stopped', installedVersion: '1.33.6' });
  await reset();
  expect(await look()).toEqual({ state: 'absent' });
  await start({ version: '1.32.9' });
  expect(database()).toMatchObject({ version: 'v1.32.9+k3s1', starts: 1 });
});

test('a reset removes workloads and state, and keeps images and programs', async () => {
  const { start, stop, reset, events, data, options } = await k3sMachine();
  await start();
  await expect(reset()).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED', message: 'the cluster is still running' });
  await stop();
  await reset();
  await reset();
  expect(events.slice(-4)).toEqual([
    'moby removes pods',
    'containerd removes pods',
    'moby removes pods',
    'containerd removes pods',
  ]);
  expect(readdirSync(join(data, 'k3s')).sort()).toEqual(['images-moby', 'node-password', 'programs']);
  expect(existsSync(options.kubeconfig)).toBe(false);
  await start();
  expect(events.filter((event) => event.includes('loads'))).toHaveLength(1);
});

test('a reset empties the directory of CNI configurations that a running containerd watches, and keeps it', async () => {
  const { start, stop, reset, look, data } = await k3sMachine();
  const state = join(data, 'k3s', 'state');
  const directory = networkConfigOf({ state });
  mkdirSync(directory, { recursive: true });
  const seen: (string | null)[] = [];
  const watcher = watch(directory, (_event, name) => void seen.push(name));
  onTestFinished(() => watcher.close());
  const { ino } = statSync(directory);
  for (const version of ['1.33.6', '1.32.9']) {
    await start({ version, engine: 'containerd' });
    writeFileSync(join(directory, '10-flannel.conflist'), '{}');
    mkdirSync(join(state, 'agent', 'etc', 'other', 'net.d'), { recursive: true });
    symlinkSync(data, join(state, 'elsewhere'));
    await stop();
    await reset();
    expect(readdirSync(state, { recursive: true })).toEqual([
      'agent',
      'agent/etc',
      'agent/etc/cni',
      'agent/etc/cni/net.d',
    ]);
    expect(await look()).toEqual({ state: 'absent' });
    expect(statSync(directory).ino).toBe(ino);
  }
  expect(existsSync(join(data, 'k3s', 'programs'))).toBe(true);
  seen.length = 0;
  writeFileSync(join(directory, '10-flannel.conflist'), '{}');
  await expect.poll(() => seen).toContain('10-flannel.conflist');
});

test('the installed version is known while the machine is off', async () => {
  const { start, stop, again, power, reset, look } = await k3sMachine();
  await start();
  await stop();
  power.on = false;
  expect(await again().observe(NEVER)).toEqual({ state: 'stopped', installedVersion: '1.33.6' });
  power.on = true;
  await reset();
  power.on = false;
  expect(await look()).toEqual({ state: 'absent' });
});

test('a machine that is off, or goes off during the observation, has a stopped cluster', async () => {
  const switchOff = { at: '' };
  const { start, stop, look, power } = await k3sMachine((shell) => ({
    ...shell,
    async find(name) {
      if (switchOff.at !== 'find') return shell.find(name);
      power.on = false;
      throw new RdError('ERR_DRIVER_FAILED', 'the guest cannot be reached');
    },
  }));
  await start();
  switchOff.at = 'find';
  expect(await look()).toEqual({ state: 'stopped', installedVersion: '1.33.6' });
  await stop();
  switchOff.at = '';
  power.on = true;
  expect(await look()).toMatchObject({ state: 'running', ready: true });
});

test('only the version of the cluster is known when the machine does not respond', async () => {
  const link = { isThere: true, breaksAt: '' };
  const { start, again } = await k3sMachine((shell) => ({
    ...shell,
    async find(name) {
      if (link.breaksAt === 'find') link.isThere = false;
      if (link.isThere) return shell.find(name);
      throw new RdError('ERR_DRIVER_FAILED', 'the guest cannot be reached');
    },
  }));
  await start();
  const { observe } = again({ answers: async () => link.isThere });
  expect(await observe(NEVER)).toMatchObject({ state: 'running', ready: true });
  const outOfReach = { state: 'unresponsive', installedVersion: '1.33.6', message: 'the machine does not respond' };
  link.breaksAt = 'find';
  expect(await observe(NEVER)).toEqual(outOfReach);
  expect(await observe(NEVER)).toEqual(outOfReach);
  link.breaksAt = '';
  link.isThere = true;
  expect(await observe(NEVER)).toMatchObject({ state: 'running', ready: true });
});

test('data of an unknown version is not overwritten', async () => {
  const { start, stop, look, reset, data } = await k3sMachine();
  await start();
  await stop();
  for (const text of [undefined, 'v1.x\n']) {
    const file = join(data, 'k3s', 'version');
    if (text === undefined) rmSync(file);
    else writeFileSync(file, text);
    expect(await look()).toEqual({ state: 'stopped', installedVersion: '' });
    await expect(start()).rejects.toMatchObject({
      code: 'ERR_DRIVER_TERMINAL',
      message: expect.stringMatching(/unknown version/),
    });
  }
  await reset();
  await start();
});

test('a machine with a replaced system disk is recognized', async () => {
  const { start, stop, options, database } = await k3sMachine();
  await start();
  await stop();
  rmSync(options.nodePassword ?? '');
  await start();
  expect(database()).toMatchObject({ starts: 2 });
});

test('unsupported cluster settings are refused before anything is changed', async () => {
  const { start, server, look } = await k3sMachine();
  for (const more of [{ spinkube: true }, { localhostOnly: true }]) {
    await expect(start(more)).rejects.toMatchObject({
      code: 'ERR_DRIVER_TERMINAL',
      message: expect.stringMatching(/this cluster does not support/),
    });
  }
  await expect(start({ version: '1.77.0' })).rejects.toMatchObject({
    message: expect.stringMatching(/no release of k3s for "1\.77\.0"/),
  });
  expect(server.requests.some((path) => path.endsWith('/k3s'))).toBe(false);
  expect(await look()).toEqual({ state: 'absent' });
});

test('without network, cached releases are offered and installed', async () => {
  const { start, stop, reset, server, again, options, power } = await k3sMachine();
  await start({ version: '1.32.9' });
  await stop();
  await server.close();
  rmSync(join(options.cache, 'channels.json'));
  power.on = false;
  expect(await again().versions(NEVER)).toEqual(['1.32.9']);
  power.on = true;
  await start({ version: '1.32.9' });
  await stop();
  await reset();
  await start({ version: '1.32.9' });
  // Only the built-in list names it, and its files were never downloaded.
  await expect(start({ version: '1.33.6' })).rejects.toMatchObject({ code: 'ERR_CONNECTION' });
});

test('without network and cache, offers the built-in list, and a start says what is missing', async () => {
  const { start, server, cluster } = await k3sMachine();
  await server.close();
  expect((await cluster.versions(NEVER))[0]).toBe('1.34.2');
  await expect(start({ version: '1.32.10' })).rejects.toMatchObject({
    code: 'ERR_CONNECTION',
    message: expect.stringMatching(/ECONNREFUSED/),
  });
});

test('connects to a pod behind a service, by port name and number', async () => {
  const { start, cluster, say } = await k3sMachine();
  const echo = await listening(
    createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('data', (data) => socket.write(`heard ${data}`));
      socket.on('end', () => socket.end('bye'));
    }),
  );
  onTestFinished(() => void echo.close());
  const address = echo.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const slice = (ready: boolean | undefined, at: number) => ({
    addressType: 'IPv4',
    endpoints: [{ addresses: ['127.0.0.1'], ...(ready === undefined ? {} : { conditions: { ready } }) }],
    ports: [{ name: 'http', port: at }],
  });
  const spec = {
    ports: [
      { name: 'http', port: 80, targetPort: 8080 },
      { name: 'dns', port: 53, protocol: 'UDP' },
    ],
  };
  const services = {
    'default/web': { spec, slices: [slice(false, 1), slice(true, await freePort()), slice(undefined, port)] },
    // The pods name their port, so its number is known only from them.
    'default/named': {
      spec: { ports: [{ name: 'http', port: 80, targetPort: 'web' }] },
      slices: [slice(true, port)],
    },
    'default/idle': { spec, slices: [slice(false, port)] },
    'default/dead': { spec, slices: [slice(true, await freePort())] },
    'default/external': {
      spec,
      slices: [{ addressType: 'FQDN', endpoints: [{ addresses: ['x.example'] }], ports: [] }],
    },
  };
  const connect = (service: string, at: number | string) =>
    cluster.connect?.({ namespace: 'default', service, port: at }, NEVER) ??
    Promise.reject(new Error('cannot connect'));
  await expect(connect('web', 80)).rejects.toMatchObject({
    code: 'ERR_NOT_READY',
    message: 'the cluster is not running',
  });
  say({}, { services });
  await start();
  const ways: [string, number | string][] = [
    ['web', 80],
    ['web', 'http'],
    ['web', 8080],
    ['named', port],
  ];
  for (const [service, at] of ways) {
    const stream = await connect(service, at);
    stream.end('hello');
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    expect(Buffer.concat(chunks).toString()).toBe('heard hellobye');
  }
  await expect(connect('none', 80)).rejects.toMatchObject({
    code: 'ERR_NOT_FOUND',
    message: expect.stringMatching(/no service default\/none/),
  });
  for (const at of [81, 'dns', 53]) await expect(connect('web', at)).rejects.toMatchObject({ code: 'ERR_NOT_FOUND' });
  await expect(connect('idle', 80)).rejects.toMatchObject({
    code: 'ERR_NOT_READY',
    message: expect.stringMatching(/none of its pods is ready/),
  });
  await expect(connect('dead', 80)).rejects.toMatchObject({
    code: 'ERR_NOT_READY',
    message: expect.stringMatching(/accepts the connection/),
  });
  await expect(connect('external', 80)).rejects.toMatchObject({ code: 'ERR_NOT_READY' });
  const gone = AbortSignal.abort();
  await expect(cluster.connect?.({ namespace: 'default', service: 'web', port: 80 }, gone)).rejects.toMatchObject({
    code: 'ERR_CANCELLED',
  });
});

const kubectl = await run(['kubectl', 'version', '--client'], { accept: [0, 1] }).then(
  () => true,
  () => false,
);
test.skipIf(!kubectl)('kubectl accepts the kubeconfig and reaches the cluster', async () => {
  const { start, options } = await k3sMachine();
  await start();
  const { stdout } = await run(['kubectl', '--kubeconfig', options.kubeconfig, 'get', 'nodes', '-o', 'name'], {
    env: { PATH: process.env.PATH ?? '', HOME: join(options.cache, '..') },
  });
  expect(stdout).toBe('node/rdctl\n');
});

test('foreign directories stay in place', async () => {
  const { start, stop, reset, data } = await k3sMachine();
  mkdirSync(join(data, 'moby'));
  await start();
  await stop();
  await reset();
  expect(existsSync(join(data, 'moby'))).toBe(true);
});
