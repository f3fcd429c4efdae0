import { afterAll, beforeAll, describe, test } from 'vitest';
import { host } from '../../src/drivers/index.ts';
import { hostPlaces } from '../../src/drivers/machines/host/places.ts';
import { readProcess } from '../../src/os/process-table.ts';
import { run } from '../../src/os/run.ts';
import { driverSuite } from '../contract/driver-suite.ts';
import { ENGINE_DATA, registryImages } from '../contract/real-engines.ts';
import { hostTraces, pidOf } from '../helpers/host-instance.ts';
import { type LoopbackRegistry, loopbackRegistry } from '../helpers/loopback-registry.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';
import { putImage } from '../helpers/registry-image.ts';

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
    ...registryImages(() => registry),
    async crash(_driver, name, directory) {
      const program = name === 'moby' ? 'dockerd' : 'containerd';
      const pid = await pidOf(directory, program);
      process.kill(pid, 'SIGKILL');
      await ended(pid);
    },
    data: ENGINE_DATA,
    traces: hostTraces,
    async damage(directory) {
      const { chain } = hostPlaces(directory);
      await run(['iptables', '--wait', '10', '-F', chain]);
    },
  });
});

/** A killed process takes a moment to disappear. */
async function ended(pid: number): Promise<void> {
  while (await readProcess(pid)) await new Promise((resolve) => setImmediate(resolve));
}
