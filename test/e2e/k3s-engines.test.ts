import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:http2';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { k3sCluster } from '../../src/drivers/clusters/k3s/k3s.ts';
import { k3sSources } from '../../src/drivers/clusters/k3s/sources.ts';
import type { Driver } from '../../src/drivers/driver.ts';
import { containerdEngine } from '../../src/drivers/engines/containerd.ts';
import { containerdPods } from '../../src/drivers/engines/containerd-images.ts';
import { mobyEngine } from '../../src/drivers/engines/moby.ts';
import { mobyNetworks } from '../../src/drivers/engines/moby-config.ts';
import { mobyPods } from '../../src/drivers/engines/moby-images.ts';
import { podNetwork } from '../../src/drivers/index.ts';
import { hostFactory } from '../../src/drivers/machines/host/index.ts';
import type { Shell } from '../../src/drivers/shell.ts';
import { run } from '../../src/os/run.ts';
import { bytesOf } from '../../src/os/stream-bytes.ts';
import { engineSpec, MACHINE } from '../contract/driver-suite.ts';
import { busyboxImage } from '../helpers/busybox.ts';
import { callEngine } from '../helpers/engine-client.ts';
import { FOREVER, hostTraces } from '../helpers/host-instance.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';

const IMAGE = 'docker.io/test/pod:1';
const reason = await whyNoRealEngine();

describe.skipIf(reason !== undefined)('real engines below a cluster', () => {
  const root = mkdtempSync(join(tmpdir(), 'rd-'));
  const directory = join(root, 'host');
  const archive = join(root, 'images.tar.gz');
  let driver: Driver;
  let shell: Shell;

  beforeAll(async () => {
    for (const path of [directory, join(root, 'logs')]) mkdirSync(path, { mode: 0o700 });
    writeFileSync(archive, gzipSync(busyboxImage(IMAGE)));
    const factory = hostFactory((opened, cgroup) => {
      shell = opened;
      return { moby: mobyEngine(opened, cgroup), containerd: containerdEngine(opened, podNetwork(opened.places)) };
    }, mobyNetworks);
    const context = { directory, logs: join(root, 'logs'), log: () => undefined, now: Date.now, env: process.env };
    driver = await factory.open(context);
    await driver.machine.perform({ do: 'start', spec: MACHINE }, FOREVER);
  });
  afterAll(async () => {
    if (!driver) return;
    for (const name of ['moby', 'containerd'] as const) await driver.engines[name].perform({ do: 'stop' }, FOREVER);
    await driver.machine.perform({ do: 'stop' }, FOREVER);
    expect(await hostTraces(directory)).toEqual([]);
    rmSync(root, { recursive: true });
  });

  test('moby loads an archive, and stops and removes only containers of pods', async () => {
    await driver.engines.moby.perform({ do: 'start', spec: engineSpec('moby') }, FOREVER);
    const pods = mobyPods(shell);
    await pods.loadImages(archive, FOREVER);
    const make = async (name: string, Labels: object) => {
      const body = { Image: IMAGE, Cmd: ['/bin/busybox', 'sleep', '3600'], Labels };
      await callEngine(`unix://${pods.socket}`, 'POST', `/containers/create?name=${name}`, body);
      await callEngine(`unix://${pods.socket}`, 'POST', `/containers/${name}/start`);
    };
    const running = async () => {
      const { body } = await callEngine(`unix://${pods.socket}`, 'GET', '/containers/json?all=1');
      const list: { Names: string[]; State: string }[] = JSON.parse(body.toString());
      return Object.fromEntries(list.map(({ Names, State }) => [Names[0], State]));
    };
    await make('pod', { 'io.kubernetes.pod.uid': '1' });
    await make('own', {});
    await pods.endPods('stop', FOREVER);
    expect(await running()).toEqual({ '/pod': 'exited', '/own': 'running' });
    await pods.endPods('stop', FOREVER);
    await pods.endPods('remove', FOREVER);
    expect(await running()).toEqual({ '/own': 'running' });
    await callEngine(`unix://${pods.socket}`, 'DELETE', '/containers/own?force=1');
    await driver.engines.moby.perform({ do: 'stop' }, FOREVER);
  });

  test('containerd serves the CRI, imports an archive, and stops only tasks of pods', async () => {
    await driver.engines.containerd.perform({ do: 'start', spec: engineSpec('containerd') }, FOREVER);
    const pods = containerdPods(shell);
    const ctr = async (namespace: string, ...args: string[]) =>
      (await run(['ctr', '--address', pods.socket, '--namespace', namespace, ...args])).stdout;
    expect(await ctr('k8s.io', 'plugins', 'ls')).toMatch(/io\.containerd\.grpc\.v1\s+cri\s+\S+\s+ok/);
    await pods.loadImages(archive, FOREVER);
    expect(await ctr('k8s.io', 'images', 'ls', '-q')).toContain(IMAGE);
    await ctr('k8s.io', 'run', '--detach', IMAGE, 'pod', '/bin/busybox', 'sleep', '3600');
    const other = join(root, 'other.tar');
    writeFileSync(other, busyboxImage(IMAGE));
    await ctr('default', 'images', 'import', other);
    await ctr('default', 'run', '--detach', IMAGE, 'own', '/bin/busybox', 'sleep', '3600');
    await pods.endPods('stop', FOREVER);
    expect(await ctr('k8s.io', 'tasks', 'ls', '-q')).toBe('');
    expect(await ctr('k8s.io', 'containers', 'ls', '-q')).toBe('pod\n');
    expect(await ctr('default', 'tasks', 'ls', '-q')).toBe('own\n');
    await pods.endPods('remove', FOREVER);
    expect(await ctr('k8s.io', 'containers', 'ls', '-q')).toBe('');
    await driver.engines.containerd.perform({ do: 'stop' }, FOREVER);
  });

  test('containerd sees the CNI configuration of a cluster that was reset while it ran', async () => {
    await driver.engines.containerd.perform({ do: 'start', spec: engineSpec('containerd') }, FOREVER);
    const pods = { moby: mobyPods(shell), containerd: containerdPods(shell) };
    const cluster = k3sCluster(shell, {
      ...{ engines: pods, sources: k3sSources({}), name: 'rdctl', ownsNetwork: false },
      ...{ cache: join(root, 'cache'), memo: join(root, 'memo'), kubeconfig: join(root, 'kubeconfig.json') },
    });
    const { configuration } = podNetwork(shell.places);
    const bridge = { cniVersion: '0.3.1', name: 'pods', plugins: [{ type: 'loopback' }] };
    const network = () => criStatus(pods.containerd.socket);
    for (const round of ['before', 'after']) {
      expect(await network(), round).toContain('cni plugin not initialized');
      // As k3s does.
      mkdirSync(configuration, { recursive: true });
      writeFileSync(join(configuration, '10-flannel.conflist'), JSON.stringify(bridge));
      await expect.poll(network, { timeout: 10_000 }).not.toContain('cni plugin not initialized');
      await cluster.perform({ do: 'reset' }, FOREVER);
      await expect.poll(network, { timeout: 10_000 }).toContain('cni plugin not initialized');
    }
    await driver.engines.containerd.perform({ do: 'stop' }, FOREVER);
  });
});

/** The response of the CRI to `Status`, as kubelet asks; its texts are readable in the encoding of protobuf. */
async function criStatus(socket: string): Promise<string> {
  const session = connect('http://localhost', { createConnection: () => createConnection({ path: socket }) });
  try {
    const path = '/runtime.v1.RuntimeService/Status';
    const request = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    // An empty message: not compressed, of length 0.
    request.end(Buffer.alloc(5));
    const text = (await bytesOf(request, 2 ** 20)).toString('latin1');
    expect(text).toContain('NetworkReady');
    return text;
  } finally {
    session.close();
  }
}
