import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { integrationTargets } from '../../src/features/host-integration/targets.ts';
import { places } from '../../src/state/places.ts';
import { rdctl } from '../helpers/cli.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

// A user without a passwd entry and without HOME, like a container that runs under an arbitrary uid.
vi.mock('node:os', async (original) => ({
  ...(await original<typeof import('node:os')>()),
  homedir: () => {
    throw Object.assign(new Error('A system error occurred: uv_os_homedir returned ENOENT'), { code: 'ENOENT' });
  },
}));

const XDG = ['XDG_DATA_HOME', 'XDG_CONFIG_HOME', 'XDG_STATE_HOME', 'XDG_CACHE_HOME'];

test.each(['list-settings', 'paths', 'status', 'serve', 'start', 'shutdown'])(
  '%s says what to set',
  async (command) => {
    const { exit, out, err } = await rdctl([command], { env: {} });
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toMatch(
      /^Error: the home directory of the user is not known\nSet HOME .* or RDCTL_HOME to a full path\.\n/,
    );
  },
);

test('HOME alone is enough', async () => {
  const HOME = temporaryDirectory();
  const { exit, out } = await rdctl(['paths'], { env: { HOME } });
  expect({ exit, paths: JSON.parse(out) }).toMatchObject({
    exit: 0,
    paths: { config: join(HOME, '.config', 'rdctl') },
  });
});

test('RDCTL_HOME alone is enough, also for the service', async () => {
  const { env, converged } = await startService();
  await converged();
  for (const argv of [['list-settings'], ['status'], ['plan', '-f', 'examples/moby.yaml']]) {
    expect(await rdctl(argv, { env }), argv.join(' ')).toMatchObject({ exit: 0 });
  }
  const paths = await rdctl(['paths'], { env });
  expect(paths.exit).toBe(0);
  expect(JSON.parse(paths.out)).not.toHaveProperty('deploymentProfileUser');
});

test('RDCTL_HOME alone is enough for a reset', async () => {
  const env = { RDCTL_HOME: temporaryDirectory() };
  expect(await rdctl(['reset', '--factory'], { env })).toMatchObject({ exit: 0, out: '' });
});

test('user files are not looked for in the working directory', () => {
  const env = Object.fromEntries(XDG.map((name) => [name, `/tmp/${name}`]));
  const here = places(env, 'linux', '');
  expect(integrationTargets({ env, platform: 'linux', homedir: '', places: here, self: ['rdctl'] })).toEqual({
    offBecause: 'the home directory of the user is not known',
  });
});
