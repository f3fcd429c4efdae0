import { chmodSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** A home that others can write, with files that would be trusted in a private one. */
function openHome(): Record<string, string> {
  const home = temporaryDirectory();
  writeFileSync(join(home, 'app-engine.json'), '{"user":"user","password":"theirs","port":9,"pid":1}');
  chmodSync(home, 0o777);
  const umask = process.umask(0o022);
  onTestFinished(() => void process.umask(umask));
  vi.stubEnv('HOME', home);
  onTestFinished(() => void vi.unstubAllEnvs());
  return { HOME: home, RDCTL_HOME: home };
}

test.each([
  ['paths'],
  ['help'],
  ['help', 'set'],
  ['version'],
  ['validate', 'examples/moby.yaml'],
  ['completion', 'bash'],
])('%s %s works in an installation that others can write', async (...argv) => {
  const env = openHome();
  expect(await rdctl(argv, { env })).toMatchObject({ exit: 0 });
  expect(readdirSync(env.HOME ?? '')).toEqual(['app-engine.json']);
});

test.each([['list-settings'], ['status'], ['explain', 'containerEngine.name']])(
  '%s %s is refused there',
  async (...argv) => {
    const env = openHome();
    const { exit, err } = await rdctl(argv, { env });
    expect(exit).not.toBe(0);
    expect(err).toContain('can be written by other users');
  },
);
