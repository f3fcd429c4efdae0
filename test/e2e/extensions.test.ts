import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { builtTool } from '../helpers/built-tool.ts';
import { callEngine } from '../helpers/engine-client.ts';
import { extensionFiles, pushExtension } from '../helpers/extension-images.ts';
import { type LoopbackRegistry, loopbackRegistry } from '../helpers/loopback-registry.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';
import { type ToolHome, toolHome } from '../helpers/tool-home.ts';

const reason = await whyNoRealEngine();
const tool = builtTool();

/** A service of the host driver with a running engine. */
async function started(engine: 'moby' | 'containerd'): Promise<ToolHome & { id(name: string): string }> {
  const home = toolHome({ RDCTL_DRIVER: 'host' });
  const rdctl: ToolHome['rdctl'] = (...argv) => home.rdctlWith({ entry: tool.entry() }, ...argv);
  // With the tool that started it; runs before the home is removed.
  onTestFinished(async () => void (await rdctl('shutdown')));
  const up = await rdctl('start', '--container-engine.name', engine, '--wait');
  expect(up.exit, up.err).toBe(0);
  return {
    ...home,
    rdctl,
    status: async () => JSON.parse((await rdctl('status', '-o', 'json')).out),
    id: (name) => join(home.home, 'extensions', Buffer.from(name).toString('base64url')),
  };
}

describe('with real engines and a registry', () => {
  if (reason !== undefined) {
    test.skip(`skipped: ${reason}`);
    return;
  }
  let registry: LoopbackRegistry;
  const named = (name: string) => `${registry.host}/${name}`;
  beforeAll(async () => {
    registry = await loopbackRegistry();
    const push = (name: string, tag: string, image = {}) => pushExtension(registry.host, name, tag, image);
    await push('ext/good', '1.0.0');
    await push('ext/good', '1.2.0');
    await push('ext/good', 'latest', { version: '1.2.0' });
    await push('ext/unlabelled', '1', { labels: 'none' });
    await push('ext/broken', '1', { metadata: '{"icon":' });
    await push('ext/no-icon', '1', { files: extensionFiles().filter(({ path }) => path !== 'icon.svg') });
    await push('ext/dots', '1', { metadata: { icon: '/ui/../../../../etc/passwd' } });
    await push('ext/leaving', '1', {
      metadata: { icon: 'icon.svg', ui: { tab: { root: '/ui' } } },
      files: [
        { path: 'icon.svg', content: 'x', mode: 0o644 },
        { path: 'ui/secret', link: '../../../../../../../etc/passwd' },
      ],
    });
    await push('ext/absolute', '1', {
      metadata: { icon: '/etc-of-the-host/passwd' },
      files: [{ path: 'etc-of-the-host', link: '/etc' }],
    });
    await push('ext/service', '1', {
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the name that extensions use for their own image
      metadata: { icon: 'icon.svg', vm: { image: '${DESKTOP_PLUGIN_IMAGE}' } },
      files: [
        { path: 'icon.svg', content: 'x', mode: 0o644 },
        { path: 'bin/busybox', content: readFileSync('/bin/busybox') },
      ],
      command: ['/bin/busybox', 'sleep', '100000'],
    });
  });
  afterAll(() => registry?.close());

  test.each(['moby', 'containerd'] as const)('extensions are installed from images of %s', async (engine) => {
    const { rdctl, id } = await started(engine);
    const good = named('ext/good');
    expect(await rdctl('extension', 'ls')).toMatchObject({ exit: 0, out: 'No extensions are installed.\n' });
    expect(await rdctl('extension', 'install', `${good}:1.0.0`)).toEqual({
      exit: 0,
      out: `Installing image ${good}:1.0.0: Created\n`,
      err: '',
    });
    expect(readFileSync(join(id(good), 'ui/dashboard-tab/start.html'), 'utf8')).toBe('<p>1.0.0</p>');
    expect(statSync(join(id(good), 'bin/sample')).mode & 0o777).toBe(0o755);

    expect((await rdctl('extension', 'install', good)).out).toBe(`Installing image ${good}: Created\n`);
    expect(readFileSync(join(id(good), 'version.txt'), 'utf8')).toBe('1.2.0');
    expect(readFileSync(join(id(good), 'ui/dashboard-tab/index.html'), 'utf8')).toBe('<p>1.2.0</p>');
    expect((await rdctl('extension', 'install', `${good}:1.2.0`)).out).toBe(`Installing image ${good}:1.2.0: \n`);
    expect((await rdctl('extension', 'install', named('ext/unlabelled'))).exit).toBe(0);
    const listed = JSON.parse((await rdctl('extension', 'ls', '-o', 'json')).out);
    expect(listed).toMatchObject({
      [good]: { version: '1.2.0', labels: { 'org.opencontainers.image.title': 'Sample' } },
      [named('ext/unlabelled')]: { version: '1', labels: {} },
    });

    for (const [name, text, why] of [
      ['ext/broken', 'has invalid extension metadata', 'not a JSON object'],
      ['ext/no-icon', 'failed to install: Could not copy icon file /icon.svg', 'has no /icon.svg'],
      ['ext/dots', 'has invalid extension metadata', '".."'],
      ['ext/leaving', 'failed to install: Could not copy UI tab', 'leaves the tree'],
      ['ext/absolute', 'failed to install: Could not copy icon file /etc-of-the-host/passwd', 'has no'],
      ['ext/not-there', 'has invalid extension metadata', 'ext/not-there'],
    ] as const) {
      const image = `${named(name)}:1`;
      const { exit, out, err } = await rdctl('extension', 'install', image);
      expect([exit, out]).toEqual([1, '{"message":"422 Unprocessable Entity"}\n']);
      expect(err).toContain(`The image ${image} ${text}\nreason: `);
      expect(err).toContain(why);
      expect(existsSync(id(named(name)))).toBe(false);
    }
    expect((await rdctl('extension', 'install', named('ext/not-there'))).out).toContain('500 Internal Server Error');
    expect(readdirSync(join(id(good), '..'))).toHaveLength(2);

    expect((await rdctl('extension', 'uninstall', good)).out).toBe(`Uninstalling image ${good}: Deleted ${good}\n`);
    expect(existsSync(id(good))).toBe(false);
  });

  test('a container of an extension runs with moby, and is removed with the extension', async () => {
    const { rdctl, status } = await started('moby');
    const { engine } = await status();
    const running = async () => {
      const { body } = await callEngine(engine.endpoint ?? '', 'GET', '/containers/json?all=1');
      const containers: { State: string; Command: string }[] = JSON.parse(body.toString());
      return containers.map(({ State }) => State);
    };
    const service = named('ext/service');
    expect((await rdctl('extension', 'install', service)).out).toContain('Created');
    expect(await running()).toEqual(['running']);
    await rdctl('extension', 'uninstall', service);
    expect(await running()).toEqual([]);
  });

  test('containerd reports what it does not start', async () => {
    const { rdctl } = await started('containerd');
    const { exit, err } = await rdctl('extension', 'install', named('ext/service'));
    expect(exit).toBe(0);
    expect(err).toBe('note: the container of vm.image is not started: containerd keeps none running for extensions\n');
  });

  test('a profile installs, upgrades and uninstalls, and has nothing to do the second time', async () => {
    const { rdctl, home, id, status } = await started('moby');
    const good = named('ext/good');
    const other = named('ext/unlabelled');
    const file = join(home, 'profile.json');
    const profile = (installed: Record<string, string | null>, prune: string[] = [], more: object = {}) => {
      const settings = { version: 19, application: { extensions: { installed, ...more } } };
      writeFileSync(file, JSON.stringify({ apiVersion: 'rdctl/v1', kind: 'Profile', settings, prune }));
    };
    const apply = async () => {
      const { exit, out, err } = await rdctl('apply', '-f', file, '-o', 'json');
      return { exit, err, report: JSON.parse(out) };
    };
    const installedNow = async () =>
      JSON.parse((await rdctl('list-settings')).out).application.extensions.installed as Record<string, string>;

    profile({ [good]: '1.0.0', [other]: '1' });
    const plan = await rdctl('plan', '-f', file);
    expect(plan.out).toContain('version 1.0.0 is installed from its image');
    expect(await apply()).toMatchObject({ exit: 0, report: { outcome: 'applied', converged: true } });
    expect(await installedNow()).toEqual({ [good]: '1.0.0', [other]: '1' });
    const before = await status();
    expect(await apply()).toMatchObject({ exit: 0, report: { outcome: 'unchanged', writes: 0 } });
    expect((await status()).generation).toBe(before.generation);

    profile({ [good]: '1.2.0' });
    expect(await apply()).toMatchObject({ exit: 0, report: { outcome: 'applied' } });
    expect(readFileSync(join(id(good), 'version.txt'), 'utf8')).toBe('1.2.0');
    expect(await installedNow()).toEqual({ [good]: '1.2.0', [other]: '1' });

    profile({ [other]: null });
    await apply();
    expect(await installedNow()).toEqual({ [good]: '1.2.0' });

    profile({ [other]: '1' }, ['application.extensions.installed']);
    await apply();
    expect(await installedNow()).toEqual({ [other]: '1' });
    expect(await apply()).toMatchObject({ report: { outcome: 'unchanged' } });

    profile({ [good]: '1.0.0', [named('ext/broken')]: '1' });
    const failed = await rdctl('apply', '-f', file);
    expect(failed.exit).toBe(1);
    expect(failed.err).toContain(`install ${named('ext/broken')}:1: The image ${named('ext/broken')}:1 has invalid`);
    expect(await installedNow()).toEqual({ [good]: '1.0.0', [other]: '1' });

    profile({ [good]: '1.0.0' }, [], { allowed: { enabled: true, list: [`${good}:1.2.0`] } });
    const refused = await rdctl('apply', '-f', file);
    expect(refused.exit).toBe(3);
    expect(refused.err).toContain('application.extensions.allowed.list');
    expect(await installedNow()).toEqual({ [good]: '1.0.0', [other]: '1' });

    profile({ [good]: '1.2.0' }, [], { allowed: { enabled: true, list: [good] } });
    expect(await apply()).toMatchObject({ exit: 0 });
    expect(await installedNow()).toEqual({ [good]: '1.2.0' });
    expect(existsSync(id(other))).toBe(false);
    expect(await apply()).toMatchObject({ report: { outcome: 'unchanged' } });

    // Another engine and another service: nothing is installed again, and everything still holds.
    expect((await rdctl('set', '--container-engine.name', 'containerd')).exit).toBe(0);
    await rdctl('shutdown');
    expect((await rdctl('start', '--wait')).exit).toBe(0);
    expect((await rdctl('extension', 'ls')).out).toBe(`Extension IDs\n\n${good}:1.2.0\n`);
    expect(await apply()).toMatchObject({ report: { outcome: 'unchanged' } });
  });

  test('missing files are restored when the engine starts', async () => {
    const { rdctl, id } = await started('moby');
    const good = named('ext/good');
    await rdctl('extension', 'install', `${good}:1.0.0`);
    await rdctl('shutdown');
    rmSync(id(good), { recursive: true });
    expect((await rdctl('start', '--wait')).exit).toBe(0);
    // The call waits for its turn; by then the missing files were installed.
    expect((await rdctl('extension', 'install', `${good}:1.0.0`)).out).toBe(`Installing image ${good}:1.0.0: \n`);
    expect(readFileSync(join(id(good), 'version.txt'), 'utf8')).toBe('1.0.0');
  });
});
