import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readProcess } from '../../src/os/process-table.ts';
import { pidOf } from '../helpers/host-instance.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';
import { toolHome } from '../helpers/tool-home.ts';

const reason = await whyNoRealEngine();

describe.skipIf(reason !== undefined)('the death of a real engine', () => {
  test.each([
    ['moby', 'dockerd'],
    ['moby', 'moby-containerd'],
    ['containerd', 'containerd'],
  ] as const)('%s: the first status after `kill -9` of %s reports it, and it comes back', async (engine, program) => {
    const { home, rdctl, status, servicePid } = toolHome();
    expect(await rdctl('apply', '-f', `examples/${engine}.yaml`)).toMatchObject({ exit: 0 });
    const directory = join(home, 'state', 'drivers', 'host');
    const files = () => readdirSync(`/proc/${servicePid()}/fd`).length;
    const kill = async () => {
      const pid = await pidOf(directory, program);
      process.kill(pid, 'SIGKILL');
      while (await readProcess(pid)) await new Promise((resolve) => setImmediate(resolve));
    };

    let open = 0;
    for (const round of [1, 2, 3]) {
      await kill();
      expect(await status()).toMatchObject({ converged: false });
      await expect
        .poll(async () => status(), { timeout: 30_000 })
        .toMatchObject({ converged: true, counters: { restarts: round } });
      if (round === 1) open = files();
    }
    await expect.poll(files).toBeLessThanOrEqual(open);
  });
});
