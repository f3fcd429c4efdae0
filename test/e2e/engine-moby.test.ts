import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { readProcess, readProcesses } from '../../src/os/process-table.ts';
import { engineSpec, MACHINE } from '../contract/driver-suite.ts';
import { busyboxRoot } from '../helpers/busybox.ts';
import { callEngine, engineJson, publishedPort, runContainer, startContainer } from '../helpers/engine-client.ts';
import { endpointOf, FOREVER, type HostInstance, hostInstance, pidOf } from '../helpers/host-instance.ts';
import { fetchText, type OutsideHost, outsideHost, untilAnswers } from '../helpers/outside-host.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';
import { tarOf } from '../helpers/tar.ts';

const IMAGE = 'test/web:1';
const HTTPD = ['/bin/busybox', 'httpd', '-f', '-p', '80', '-h', '/www'];

const reason = await whyNoRealEngine();

describe.skipIf(reason !== undefined)('moby on the host', () => {
  let instance: HostInstance;
  let endpoint: string;
  let outside: OutsideHost;

  const start = () => instance.driver.engines.moby.perform({ do: 'start', spec: engineSpec('moby') }, FOREVER);
  const stop = () => instance.driver.engines.moby.perform({ do: 'stop' }, FOREVER);
  const observe = () => instance.driver.engines.moby.observe(FOREVER);

  beforeAll(async () => {
    instance = await hostInstance();
    outside = await outsideHost();
    await instance.driver.machine.perform({ do: 'start', spec: MACHINE }, FOREVER);
    await start();
    endpoint = await endpointOf(instance.driver, 'moby');
    await engineJson(endpoint, 'POST', '/images/create?fromSrc=-&repo=test/base&tag=1', busyboxRoot());
    const context = tarOf([
      {
        path: 'Dockerfile',
        content: 'FROM test/base:1\nCOPY index.html /www/index.html\nENV PATH=/bin\n',
        mode: 0o644,
      },
      { path: 'index.html', content: 'built here', mode: 0o644 },
    ]);
    const built = await callEngine(endpoint, 'POST', `/build?t=${IMAGE}`, context);
    expect(built.body.toString()).toContain('Successfully tagged');
  });
  afterEach(async () => {
    const { body } = await callEngine(endpoint, 'GET', '/containers/json?all=1');
    const containers: { Id: string }[] = JSON.parse(body.toString('utf8'));
    for (const { Id } of containers) await engineJson(endpoint, 'DELETE', `/containers/${Id}?force=1`);
  });
  afterAll(async () => {
    await outside?.close();
    expect(await instance?.close()).toEqual([]);
  });

  test('runs a container from a locally built image', async () => {
    const ran = await runContainer(endpoint, { image: IMAGE, command: ['/bin/busybox', 'cat', '/www/index.html'] });
    expect(ran).toEqual({ status: 0, output: 'built here' });
  });

  test('answers on a port published at 127.0.0.1', async () => {
    const ports = { '80/tcp': [{ HostIp: '127.0.0.1', HostPort: '0' }] };
    const id = await startContainer(endpoint, { image: IMAGE, command: HTTPD, ports });
    const port = await publishedPort(endpoint, id, '80/tcp');
    expect(await untilAnswers(`http://127.0.0.1:${port}/index.html`)).toBe('built here');
    await engineJson(endpoint, 'DELETE', `/containers/${id}?force=1`);
    await expect(fetchText(`http://127.0.0.1:${port}/index.html`)).rejects.toThrow();
  });

  test('lets containers reach an outside host, from the default network and from a new one', async () => {
    const command = ['/bin/busybox', 'timeout', '10', '/bin/busybox', 'wget', '-q', '-O', '-', outside.url];
    expect(await runContainer(endpoint, { image: IMAGE, command })).toEqual({ status: 0, output: outside.text });

    await engineJson(endpoint, 'POST', '/networks/create', { Name: 'team' });
    const ran = await runContainer(endpoint, { image: IMAGE, command, network: 'team' });
    expect(ran).toEqual({ status: 0, output: outside.text });
  });

  test('connects containers on one network, and isolates networks', async () => {
    for (const name of ['left', 'right']) await engineJson(endpoint, 'POST', '/networks/create', { Name: name });
    const id = await startContainer(endpoint, { image: IMAGE, command: HTTPD, network: 'left' });
    const { NetworkSettings } = await engineJson(endpoint, 'GET', `/containers/${id}/json`);
    const { IPAddress } = (NetworkSettings as { Networks: Record<string, { IPAddress: string }> }).Networks.left ?? {};
    const url = `http://${IPAddress}/index.html`;
    const command = ['/bin/busybox', 'timeout', '3', '/bin/busybox', 'wget', '-q', '-O', '-', url];

    const near = await runContainer(endpoint, { image: IMAGE, command, network: 'left' });
    expect(near).toEqual({ status: 0, output: 'built here' });
    const far = await runContainer(endpoint, { image: IMAGE, command, network: 'right' });
    expect(far).not.toMatchObject({ status: 0 });
    expect(far.output).not.toContain('built here');
  });

  test('keeps volumes across a stop, a switch to containerd and back, and stops containers with the engine', async () => {
    await engineJson(endpoint, 'POST', '/volumes/create', { Name: 'kept' });
    const binds = ['kept:/data'];
    const write = ['/bin/busybox', 'sh', '-c', 'echo before > /data/file'];
    expect(await runContainer(endpoint, { image: IMAGE, command: write, binds })).toEqual({ status: 0, output: '' });
    const id = await startContainer(endpoint, { image: IMAGE, command: HTTPD });
    expect(await observe()).toMatchObject({ workload: { runningContainers: 1, images: 2 } });
    const { State } = await engineJson(endpoint, 'GET', `/containers/${id}/json`);
    const { Pid } = State as { Pid: number };

    await stop();
    expect(await readProcess(Pid)).toBeUndefined();
    await expect(callEngine(endpoint, 'GET', '/_ping')).rejects.toThrow();
    const { containerd } = instance.driver.engines;
    await containerd.perform({ do: 'start', spec: engineSpec('containerd') }, FOREVER);
    expect((await containerd.observe(FOREVER)).state).toBe('running');
    await containerd.perform({ do: 'stop' }, FOREVER);
    await start();

    const read = ['/bin/busybox', 'cat', '/data/file'];
    expect(await runContainer(endpoint, { image: IMAGE, command: read, binds })).toEqual({
      status: 0,
      output: 'before\n',
    });
  });

  test('is adopted with its containers by a new driver instance', async () => {
    await startContainer(endpoint, { image: IMAGE, command: HTTPD });
    const before = await pidOf(instance.directory, 'dockerd');
    instance.driver = await instance.reopen();
    expect(await observe()).toMatchObject({ state: 'running', endpoint, workload: { runningContainers: 1 } });
    await start();
    expect(await pidOf(instance.directory, 'dockerd')).toBe(before);
  });

  test.each(['dockerd', 'moby-containerd'] as const)(
    'recovers from a killed %s while a container runs',
    async (program) => {
      const id = await startContainer(endpoint, { image: IMAGE, command: HTTPD });
      const { State } = await engineJson(endpoint, 'GET', `/containers/${id}/json`);
      const { Pid } = State as { Pid: number };
      process.kill(await pidOf(instance.directory, program), 'SIGKILL');
      await expect.poll(async () => (await observe()).state).toBe('unresponsive');

      await stop();
      expect(await observe()).toEqual({ state: 'stopped' });
      expect(await readProcess(Pid)).toBeUndefined();
      expect(await shimsOf(instance.directory)).toEqual([]);
      await start();
      await engineJson(endpoint, 'POST', `/containers/${id}/start`);
      expect(await observe()).toMatchObject({ state: 'running', workload: { runningContainers: 1 } });
      await engineJson(endpoint, 'DELETE', `/containers/${id}?force=1`);
    },
  );

  test('cleans up, including containers, when all of its programs were killed', async () => {
    const id = await startContainer(endpoint, { image: IMAGE, command: HTTPD });
    const { State } = await engineJson(endpoint, 'GET', `/containers/${id}/json`);
    const { Pid } = State as { Pid: number };
    const shims = await shimsOf(instance.directory);
    const programs = ['dockerd', 'moby-containerd'] as const;
    for (const program of programs) process.kill(await pidOf(instance.directory, program), 'SIGKILL');
    for (const shim of shims) process.kill(shim, 'SIGKILL');
    await expect.poll(async () => (await observe()).state).toBe('unresponsive');
    await start();
    expect(await readProcess(Pid)).toBeUndefined();
  });

  test('reports a hung engine as unresponsive, and can stop it', { timeout: 120_000 }, async () => {
    const pid = await pidOf(instance.directory, 'dockerd');
    process.kill(pid, 'SIGSTOP');
    // On a busy machine its threads stop one after the other.
    await expect.poll(async () => (await observe()).state, { timeout: 30_000 }).toBe('unresponsive');
    await stop();
    expect(await readProcess(pid)).toBeUndefined();
    await start();
    expect((await observe()).state).toBe('running');
  });

  test('keeps its sockets short and private where the directory path is too long for them', async () => {
    const parent = join(tmpdir(), `rd-${'x'.repeat(90)}`);
    mkdirSync(parent, { recursive: true });
    const second = await hostInstance(parent);
    let elsewhere = '';
    try {
      await second.driver.machine.perform({ do: 'start', spec: MACHINE }, FOREVER);
      await second.driver.engines.moby.perform({ do: 'start', spec: engineSpec('moby') }, FOREVER);
      const other = await endpointOf(second.driver, 'moby');
      expect(other).toMatch(/^unix:\/\/\/run\/rdctl\/[0-9a-f]{8}\/moby\/docker\.sock$/);
      elsewhere = other.slice('unix://'.length, -'/moby/docker.sock'.length);
      expect((await callEngine(other, 'GET', '/_ping')).status).toBe(200);
      // Two instances side by side, each with its own networks.
      expect((await observe()).state).toBe('running');
    } finally {
      expect(await second.close()).toEqual([]);
      rmSync(parent, { recursive: true });
    }
    expect(existsSync(elsewhere)).toBe(false);
  });
});

async function shimsOf(directory: string): Promise<number[]> {
  const all = await readProcesses();
  const mine = all.filter(
    ({ argv }) => argv[0]?.includes('containerd-shim') && argv.some((part) => part.startsWith(directory)),
  );
  return mine.map(({ pid }) => pid);
}
