import { expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { startService } from '../helpers/service.ts';

test('start retries a backend that gave up, and --wait waits for that attempt', async () => {
  const { env, client, converged } = await startService({ env: { RDCTL_SIMULATED_FAULTS: 'moby.start:terminal' } });
  await expect(converged()).rejects.toMatchObject({ code: 'ERR_CONVERGE_FAILED' });
  const before = await client.status();
  expect(await rdctl(['start'], { env })).toMatchObject({ exit: 0 });
  expect((await client.status()).generation).toBe(before.generation + 1);
  await expect(converged()).rejects.toMatchObject({ code: 'ERR_CONVERGE_FAILED' });
  expect(await rdctl(['start', '--wait'], { env })).toMatchObject({ exit: 1 });
  const after = await client.status();
  expect(after).toMatchObject({ backendState: 'ERROR', generation: before.generation + 2 });
  expect(after.counters.failures).toBe(before.counters.failures + 2);
});
