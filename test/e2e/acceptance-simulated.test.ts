import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { toolHome } from '../helpers/tool-home.ts';

/** The README's first screen, with the built tool as a program and an empty home. */
describe('with nothing but Node', () => {
  test('one command leads to a converged desktop; repeating it writes nothing, also after a service restart', async () => {
    const { rdctl, status } = toolHome();
    const first = await rdctl('apply', '-f', 'examples/moby.yaml', '--driver', 'simulated');
    expect(first).toMatchObject({ exit: 0 });
    expect(first.out + first.err).toContain('SIMULATED');
    const converged = await status();
    expect(converged).toMatchObject({ converged: true, backendState: 'DISABLED', driver: { name: 'simulated' } });

    expect(await rdctl('apply', '-f', 'examples/moby.yaml')).toMatchObject({ exit: 0 });
    const after = await status();
    expect(after.generation).toBe(converged.generation);
    expect(after.counters).toEqual(converged.counters);

    expect(await rdctl('shutdown')).toMatchObject({ exit: 0, out: 'Shutting down.\n' });
    expect(await rdctl('apply', '-f', 'examples/moby.yaml')).toMatchObject({ exit: 0 });
    expect(await status()).toMatchObject({ converged: true, counters: { settingsPuts: 0 } });
  });

  test('a service killed during an apply leaves whole settings, and the next apply completes them', async () => {
    const { home, rdctl, servicePid, status } = toolHome({ RDCTL_SIMULATED_LATENCY_MS: '1000' });
    expect(await rdctl('apply', '-f', 'examples/moby.yaml', '--driver', 'simulated')).toMatchObject({ exit: 0 });
    const applying = rdctl('apply', '-f', 'examples/containerd.yaml');
    await expect.poll(async () => (await status()).backendState, { timeout: 20_000 }).toMatch(/STOPPING|STARTING/);
    process.kill(servicePid(), 'SIGKILL');
    expect((await applying).exit).toBe(1);
    const stored = JSON.parse(readFileSync(join(home, 'config', 'settings.json'), 'utf8'));
    expect(stored.containerEngine.name).toBe('containerd');

    expect(await rdctl('apply', '-f', 'examples/containerd.yaml')).toMatchObject({ exit: 0 });
    expect(await status()).toMatchObject({
      converged: true,
      engine: { name: 'containerd' },
      counters: { settingsPuts: 0 },
    });
  });

  test('a refused apply ends the service that it started, each time, and no other', async () => {
    const { rdctl, rdctlWith, status, home } = toolHome();
    const stateFile = join(home, 'state', 'state.json');
    const stdin =
      'apiVersion: rdctl/v1\nkind: Profile\nmetadata: { name: x }\nsettings:\n  version: 19\n  kubernetes: { version: 1.2.3 }\nstate: started\n';
    for (const _ of ['once', 'twice']) {
      const refused = await rdctlWith({ stdin }, 'apply', '-f', '-', '--driver', 'simulated');
      expect(refused.exit).toBe(3);
      expect(refused.err).toContain('\nThe service that was started for this has ended again.\nError: ');
      expect((await rdctl('status')).err).toContain('No service is running');
      // Neither the driver nor the settings that it began with are this home's.
      expect([stateFile, join(home, 'config', 'settings.json')].filter(existsSync)).toEqual([]);
    }
    expect(await rdctl('up', '--driver', 'simulated')).toMatchObject({ exit: 0 });
    expect((await rdctlWith({ stdin }, 'apply', '-f', '-')).exit).toBe(3);
    expect(await status()).toMatchObject({ converged: true });
    await rdctl('down');
    expect((await rdctlWith({ stdin }, 'apply', '-f', '-')).exit).toBe(3);
    expect(JSON.parse(readFileSync(stateFile, 'utf8'))).toMatchObject({ driver: 'simulated', power: 'started' });
  });

  test('bare settings round-trip, before and after a service restart', async () => {
    const { rdctl, rdctlWith, status } = toolHome();
    expect(await rdctl('start', '--driver', 'simulated', '--wait')).toMatchObject({ exit: 0 });
    const { out: stdin } = await rdctl('list-settings');
    expect(await rdctlWith({ stdin }, 'apply', '-f', '-')).toMatchObject({ exit: 0 });
    expect(await status()).toMatchObject({ counters: { settingsPuts: 0 } });
    await rdctl('shutdown');
    expect(await rdctl('start', '--wait')).toMatchObject({ exit: 0 });
    expect(await rdctlWith({ stdin }, 'apply', '-f', '-')).toMatchObject({ exit: 0 });
    expect(await status()).toMatchObject({ counters: { settingsPuts: 0 } });
  });
});
