import { expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { startService } from '../helpers/service.ts';

const WANTED = { version: 19, containerEngine: { name: 'containerd' } };

test('a service whose driver does not answer guarantees nothing in its plans', async () => {
  const { client, env, service } = await startService({
    env: { RDCTL_SIMULATED_FAULTS: 'moby.observe:terminal' },
    stopLimitMs: 0,
  });
  const plan = await client.plan({ settings: WANTED, state: 'unmanaged', prune: [] });
  expect(plan.summary).toMatchObject({ nothingLost: false, restarts: 1 });
  expect(plan.changes).toMatchObject([{ path: 'containerEngine.name', severity: 'restart' }]);
  expect(plan.blastRadius[0]?.what).toMatch(/^running state unknown: /);
  expect(plan.warnings.filter((warning) => warning.startsWith('Running state unknown'))).toHaveLength(1);

  expect(await client.proposal(WANTED)).toHaveProperty(['containerEngine.name']);
  expect((await client.putSettings(WANTED)).text).not.toContain('no restart required');

  expect(await client.status()).toMatchObject({
    machine: { state: 'unknown' },
    engine: { name: 'containerd', state: 'unknown' },
    cluster: { state: 'unknown' },
  });
  const { out } = await rdctl(['status'], { env });
  expect(out).toMatch(/^Machine +unknown$/m);
  expect(out).toMatch(/^Engine +containerd, unknown$/m);
  expect(out).toMatch(/^Cluster +unknown$/m);
  await service.stop('the test is over');
});
