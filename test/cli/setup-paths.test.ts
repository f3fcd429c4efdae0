import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Platform } from '../../src/settings/field.ts';
import { requireAdopted } from '../../src/state/drop-in.ts';
import { places } from '../../src/state/places.ts';
import { rdctl } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { TOOL } from '../helpers/tool-program.ts';
import { fingerprint } from '../helpers/user-home.ts';

function userEnv(): Record<string, string> {
  const home = temporaryDirectory();
  const names = ['DATA', 'CONFIG', 'STATE', 'CACHE'].map((name) => [
    `XDG_${name}_HOME`,
    join(home, name.toLowerCase()),
  ]);
  return { HOME: home, ...Object.fromEntries(names) };
}

describe('setup', () => {
  test('creates and removes the autostart entry, silently', async () => {
    const env = userEnv();
    const entry = join(env.HOME ?? '', 'config', 'autostart', 'rdctl.desktop');
    expect(await rdctl(['setup', '--auto-start=true'], { env })).toEqual({ exit: 0, out: '', err: '' });
    const launcher = /^Exec="(.*)" start$/m.exec(readFileSync(entry, 'utf8'))?.[1] ?? '';
    expect(readFileSync(launcher, 'utf8')).toMatch(/^exec .*"\$@"$/m);
    expect(readFileSync(launcher, 'utf8')).toContain(TOOL);
    for (const again of [1, 2]) {
      expect([again, await rdctl(['setup', '--auto-start=false'], { env })]).toEqual([
        again,
        { exit: 0, out: '', err: '' },
      ]);
      expect(existsSync(entry)).toBe(false);
    }
  });

  test('leaves the settings unchanged', async () => {
    const env = userEnv();
    const file = join(env.HOME ?? '', 'config', 'rdctl', 'settings.json');
    for (const wanted of [true, false]) {
      expect((await rdctl(['setup', `--auto-start=${wanted}`], { env })).exit).toBe(0);
      expect(existsSync(file)).toBe(false);
    }
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, '{"version":19}');
    for (const wanted of [true, false]) {
      expect((await rdctl(['setup', `--auto-start=${wanted}`], { env })).exit).toBe(0);
      expect(readFileSync(file, 'utf8')).toBe('{"version":19}');
    }
  });

  test('fails without a change', async () => {
    const { exit, out, err } = await rdctl(['setup'], { env: userEnv() });
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toMatch(/^Error: no changes were specified\n/);
    expect((await rdctl(['setup', 'x', '--auto-start'], { env: userEnv() })).exit).toBe(1);
  });

  test('is refused for an isolated installation', async () => {
    const { exit, err } = await rdctl(['setup', '--auto-start=true'], {
      env: { ...userEnv(), RDCTL_HOME: temporaryDirectory() },
    });
    expect(exit).toBe(1);
    expect(err).toContain('RDCTL_HOME keeps this installation to itself');
  });
});

describe('in drop-in mode', () => {
  /** The entry as the other application leaves it, below the home directory. */
  const originals: Record<string, string> = {
    'config/rancher-desktop/settings.json': '{"version":10}',
    'config/autostart/rancher-desktop.desktop': '[Desktop Entry]\nExec=/opt/rancher-desktop/rancher-desktop\n',
    'data/rancher-desktop/backend.lock': '{"action":"Creating snapshot x"}',
    '.rd/bin/rdctl': 'their program',
  };

  function original(): Record<string, string> {
    const env: Record<string, string> = { ...userEnv(), RDCTL_COMPAT: 'rancher-desktop' };
    for (const [name, text] of Object.entries(originals)) {
      mkdirSync(dirname(join(env.HOME ?? '', name)), { recursive: true });
      writeFileSync(join(env.HOME ?? '', name), text);
    }
    vi.stubEnv('HOME', env.HOME);
    onTestFinished(() => void vi.unstubAllEnvs());
    return env;
  }

  test.each([
    [['setup', '--auto-start=true']],
    [['setup', '--auto-start=false']],
    [['snapshot', 'unlock']],
    [['snapshot', 'unlock', '--json']],
  ])('%j changes nothing that was not adopted', async (argv) => {
    const env = original();
    const before = fingerprint(env.HOME ?? '');
    const { exit, out, err } = await rdctl(argv, { env });
    expect(exit).toBe(3);
    expect(out + err).toContain('made by Rancher Desktop, and nothing of it was changed');
    if (!argv.includes('--json'))
      expect({ out, err }).toMatchObject({ out: '', err: expect.stringMatching(/--adopt/) });
    expect(fingerprint(env.HOME ?? '')).toEqual(before);
  });

  test('also leaves a lone entry to the other application', async () => {
    const env = original();
    for (const name of ['config/rancher-desktop', 'data', '.rd'])
      rmSync(join(env.HOME ?? '', name), { recursive: true });
    const { exit, err } = await rdctl(['setup', '--auto-start=false'], { env });
    expect(exit).toBe(1);
    expect(err).toContain('rdctl did not create this entry');
    expect(readFileSync(join(env.HOME ?? '', 'config/autostart/rancher-desktop.desktop'), 'utf8')).toContain('/opt/');
  });

  test('claims an empty home, so that a later start works', async () => {
    const env: Record<string, string> = { ...userEnv(), RDCTL_COMPAT: 'rancher-desktop' };
    vi.stubEnv('HOME', env.HOME);
    onTestFinished(() => void vi.unstubAllEnvs());
    for (const value of ['true', 'false']) {
      expect(await rdctl(['setup', `--auto-start=${value}`], { env })).toEqual({ exit: 0, out: '', err: '' });
    }
    expect(existsSync(join(env.HOME ?? '', '.rd', 'bin', 'rdctl'))).toBe(true);
    await requireAdopted(places(env, 'linux', env.HOME ?? ''));
  });
});

describe('paths', () => {
  async function keys(env: Record<string, string>, platform: Platform = 'linux') {
    const { exit, out, err } = await rdctl(['paths'], { env, platform });
    expect({ exit, err }).toEqual({ exit: 0, err: '' });
    expect(out.split('\n')).toHaveLength(2);
    const value: Record<string, string> = JSON.parse(out);
    return value;
  }

  test('prints ours, on one line', async () => {
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

  test('prints those of the compatible application in drop-in mode, in its order', async () => {
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

  test('has the keys of another platform', async () => {
    const value = await keys(userEnv(), 'darwin');
    expect(value).toMatchObject({ deploymentProfileSystem: '/Library/Managed Preferences' });
    expect(Object.keys(await keys(userEnv(), 'win32'))).not.toContain('integration');
  });
});
