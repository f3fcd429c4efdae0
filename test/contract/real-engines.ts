import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Driver, EngineName } from '../../src/drivers/driver.ts';
import { run } from '../../src/os/run.ts';
import { busyboxImage } from '../helpers/busybox.ts';
import { callEngine, engineJson } from '../helpers/engine-client.ts';
import { endpointOf } from '../helpers/host-instance.ts';
import type { LoopbackRegistry } from '../helpers/loopback-registry.ts';
import { pushScratch } from '../helpers/registry-push.ts';
import type { DriverSubject } from './driver-suite.ts';

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

/** Two layers: the second removes a file, changes one, and replaces a file with a directory. */
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

/** What lives in real engines, wherever they run: a volume of moby, an image of containerd. */
export const ENGINE_DATA: DriverSubject['data'] = { put, has };

/** Images that real engines pull from a registry on this computer, which has `one:1` and `other/two:1`. */
export function registryImages(
  registry: () => LoopbackRegistry,
): Pick<DriverSubject, 'registryImages' | 'sampleImage' | 'companionImage'> {
  return {
    registryImages: async () => [`${registry().host}/one:1`, `${registry().host}/other/two:1`],
    async sampleImage() {
      await pushScratch(registry().host, 'sample/image', '1.0', SAMPLE);
      return {
        name: `${registry().host}/sample/image`,
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
      await pushScratch(registry().host, 'sample/companion', '1.0', image);
      return `${registry().host}/sample/companion:1.0`;
    },
  };
}
