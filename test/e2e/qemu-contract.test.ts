import { existsSync, linkSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test, vi } from 'vitest';
import type { Driver, DriverFactory } from '../../src/drivers/driver.ts';
import { qemu } from '../../src/drivers/index.ts';
import { readProcesses } from '../../src/os/process-table.ts';
import { shellLine } from '../../src/os/program.ts';
import { run } from '../../src/os/run.ts';
import { driverSuite, engineSpec, MACHINE } from '../contract/driver-suite.ts';
import { ENGINE_DATA, registryImages } from '../contract/real-engines.ts';
import { linkImages, whyNoRealGuest } from '../helpers/guest-image.ts';
import { type LoopbackRegistry, loopbackRegistry } from '../helpers/loopback-registry.ts';
import { putImage } from '../helpers/registry-image.ts';

// Every test boots a guest, some three times, without KVM.
vi.setConfig({ testTimeout: 900_000, hookTimeout: 300_000 });

const reason = await whyNoRealGuest();

/** What a machine leaves after one start and stop: the keys, and the state of a guest whose engines have run. */
const LEFT = ['key', 'key.pub', 'host-key', 'host-key.pub', join('frozen', 'state'), join('frozen', 'root.qcow2')];
const never = new AbortController().signal;

/** Prepares a machine from which the others start, instead of a boot each. */
async function firstMachine(home: string): Promise<string> {
  const directory = join(home, 'first');
  mkdirSync(directory, { mode: 0o700 });
  const env = { ...process.env, RDCTL_HOME: home, HOME: join(home, 'user') };
  const driver = await qemu.open({ directory, logs: home, log: () => undefined, now: Date.now, env });
  await driver.machine.perform({ do: 'start', spec: MACHINE }, never);
  for (const name of ['containerd', 'moby'] as const) {
    await driver.engines[name].perform({ do: 'start', spec: engineSpec(name) }, never);
    await driver.engines[name].perform({ do: 'stop' }, never);
  }
  await driver.machine.perform({ do: 'stop' }, never);
  await driver.release?.();
  return directory;
}

async function inGuest(driver: Driver, ...command: string[]): Promise<string> {
  const access = driver.access?.();
  if (!access) throw new Error('the driver tells no way in');
  return (await run([...access.ssh, '-T', access.target, shellLine(command)])).stdout;
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
  mkdirSync(join(home, 'user'));
  let first: string;
  beforeAll(async () => {
    first = await firstMachine(home);
    registry = await loopbackRegistry();
    for (const name of ['one:1', 'other/two:1']) await putImage(registry.host, { name, content: 'file' });
  });
  afterAll(async () => {
    await registry?.close();
    rmSync(home, { recursive: true, force: true });
  });
  driverSuite({
    factory: reaching(qemu, () => registry),
    env: { RDCTL_HOME: home, HOME: join(home, 'user') },
    powers: { room: true, liveCopy: true },
    async prepare(directory) {
      mkdirSync(join(directory, 'frozen'), { mode: 0o700 });
      // QEMU opens them read-only, so another machine never writes to them.
      for (const name of [...LEFT, join('frozen', 'frozen.json')]) linkSync(join(first, name), join(directory, name));
    },
    ...registryImages(() => registry),
    async crash(driver, name) {
      const unit = name === 'moby' ? 'rdctl-dockerd.service' : 'rdctl-containerd.service';
      const script = `systemctl kill --kill-who=main --signal=KILL ${unit}
while [ "$(systemctl show --property=MainPID --value ${unit})" != 0 ]; do sleep 0.1; done`;
      await inGuest(driver, 'sh', '-c', script);
    },
    data: ENGINE_DATA,
    async traces(directory) {
      const processes = (await readProcesses()).filter(({ argv }) => argv.some((part) => part.includes(directory)));
      const programs = processes.map(({ pid, argv }) => `${pid} ${argv.join(' ')}`);
      return [...programs, ...(existsSync(join(directory, 'run')) ? [join(directory, 'run')] : [])];
    },
  });
});
