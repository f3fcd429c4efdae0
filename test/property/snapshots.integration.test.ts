import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Model } from '../../src/drivers/machines/simulated/model.ts';
import { rounds } from '../helpers/rounds.ts';
import { startService } from '../helpers/service.ts';

/** A user action. */
type Deed =
  | { do: 'image'; engine: 'moby' | 'containerd'; name: string }
  | { do: 'memory'; gib: number }
  | { do: 'engine'; name: 'moby' | 'containerd' }
  | { do: 'cluster'; enabled: boolean }
  | { do: 'wipe' };

const engine = fc.constantFrom('moby' as const, 'containerd' as const);
const deed: fc.Arbitrary<Deed> = fc.oneof(
  fc.record({ do: fc.constant('image' as const), engine, name: fc.stringMatching(/^[a-z]{1,8}$/) }),
  fc.record({ do: fc.constant('memory' as const), gib: fc.integer({ min: 2, max: 32 }) }),
  fc.record({ do: fc.constant('engine' as const), name: engine }),
  fc.record({ do: fc.constant('cluster' as const), enabled: fc.boolean() }),
  fc.constant({ do: 'wipe' as const }),
);

test('whatever changes after a snapshot, a restore brings settings and state back', {
  timeout: 120_000,
}, async () => {
  const service = await startService();
  const file = join(service.here.state, 'drivers', 'simulated', 'machine.json');
  const model = (): Model => JSON.parse(readFileSync(file, 'utf8'));
  /** What a user sees. */
  const state = () => {
    const { engines, cluster } = model();
    const version = 'installedVersion' in cluster ? cluster.installedVersion : undefined;
    return { moby: engines.moby.images, containerd: engines.containerd.images, cluster: cluster.state, version };
  };
  const settings = async () => (await service.client.settings()).settings;
  async function ask(method: string, path: string, body: object = {}): Promise<void> {
    const answer = await service.client.request({ method, path, body: JSON.stringify(body) });
    expect(answer.body.toString()).toMatch(/success/);
    await service.converged();
  }
  async function put(change: object): Promise<void> {
    await service.client.putSettings({ version: 19, ...change });
    await service.converged();
  }
  async function carryOut(each: Deed): Promise<void> {
    switch (each.do) {
      case 'image': {
        const now = model();
        now.engines[each.engine].images.push(each.name);
        writeFileSync(file, JSON.stringify(now));
        return;
      }
      case 'memory':
        return put({ virtualMachine: { memoryInGB: each.gib } });
      case 'engine':
        return put({ containerEngine: { name: each.name } });
      case 'cluster':
        return put({ kubernetes: { enabled: each.enabled } });
      case 'wipe':
        return ask('PUT', '/v1/k8s_reset', { mode: 'wipe' });
    }
  }

  await service.converged();
  let round = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(deed, { maxLength: 4 }), fc.array(deed, { maxLength: 4 }), async (before, after) => {
      const name = `round ${round++}`;
      for (const each of before) await carryOut(each);
      const [wantedSettings, wantedState] = [await settings(), state()];
      await ask('POST', '/v1/snapshots', { name });
      for (const each of after) await carryOut(each);
      await ask('POST', `/v1/snapshot/restore?name=${encodeURIComponent(name)}`);
      expect(await settings()).toEqual(wantedSettings);
      expect(state()).toEqual(wantedState);
    }),
    { numRuns: rounds(4, 12) },
  );
});
