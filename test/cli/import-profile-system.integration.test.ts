import { createWriteStream, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Io } from '../../cli/command.ts';
import { policyPlaces } from '../../profiles/policies/places.ts';
import { run } from '../../src/os/run.ts';
import { rdctl, type Stage } from '../helpers/cli.ts';
import { holding, standIn } from '../helpers/policy-programs.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const importProfile = (argv: readonly string[], stage: Stage) =>
  rdctl(['import-profile', ...argv], { env: {}, ...stage });

test('import-profile reads a pipe', async () => {
  const cwd = temporaryDirectory();
  await run(['mkfifo', join(cwd, 'locked.json')]);
  const reading = importProfile(['locked.json', '-o', 'json'], { cwd });
  createWriteStream(join(cwd, 'locked.json')).end('{"version": 19, "kubernetes": {"enabled": false}}');
  expect(await reading).toMatchObject({ exit: 0, err: expect.stringMatching(/^1 kept, /) });
});

describe('import-profile --from-system', () => {
  const onSystem = (platform: 'win32', policies: NonNullable<Io['policies']>) =>
    importProfile(['--from-system', '-o', 'json'], { cwd: temporaryDirectory(), platform, policies });

  test('reads the registry through the program that exports it', async () => {
    const key = 'HKLM\\SOFTWARE\\Policies\\Rancher Desktop';
    const { programs, calls } = standIn(holding(key, readFileSync('test/golden/policies/reg-query.txt', 'utf8')));
    const { exit, out, err } = await onSystem('win32', { places: policyPlaces({}, 'win32', ''), programs });
    expect(exit).toBe(0);
    expect(calls().map(([verb, at]) => `${verb} ${at}`)).toEqual([`query ${key}`, `export ${key}`]);
    expect(JSON.parse(out)).toMatchObject({
      settings: { images: { namespace: 'team' }, containerEngine: { name: 'moby' } },
      locked: { containerEngine: { name: true } },
    });
    expect(err).toMatch(/~ version \(locked\): migrated from 10 to 19\n/);
  });

  test('reports every searched place when there is no profile', async () => {
    const { programs } = standIn({});
    expect(await onSystem('win32', { places: policyPlaces({}, 'win32', ''), programs })).toMatchObject({
      exit: 1,
      err: expect.stringMatching(
        /^Error: this computer has no deployment profiles\nlooked at HKLM\\SOFTWARE\\Policies\\Rancher Desktop\n(?:looked at .*\n){3}/,
      ),
    });
  });
});
