import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readProcess, readProcesses } from '../../src/os/process-table.ts';
import { run } from '../../src/os/run.ts';
import { engineSpec, MACHINE } from '../contract/driver-suite.ts';
import { busyboxImage } from '../helpers/busybox.ts';
import { endpointOf, FOREVER, type HostInstance, hostInstance, pidOf } from '../helpers/host-instance.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';

const IMAGE = 'docker.io/test/tool:1';

const reason = await whyNoRealEngine();

describe.skipIf(reason !== undefined)('containerd on the host', () => {
  let instance: HostInstance;

  const start = () =>
    instance.driver.engines.containerd.perform({ do: 'start', spec: engineSpec('containerd') }, FOREVER);
  const stop = () => instance.driver.engines.containerd.perform({ do: 'stop' }, FOREVER);
  const observe = () => instance.driver.engines.containerd.observe(FOREVER);

  async function ctr(...args: string[]): Promise<string> {
    const socket = (await endpointOf(instance.driver, 'containerd')).replace('unix://', '');
    return (await run(['ctr', '--address', socket, '--namespace', 'default', ...args])).stdout;
  }

  beforeAll(async () => {
    instance = await hostInstance();
    await instance.driver.machine.perform({ do: 'start', spec: MACHINE }, FOREVER);
    await start();
    const archive = join(instance.directory, 'tool.tar');
    writeFileSync(archive, busyboxImage(IMAGE));
    await ctr('images', 'import', archive);
  });
  afterAll(async () => {
    expect(await instance?.close()).toEqual([]);
  });

  test('runs a container from an imported image', async () => {
    expect(await ctr('run', '--rm', IMAGE, 'once', '/bin/busybox', 'echo', 'hello')).toBe('hello\n');
  });

  test('counts what a stop would interrupt, stops it, and keeps images and container records', async () => {
    await ctr('run', '--detach', IMAGE, 'longer', '/bin/busybox', 'sleep', '3600');
    const { stdout } = await run(['ctr', '--address', await socket(), '--namespace', 'default', 'tasks', 'ls']);
    const pid = Number(/longer\s+(\d+)/.exec(stdout)?.[1]);
    expect(await observe()).toMatchObject({
      state: 'running',
      workload: { runningContainers: 1, containers: 1, images: 1, running: [{ name: 'longer', returns: false }] },
    });
    await stop();
    expect(await readProcess(pid)).toBeUndefined();
    await start();
    expect(await observe()).toMatchObject({ workload: { runningContainers: 0, containers: 1, images: 1 } });
    await ctr('containers', 'rm', 'longer');
  });

  test('recovers from a kill while a container runs', async () => {
    await ctr('run', '--detach', IMAGE, 'orphan', '/bin/busybox', 'sleep', '3600');
    const address = await socket();
    process.kill(await pidOf(instance.directory, 'containerd'), 'SIGKILL');
    await expect.poll(async () => (await observe()).state).toBe('unresponsive');
    await stop();
    const left = (await readProcesses()).filter(({ argv }) => argv.includes(address));
    expect(left).toEqual([]);
    await start();
    expect(await observe()).toMatchObject({ state: 'running', workload: { runningContainers: 0 } });
    await ctr('containers', 'rm', 'orphan');
    // The same name again: the host's shims remember nothing of the first one.
    expect(await ctr('run', '--rm', IMAGE, 'orphan', '/bin/busybox', 'echo', 'again')).toBe('again\n');
  });

  async function socket(): Promise<string> {
    return (await endpointOf(instance.driver, 'containerd')).replace('unix://', '');
  }
});
