import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { Driver, EngineName } from '../../src/drivers/driver.ts';
import { host } from '../../src/drivers/index.ts';
import { hostPlaces } from '../../src/drivers/machines/host/places.ts';
import { readProcess } from '../../src/process/proc.ts';
import { run } from '../../src/process/run.ts';
import { driverSuite } from '../contract/driver-suite.ts';
import { busyboxImage } from '../helpers/busybox.ts';
import { callEngine, engineJson } from '../helpers/engine-client.ts';
import { endpointOf, hostTraces, pidOf } from '../helpers/host-instance.ts';
import type { LoopbackRegistry } from '../helpers/loopback-registry.ts';
import { loopbackRegistry } from '../helpers/loopback-registry.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';
import { putImage } from '../helpers/registry-image.ts';
import { pushScratch } from '../helpers/registry-push.ts';

const IMAGE = 'docker.io/test/kept:1';

async function ctr(driver: Driver, args: string[]): Promise<string> {
  const socket = (await endpointOf(driver, 'containerd')).replace('unix://', '');
  return (await run(['ctr', '--address', socket, '--namespace', 'default', ...args])).stdout;
}

async function put(driver: Driver, name: EngineName, directory: string): Promise<void> {
  if (name === 'moby') {
    await engineJson(await endpointOf(driver, 'moby'), 'POST', '/volumes/create', { Name: 'kept' });
    return;
  }
  const archive = join(directory, 'kept.tar');
  writeFileSync(archive, busyboxImage(IMAGE));
  await ctr(driver, ['images', 'import', archive]);
}

async function has(driver: Driver, name: EngineName): Promise<boolean> {
  if (name === 'moby')
    return (await callEngine(await endpointOf(driver, 'moby'), 'GET', '/volumes/kept')).status === 200;
  return (await ctr(driver, ['images', 'ls', '-q'])).includes(IMAGE);
}

/** Two layers: the second takes a file away, changes one, and makes a directory out of a file. */
const SAMPLE = {
  labels: { 'org.example.title': 'Sample' },
  layers: [
    [
      { path: 'data/new.txt', content: 'first' },
      { path: 'data/old.txt', content: 'old' },
      { path: 'data/deep', content: 'a file' },
      { path: 'data/shortcut', link: 'new.txt' },
    ],
    [
      { path: 'data/.wh.old.txt' },
      { path: 'data/new.txt', content: 'second' },
      { path: 'data/deep/file', content: 'below' },
      { path: 'link', link: '/data' },
      { path: 'outside', link: '/../../../etc' },
    ],
  ],
};

const reason = await whyNoRealEngine();
describe('with real engines', () => {
  if (reason !== undefined) {
    test.skip(`skipped: ${reason}`);
    return;
  }
  let registry: LoopbackRegistry;
  beforeAll(async () => {
    registry = await loopbackRegistry();
    for (const name of ['one:1', 'other/two:1']) await putImage(registry.host, { name, content: 'file' });
  });
  afterAll(() => registry?.close());
  driverSuite({
    factory: host,
    registryImages: async () => [`${registry.host}/one:1`, `${registry.host}/other/two:1`],
    async crash(_driver, name, directory) {
      const program = name === 'moby' ? 'dockerd' : 'containerd';
      const pid = await pidOf(directory, program);
      process.kill(pid, 'SIGKILL');
      await ended(pid);
    },
    data: { put, has },
    async sampleImage() {
      await pushScratch(registry.host, 'sample/image', '1.0', SAMPLE);
      return {
        name: `${registry.host}/sample/image`,
        tag: '1.0',
        labels: SAMPLE.labels,
        file: { path: '/data/new.txt', text: 'second' },
        directory: { path: '/data', files: ['new.txt', 'deep', 'deep/file', 'shortcut'] },
        link: '/link',
        escape: '/outside/passwd',
      };
    },
    async companionImage() {
      const image = {
        ...SAMPLE,
        command: ['/bin/busybox', 'sleep', '100000'],
        layers: [[{ path: 'bin/busybox', content: readFileSync('/bin/busybox') }]],
      };
      await pushScratch(registry.host, 'sample/companion', '1.0', image);
      return `${registry.host}/sample/companion:1.0`;
    },
    traces: hostTraces,
    async damage(directory) {
      const { chain } = hostPlaces(directory);
      await run(['iptables', '--wait', '10', '-F', chain]);
    },
  });
});

/** A killed process takes a moment to be gone. */
async function ended(pid: number): Promise<void> {
  while (await readProcess(pid)) await new Promise((resolve) => setImmediate(resolve));
}
