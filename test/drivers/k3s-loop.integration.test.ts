import { expect, onTestFinished, test } from 'vitest';
import type { Driver } from '../../src/drivers/driver.ts';
import { simulated } from '../../src/drivers/machines/simulated/index.ts';
import { systemClock } from '../../src/os/clock.ts';
import type { Desired } from '../../src/reconcile/contract.ts';
import { createControllers } from '../../src/reconcile/controllers.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { defaultSettings } from '../../src/settings/defaults.ts';
import { k3sMachine } from '../helpers/k3s-machine.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** The loop of the service on a simulated machine, with k3s on this host as its cluster. */
async function scene() {
  const machine = await k3sMachine();
  const context = { directory: temporaryDirectory(), logs: temporaryDirectory(), log: () => undefined, now: Date.now };
  const model = await simulated.open({ ...context, env: { RDCTL_SIMULATED_LATENCY_MS: '0' } });
  const driver: Driver = { ...model, cluster: machine.cluster };
  let generation = 1;
  const desiredOf = (kubernetes: object): Desired => {
    const settings = defaultSettings({ platform: 'linux', arch: 'x64' });
    Object.assign(settings.kubernetes, { port: machine.port, enabled: true }, kubernetes);
    return { settings, ...DEFAULT_BLOCKS, power: 'started', generation: generation++ };
  };
  const controllers = createControllers({
    driver,
    desired: desiredOf({ version: '1.33.6' }),
    clock: systemClock,
    random: () => 0.5,
    log: () => undefined,
  });
  onTestFinished(() => controllers.close());
  const converged = async () => {
    await controllers.quiesce(AbortSignal.timeout(60_000));
    expect(controllers.status()).toMatchObject({ converged: true, generation: generation - 1 });
  };
  return {
    ...machine,
    converged,
    controllers,
    async become(kubernetes: object) {
      controllers.desire(desiredOf(kubernetes));
      await converged();
      return controllers.status().cluster;
    },
  };
}

test('the loop starts k3s, upgrades it, resets it for a downgrade even while it is off, and switches it off', {
  timeout: 240_000,
}, async () => {
  const { become, converged, controllers, database, events } = await scene();
  await converged();
  expect(controllers.status().cluster).toMatchObject({ state: 'running', ready: true, installedVersion: '1.33.6' });
  expect(await become({ version: '1.32.9' })).toMatchObject({ state: 'running', installedVersion: '1.32.9' });
  expect(database()).toMatchObject({ version: 'v1.32.9+k3s1', starts: 1 });
  expect(events).toContain('moby removes pods');
  expect(await become({ version: '1.33.6' })).toMatchObject({ state: 'running', installedVersion: '1.33.6' });
  expect(database()).toMatchObject({ version: 'v1.33.6+k3s2', starts: 2 });
  expect(await become({ version: '', traefik: false, enabled: false })).toMatchObject({
    state: 'stopped',
    installedVersion: '1.33.6',
  });
  expect(await become({ version: '' })).toMatchObject({ state: 'running', installedVersion: '1.33.6' });
  await become({ version: '', enabled: false });
  expect(await become({ version: '1.32.9' })).toMatchObject({ state: 'running', installedVersion: '1.32.9' });
  expect(database()).toMatchObject({ version: 'v1.32.9+k3s1', starts: 1 });
});
