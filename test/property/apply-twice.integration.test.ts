import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/json.ts';
import { setLeaf } from '../../src/settings/leaf-paths.ts';
import { rdctl } from '../helpers/cli.ts';
import { recordingProxy } from '../helpers/recording-proxy.ts';
import { rounds } from '../helpers/rounds.ts';
import { startService } from '../helpers/service.ts';
import { payloadArbitrary } from '../helpers/settings-arbitrary.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** Offered by the simulated cluster; the last one is older, so some profiles destroy data. */
const VERSIONS = ['1.33.4', '1.33.3', '1.32.8'];

interface Wanted {
  settings: JsonObject;
  state: string;
  prune: string[];
}

/** Profiles that are valid on their own; whether the driver supports them shows when they are applied. */
function profiles(): fc.Arbitrary<Wanted> {
  return fc
    .record({
      settings: payloadArbitrary('linux'),
      state: fc.constantFrom('started', 'stopped', 'unmanaged'),
      prune: fc.subarray(['diagnostics.mutedChecks']),
      version: fc.option(fc.constantFrom(...VERSIONS), { nil: undefined }),
      muted: fc.dictionary(fc.constantFrom('A', 'B', 'C'), fc.constantFrom(true, false, null), { maxKeys: 3 }),
    })
    .map(({ settings, state, prune, version, muted }) => {
      const copy = structuredClone(settings);
      setLeaf(copy, 'diagnostics.mutedChecks', muted);
      setLeaf(copy, 'kubernetes.version', version ?? '');
      // Extensions are installed, not set.
      if (copy.application) setLeaf(copy, 'application.extensions', {});
      return { settings: copy, state, prune };
    });
}

test('apply, restart the service, apply: the second apply writes nothing', async () => {
  let applied = 0;
  await fc.assert(
    fc.asyncProperty(profiles(), profiles(), async (first, second) => {
      const cwd = temporaryDirectory();
      let running = await startService();
      await running.converged();
      for (const profile of [first, second]) {
        writeFileSync(join(cwd, 'p.json'), JSON.stringify({ apiVersion: 'rdctl/v1', kind: 'Profile', ...profile }));
        const proxy = await recordingProxy(running.service.connection);
        const argv = ['apply', '-f', 'p.json', '--allow-reset'];
        const { exit, err } = await rdctl(argv, { cwd, env: proxy.env });
        if (exit === 3) {
          // Refused for a reason that only the live side knows: then nothing at all was sent.
          expect(proxy.writes()).toEqual([]);
          continue;
        }
        expect(err).not.toMatch(/^Error/m);
        expect(exit).toBe(0);
        expect(proxy.writes().filter((line) => line === 'PUT /v1/settings').length).toBeLessThanOrEqual(1);
        applied += 1;
        await running.service.stop('restart');
        running = await startService({ home: running.home });
        const again = await recordingProxy(running.service.connection);
        expect(await rdctl(argv, { cwd, env: again.env })).toMatchObject({
          exit: 0,
          out: expect.stringContaining('Nothing to change.'),
        });
        expect(again.writes()).toEqual([]);
      }
      await running.service.stop('the run is over');
    }),
    { numRuns: rounds(4, 10) },
  );
  expect(applied).toBeGreaterThan(rounds(2, 5));
}, 120_000);
