import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

function userEnv(): Record<string, string> {
  const home = temporaryDirectory();
  const names = ['DATA', 'CONFIG', 'STATE', 'CACHE'].map((name) => [
    `XDG_${name}_HOME`,
    join(home, name.toLowerCase()),
  ]);
  return { HOME: home, ...Object.fromEntries(names) };
}

describe('setup', () => {
  test('makes and removes the autostart entry, silently', async () => {
    const env = userEnv();
    const entry = join(env.HOME ?? '', 'config', 'autostart', 'rdctl.desktop');
    expect(await rdctl(['setup', '--auto-start=true'], { env })).toEqual({ exit: 0, out: '', err: '' });
    const launcher = /^Exec="(.*)" start$/m.exec(readFileSync(entry, 'utf8'))?.[1] ?? '';
    expect(readFileSync(launcher, 'utf8')).toContain('dist/rdctl.cjs\' "$@"');
    for (const again of [1, 2]) {
      expect([again, await rdctl(['setup', '--auto-start=false'], { env })]).toEqual([
        again,
        { exit: 0, out: '', err: '' },
      ]);
      expect(existsSync(entry)).toBe(false);
    }
  });

  test('without a change is an error', async () => {
    const { exit, out, err } = await rdctl(['setup'], { env: userEnv() });
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toMatch(/^Error: no changes were specified\n/);
    expect((await rdctl(['setup', 'x', '--auto-start'], { env: userEnv() })).exit).toBe(1);
  });

  test('is not for an installation that keeps to itself', async () => {
    const { exit, err } = await rdctl(['setup', '--auto-start=true'], {
      env: { ...userEnv(), RDCTL_HOME: temporaryDirectory() },
    });
    expect(exit).toBe(1);
    expect(err).toContain('RDCTL_HOME keeps this installation to itself');
  });
});

describe('paths', () => {
  async function keys(env: Record<string, string>, platform: NodeJS.Platform = 'linux') {
    const { exit, out, err } = await rdctl(['paths'], { env, platform });
    expect({ exit, err }).toEqual({ exit: 0, err: '' });
    expect(out.split('\n')).toHaveLength(2);
    const value: Record<string, string> = JSON.parse(out);
    return value;
  }

  test('ours, on one line', async () => {
    const env = userEnv();
    const value = await keys(env);
    expect(Object.keys(value)).toEqual([
      'appHome',
      'altAppHome',
      'config',
      'logs',
      'cache',
      'integration',
      'resources',
      'deploymentProfileSystem',
      'altDeploymentProfileSystem',
      'deploymentProfileUser',
      'extensionRoot',
      'snapshots',
      'containerdShims',
    ]);
    expect(value).toMatchObject({
      appHome: `${env.HOME}/data/rdctl`,
      config: `${env.HOME}/config/rdctl`,
      logs: `${env.HOME}/state/rdctl/logs`,
      cache: `${env.HOME}/cache/rdctl`,
      integration: `${env.HOME}/data/rdctl/bin`,
      deploymentProfileSystem: '/etc/rancher-desktop',
      altDeploymentProfileSystem: '/usr/etc/rancher-desktop',
      deploymentProfileUser: `${env.HOME}/config`,
    });
  });

  test('those of the compatible application in drop-in mode, in its order', async () => {
    const env: Record<string, string> = { ...userEnv(), RDCTL_COMPAT: 'rancher-desktop' };
    const value = await keys(env);
    expect(Object.keys(value)).toEqual([
      'appHome',
      'altAppHome',
      'config',
      'logs',
      'cache',
      'lima',
      'integration',
      'resources',
      'deploymentProfileSystem',
      'altDeploymentProfileSystem',
      'deploymentProfileUser',
      'extensionRoot',
      'snapshots',
      'containerdShims',
      'oldUserData',
    ]);
    expect(value).toMatchObject({
      appHome: `${env.HOME}/data/rancher-desktop`,
      altAppHome: expect.stringMatching(/\/\.rd$/),
      logs: `${env.HOME}/data/rancher-desktop/logs`,
      lima: `${env.HOME}/data/rancher-desktop/lima`,
      integration: expect.stringMatching(/\/\.rd\/bin$/),
      extensionRoot: `${env.HOME}/data/rancher-desktop/extensions`,
      oldUserData: `${env.HOME}/config/Rancher Desktop`,
    });
  });

  test('of another platform have its keys', async () => {
    const value = await keys(userEnv(), 'darwin');
    expect(value).toMatchObject({ deploymentProfileSystem: '/Library/Managed Preferences' });
    expect(Object.keys(await keys(userEnv(), 'win32'))).not.toContain('integration');
  });
});
