import { describe, expect, onTestFinished, test } from 'vitest';
import { busyboxRoot } from '../helpers/busybox.ts';
import { engineJson } from '../helpers/engine-client.ts';
import { loopbackRegistry, pushImage } from '../helpers/loopback-registry.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';
import { tarOf } from '../helpers/tar.ts';
import { toolHome } from '../helpers/tool-home.ts';

const reason = await whyNoRealEngine();

/** Every classic command in one story, with the built tool and a real dockerd. */
describe.skipIf(reason !== undefined)('every command with a real engine', () => {
  test('works from the first start to the factory reset', async () => {
    const { rdctl, rdctlWith, status } = toolHome();
    const ok = async (...argv: string[]) => {
      const outcome = await rdctl(...argv);
      expect(outcome, argv.join(' ')).toMatchObject({ exit: 0 });
      return outcome.out;
    };

    // Nothing runs.
    expect(await rdctl()).toMatchObject({ exit: 0, out: expect.stringMatching(/^Nothing has run here yet/) });
    expect(await ok('help', 'snapshot')).toContain('restore');
    expect(await ok('version')).toMatch(/^rdctl client version: \S+, targeting server version: v1\n$/);
    expect(await ok('completion', 'bash')).toContain('rdctl');
    expect(JSON.parse(await ok('paths'))).toHaveProperty('snapshots');
    expect(await rdctl('list-settings')).toMatchObject({ exit: 1, out: '', err: expect.stringMatching(/^Error: /) });
    expect(await rdctl('shutdown')).toEqual({ exit: 0, out: '', err: '' });
    expect(await rdctl('shell', 'true')).toMatchObject({ exit: 1, out: '' });

    // It starts, and applies settings.
    await ok('start', '--kubernetes.enabled=false', '--container-engine.name', 'moby', '--wait');
    expect(await ok('set', '--diagnostics.show-muted')).toBe('Status: settings updated; no restart required.\n');
    expect(await ok('set', '--diagnostics.show-muted=true')).toBe('Status: no changes necessary.\n');
    const settings = JSON.parse(await ok('list-settings'));
    expect(settings).toMatchObject({ version: 19, diagnostics: { showMuted: true } });
    expect(JSON.parse(await ok('api', '/v1'))).toHaveLength(27);
    expect(await ok('api', 'settings', '--method', 'PUT', '--body', '{"version":19}')).toBe('no changes necessary\n');
    expect(await ok('info', '--field', 'version')).toMatch(/^v/);
    expect(await ok('create-profile', '--output', 'reg', '--from-settings')).toContain(
      '[HKEY_LOCAL_MACHINE\\SOFTWARE\\Policies\\Rancher Desktop\\locked]',
    );
    expect(await ok('create-profile', '--output', 'plist', '--from-settings')).toContain('<plist version="1.0">');
    expect(await ok('explain', 'diagnostics.showMuted')).toContain('true');

    // The engine's environment.
    const endpoint = (await status()).engine.endpoint ?? '';
    expect(await ok('shell', 'sh', '-c', 'echo $DOCKER_HOST')).toBe(`${endpoint}\n`);
    expect(await rdctl('shell', 'sh', '-c', 'exit 7')).toMatchObject({ exit: 7 });
    expect(await rdctlWith({ stdin: 'echo from stdin\n' }, 'shell')).toMatchObject({ exit: 0, out: 'from stdin\n' });

    // Extensions.
    expect(await ok('extension', 'ls')).toBe('No extensions are installed.\n');
    const registry = await loopbackRegistry();
    onTestFinished(() => registry.close());
    const image = `${registry.host}/sample`;
    const context = tarOf([
      { path: 'Dockerfile', content: 'FROM scratch\nCOPY metadata.json icon.svg /\n', mode: 0o644 },
      { path: 'metadata.json', content: '{"icon":"icon.svg"}', mode: 0o644 },
      { path: 'icon.svg', content: '<svg xmlns="http://www.w3.org/2000/svg"/>', mode: 0o644 },
    ]);
    await engineJson(endpoint, 'POST', `/build?t=${image}:1.0.0`, context);
    await pushImage(endpoint, image, '1.0.0');
    expect(await ok('extension', 'install', image, '--force')).toBe(`Installing image ${image}: Created\n`);
    expect(await ok('extension', 'ls')).toBe(`Extension IDs\n\n${image}:1.0.0\n`);
    expect(await ok('extension', 'uninstall', image)).toBe(`Uninstalling image ${image}: Deleted ${image}\n`);

    // Snapshots.
    await engineJson(endpoint, 'POST', '/images/create?fromSrc=-&repo=test/box&tag=1', busyboxRoot());
    expect(await ok('snapshot', 'create', 'one', '--description', 'of the test')).toBe('');
    expect(JSON.parse(await ok('snapshot', 'list', '--json'))).toMatchObject({
      name: 'one',
      description: 'of the test',
    });
    await ok('start', '--wait');
    expect(await ok('reset', '--vm')).toBe('Rancher Desktop wipe reset successful\n');
    expect(await engineJson(endpoint, 'GET', '/info')).toMatchObject({ Images: 0 });
    expect(await ok('snapshot', 'restore', 'one')).toBe('');
    await ok('start', '--wait');
    expect((await engineJson(endpoint, 'GET', '/info')).Images).not.toBe(0);
    expect(await ok('snapshot', 'unlock')).toBe('');
    expect(await ok('snapshot', 'delete', 'one')).toBe('');
    expect(await ok('reset', '--k8s', '--cache')).toBe(
      'Rancher Desktop fast reset successful\nCache cleared successfully\n',
    );

    // The end.
    expect(await ok('shutdown')).toBe('Shutting down.\n');
    expect(await rdctl('factory-reset')).toMatchObject({ exit: 0, out: '' });
    expect(await rdctl('list-settings')).toMatchObject({ exit: 1, out: '' });
  });
});
