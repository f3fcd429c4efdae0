import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test, vi } from 'vitest';
import type { Driver, DriverFactory, EngineName } from '../../src/drivers/driver.ts';
import { qemu } from '../../src/drivers/index.ts';
import { readProcesses } from '../../src/process/proc.ts';
import { run } from '../../src/process/run.ts';
import { shellLine } from '../../src/process/shell-words.ts';
import { driverSuite } from '../contract/driver-suite.ts';
import { busyboxImage } from '../helpers/busybox.ts';
import { callEngine, engineJson } from '../helpers/engine-client.ts';
import { linkImages, whyNoRealGuest } from '../helpers/guest-image.ts';
import { endpointOf } from '../helpers/host-instance.ts';
import { type LoopbackRegistry, loopbackRegistry } from '../helpers/loopback-registry.ts';
import { putImage } from '../helpers/registry-image.ts';
import { pushScratch } from '../helpers/registry-push.ts';

// Every test boots a guest, some three times, without the help of a processor.
vi.setConfig({ testTimeout: 900_000, hookTimeout: 300_000 });

const IMAGE = 'docker.io/test/kept:1';
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

/** `vitest.config.ts` leaves this file out unless it is asked for. */
const reason = await whyNoRealGuest();

async function inGuest(driver: Driver, ...command: string[]): Promise<string> {
  const access = driver.access?.();
  if (!access) throw new Error('the driver tells no way in');
  return (await run([...access.ssh, '-T', access.target, shellLine(command)])).stdout;
}

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

/** The guest reaches the registry of this host under the same name. */
function reaching(factory: DriverFactory, registry: () => LoopbackRegistry): DriverFactory {
  return {
    ...factory,
    async open(context) {
      const driver = await factory.open(context);
      const { machine } = driver;
      return {
        ...driver,
        machine: {
          observe: machine.observe,
          async perform(step, signal) {
            await machine.perform(step, signal);
            const access = driver.access?.();
            const port = registry().host.split(':')[1];
            if (step.do === 'stop' || !access) return;
            await run([...access.ssh, '-O', 'forward', '-R', `127.0.0.1:${port}:127.0.0.1:${port}`, access.target]);
          },
        },
      };
    },
  };
}

describe('with a real guest', () => {
  if (reason !== undefined) {
    test.skip(`skipped: ${reason}`);
    return;
  }
  let registry: LoopbackRegistry;
  const home = mkdtempSync(join(tmpdir(), 'rd-home-'));
  linkImages(home);
  beforeAll(async () => {
    registry = await loopbackRegistry();
    for (const name of ['one:1', 'other/two:1']) await putImage(registry.host, { name, content: 'file' });
  });
  afterAll(async () => {
    await registry?.close();
    rmSync(home, { recursive: true, force: true });
  });
  driverSuite({
    factory: reaching(qemu, () => registry),
    env: { RDCTL_HOME: home },
    registryImages: async () => [`${registry.host}/one:1`, `${registry.host}/other/two:1`],
    async crash(driver, name) {
      const unit = name === 'moby' ? 'rdctl-dockerd.service' : 'rdctl-containerd.service';
      const script = `systemctl kill --kill-who=main --signal=KILL ${unit}
while [ "$(systemctl show --property=MainPID --value ${unit})" != 0 ]; do sleep 0.1; done`;
      await inGuest(driver, 'sh', '-c', script);
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
    async traces(directory) {
      const processes = (await readProcesses()).filter(({ argv }) => argv.some((part) => part.includes(directory)));
      const programs = processes.map(({ pid, argv }) => `${pid} ${argv.join(' ')}`);
      return [...programs, ...(existsSync(join(directory, 'run')) ? [join(directory, 'run')] : [])];
    },
  });
});
