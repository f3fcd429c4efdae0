import { describe, expect, test } from 'vitest';
import type { DriverFactory, Probe } from '../../src/drivers/driver.ts';
import { chooseDriver, DRIVERS, host, qemu } from '../../src/drivers/index.ts';
import { simulated } from '../../src/drivers/machines/simulated/index.ts';

const YES: Probe = { usable: true, detail: 'all is there' };
const NO: Probe = { usable: false, reason: 'no engine', fix: 'install one' };

function drivers(answer: Probe): readonly DriverFactory[] {
  return [simulated, { ...host, probe: async () => answer }];
}

describe('the default driver', () => {
  test('is the first real one that can run, never the simulation', async () => {
    const { factory, reason } = await chooseDriver({ env: {}, drivers: drivers(YES) });
    expect({ name: factory.name, reason }).toEqual({
      name: 'host',
      reason: 'it is the first that can run here (all is there)',
    });
    expect(DRIVERS.filter((driver) => driver.automatic && driver.simulated)).toEqual([]);
  });

  test('is a virtual machine rather than this host where an image exists', async () => {
    const both = [simulated, { ...qemu, probe: async () => YES }, { ...host, probe: async () => YES }];
    expect((await chooseDriver({ env: {}, drivers: both })).factory.name).toBe('qemu');
    const without = [simulated, { ...qemu, probe: async () => NO }, { ...host, probe: async () => YES }];
    expect((await chooseDriver({ env: {}, drivers: without })).factory.name).toBe('host');
    expect(DRIVERS.map(({ name }) => name)).toEqual(['simulated', 'qemu', 'host']);
  });

  test('can be overridden', async () => {
    expect((await chooseDriver({ requested: 'simulated', env: {}, drivers: drivers(YES) })).factory.name).toBe(
      'simulated',
    );
    expect((await chooseDriver({ requested: '', env: {}, drivers: drivers(YES) })).factory.name).toBe('host');
  });

  test('stays the one that the stored state belongs to', async () => {
    const kept = await chooseDriver({ recorded: 'simulated', env: {}, drivers: drivers(YES) });
    expect(kept.factory.name).toBe('simulated');
    const same = { requested: 'simulated', recorded: 'simulated', env: {}, drivers: drivers(YES) };
    expect((await chooseDriver(same)).factory.name).toBe('simulated');
    const other = { requested: 'host', recorded: 'simulated', env: {}, drivers: drivers(YES) };
    await expect(chooseDriver(other)).rejects.toMatchObject({
      code: 'ERR_WRONG_TARGET',
      message: expect.stringContaining('belongs to the driver simulated'),
      advice: expect.stringContaining('RDCTL_HOME'),
    });
  });

  test("fails with each driver's reason and remedy", async () => {
    await expect(chooseDriver({ env: {}, drivers: drivers(NO) })).rejects.toMatchObject({
      code: 'ERR_NO_DRIVER',
      message: 'no driver can run here',
      details: ['host: no engine; fix: install one'],
      advice: 'Fix one of these, or add `--driver simulated` to try rdctl with a model that runs nothing.',
    });
    for (const choice of [{ requested: 'host' }, { recorded: 'host' }]) {
      await expect(chooseDriver({ ...choice, env: {}, drivers: drivers(NO) })).rejects.toMatchObject({
        code: 'ERR_NO_DRIVER',
        message: 'the driver host cannot run here: no engine',
        advice: 'Fix: install one',
        // One line of reasons would repeat the same.
        details: [],
      });
    }
    await expect(chooseDriver({ requested: 'hsot', env: {}, drivers: drivers(YES) })).rejects.toMatchObject({
      code: 'ERR_USAGE',
      advice: 'Available drivers: simulated, host.',
    });
  });
});
