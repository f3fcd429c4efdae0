import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startService } from '../helpers/service.ts';

test('from nothing to a converged desktop, and from there to another by a write', async () => {
  const { client, converged } = await startService({ power: 'started' });
  const first = await converged();
  expect(first).toMatchObject({ backendState: 'STARTED', driver: { name: 'simulated', simulated: true } });

  const { text, generation } = await client.putSettings({ version: 19, containerEngine: { name: 'containerd' } });
  expect(text).toBe('reconfiguring Rancher Desktop to apply changes (this may take a while)');
  const second = await converged(generation);
  expect(second.engine).toMatchObject({ name: 'containerd', state: 'running' });
  expect(second.engines.moby.state).toBe('stopped');
  expect(second.counters).toMatchObject({ settingsPuts: 1, settingsWrites: 1 });
});

test('the connection file exists while it runs, and only its user can read it', async () => {
  const { service, here } = await startService({ power: 'stopped' });
  const text = readFileSync(here.connectionFile, 'utf8');
  const { port, password } = service.connection;
  expect(text).toBe(`${JSON.stringify({ user: 'user', password, port, pid: process.pid, revision: 1 }, null, 2)}\n`);
  expect(Buffer.from(password, 'base64url')).toHaveLength(32);
  expect(statSync(here.connectionFile).mode & 0o777).toBe(0o600);
  await service.stop('enough');
  expect(existsSync(here.connectionFile)).toBe(false);
});

test('a plan includes a container that was started just before', async () => {
  const { client, here, converged } = await startService({ power: 'started' });
  await converged();
  const request = {
    settings: { containerEngine: { name: 'containerd' } },
    state: 'unmanaged' as const,
    prune: [],
  };
  const file = join(here.state, 'drivers', 'simulated', 'machine.json');
  for (const count of [1, 2, 3]) {
    const model = JSON.parse(readFileSync(file, 'utf8'));
    model.engines.moby.containers.push({ name: `c${count}`, running: true });
    writeFileSync(file, JSON.stringify(model));
    const { blastRadius, summary, warnings } = await client.plan(request);
    expect(blastRadius[0]?.what).toContain(`stops ${count} container`);
    expect(summary.nothingLost).toBe(false);
    expect(warnings).toEqual([]);
  }
});
