import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { policyPrograms } from '../../profiles/policies/places.ts';
import type { JsonObject } from '../../src/json.ts';
import { rdctl } from '../helpers/cli.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

// A plan without a service says what the next service would do, including deployment profiles.

function stage(profiles: { defaults?: JsonObject; locked?: JsonObject }) {
  const directory = temporaryDirectory();
  const files = { defaults: join(directory, 'defaults.json'), locked: join(directory, 'locked.json') };
  for (const kind of ['defaults', 'locked'] as const) {
    const profile = profiles[kind];
    if (profile) writeFileSync(files[kind], JSON.stringify({ version: 19, ...profile }));
  }
  const home = temporaryDirectory();
  const policies = { places: [{ format: 'json' as const, ...files }], programs: policyPrograms() };
  const env = { RDCTL_HOME: home, RDCTL_SIMULATED_LATENCY_MS: '0' };
  const run = (command: string, settings: JsonObject, ...argv: string[]) =>
    rdctl([command, '-f', '-', ...argv], { env, policies, stdin: JSON.stringify({ version: 19, ...settings }) });
  return { files, home, run };
}

describe('plan and diff', () => {
  test('a locked field is blocked, naming the policy and whom to ask', async () => {
    const { run, files } = stage({ locked: { images: { namespace: 'held' } } });
    const wanted = { images: { namespace: 'mine', showAll: false } };
    const { exit, out } = await run('plan', wanted);
    expect(exit).toBe(3);
    expect(out).toContain('  ! images.namespace: held → mine (<stdin>');
    expect(out).toContain(`      lock: "images.namespace" is locked by ${files.locked}; ask your administrator.\n`);
    expect(out).toContain('1 blocked');
    const diff = await run('diff', wanted);
    expect(diff.exit).toBe(2);
    expect(diff.out).toContain(
      `cannot be changed: "images.namespace" is locked by ${files.locked}; ask your administrator.`,
    );
  });

  test('what the profiles contain already is no change', async () => {
    const { run } = stage({ defaults: { images: { namespace: 'team' } }, locked: { kubernetes: { enabled: false } } });
    const wanted = { images: { namespace: 'team' }, kubernetes: { enabled: false } };
    expect(await run('diff', wanted)).toMatchObject({ exit: 0, out: expect.stringContaining('No differences.') });
  });

  test('the estimate is what the service then reports', async () => {
    const { run, files, home } = stage({
      defaults: { images: { namespace: 'team' } },
      locked: { containerEngine: { name: 'containerd' } },
    });
    const settings = { containerEngine: { name: 'moby' }, images: { namespace: 'team', showAll: false } };
    const { out } = await run('plan', settings, '-o', 'json');
    const estimated = JSON.parse(out);
    const { client } = await startService({ home, power: 'stopped', policies: files });
    const told = await client.plan({ settings, state: 'unmanaged', prune: [] });
    const shape = (changes: { path: string; before?: unknown; after?: unknown; blocked?: unknown }[]) =>
      changes.map(({ path, before, after, blocked }) => ({ path, before, after, blocked }));
    expect(shape(estimated.changes)).toEqual(shape(told.changes));
  });

  test('unknown names are warnings, and a bad profile is an error', async () => {
    const { run, files } = stage({ locked: { nonsense: 1 } });
    expect((await run('plan', {})).out).toContain(`warning: ${files.locked}: unknown settings "nonsense" are ignored.`);
    writeFileSync(files.locked, '{');
    const { exit, err } = await run('plan', {});
    expect(exit).toBe(3);
    expect(err).toContain(`Error parsing deployment profile from ${files.locked}: it is not JSON`);
    expect(err).toContain('administrator');
  });
});

test('init writes what the next start uses', async () => {
  const directory = temporaryDirectory();
  const locked = join(directory, 'locked.json');
  writeFileSync(locked, JSON.stringify({ version: 19, images: { namespace: 'held' } }));
  const policies = {
    places: [{ format: 'json' as const, defaults: `${locked}.none`, locked }],
    programs: policyPrograms(),
  };
  const { out } = await rdctl(['init'], { env: { RDCTL_HOME: temporaryDirectory() }, policies });
  expect(out).toMatch(/^ +namespace: held$/m);
});
