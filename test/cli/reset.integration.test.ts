import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { places } from '../../src/state/places.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { rdctl } from '../helpers/cli.ts';
import { type ScriptedServer, scriptedServer, writeConnection } from '../helpers/scripted-server.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { toolAt } from '../helpers/tool-home.ts';

const { entry } = builtTool();

function write(path: string, text = 'x'): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** A user whose directories of the operating system are all below one. */
function ownEnvironment(more: Record<string, string> = {}): Record<string, string> {
  const base = temporaryDirectory();
  const names = ['DATA', 'CONFIG', 'STATE', 'CACHE'].map((name) => [`XDG_${name}_HOME`, join(base, name)]);
  return { ...Object.fromEntries(names), HOME: base, ...more };
}

describe('reset', () => {
  test('requires a flag that says what to reset', async () => {
    const { exit, out, err } = await rdctl(['reset'], { env: { RDCTL_HOME: temporaryDirectory() } });
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toMatch(/^Error: no reset options specified\. Use --help to see available options\n/);
  });

  test('--cache needs no service', async () => {
    const env = ownEnvironment();
    const here = places(env, 'linux', '');
    write(join(here.cache, 'image'));
    write(here.settingsFile);
    expect(await rdctl(['reset', '--cache'], { env })).toEqual({
      exit: 0,
      out: 'Cache cleared successfully\n',
      err: '',
    });
    expect([existsSync(here.cache), existsSync(here.settingsFile)]).toEqual([false, true]);
  });

  test.each([
    [['--k8s'], 'fast'],
    [['--vm'], 'wipe'],
    [['--vm', '--k8s'], 'wipe'],
  ])('%j asks the service and prints its answer', async (flags, mode) => {
    await using server = await scriptedServer(({ method }) =>
      method === 'GET'
        ? { body: '{"vmState":"STARTED","locked":false}' }
        : { body: `Rancher Desktop ${mode} reset successful` },
    );
    expect(await rdctl(['reset', ...flags], { env: server.env })).toEqual({
      exit: 0,
      out: `Rancher Desktop ${mode} reset successful\n`,
      err: '',
    });
    const put = server.received.find(({ method }) => method === 'PUT');
    expect([put?.path, put?.body]).toEqual(['/v1/k8s_reset', JSON.stringify({ mode, snapshot: true })]);
  });

  test('--cache removes only downloads in a directory that others may use', async () => {
    const home = temporaryDirectory();
    const here = places({ RDCTL_HOME: home }, 'linux', '');
    for (const name of ['downloads/a.part', 'k3s/channels.json', 'image']) write(join(here.cache, name));
    expect(await rdctl(['reset', '--cache'], { env: { RDCTL_HOME: home } })).toMatchObject({ exit: 0 });
    expect(readdirSync(here.cache)).toEqual(['image']);
  });

  test('--cache removes nothing when the service refuses the rest', async () => {
    await using server = await scriptedServer(({ method }) =>
      method === 'GET' ? { body: '{"vmState":"STARTED","locked":false}' } : { status: 503, body: 'not now' },
    );
    const here = places(server.env, 'linux', '');
    write(join(here.cache, 'image'));
    const { exit, out, err } = await rdctl(['reset', '--k8s', '--cache'], { env: server.env });
    expect([exit, out, existsSync(here.cache)]).toEqual([1, '', true]);
    expect(err).toContain('not now');
  });
});

describe.each([
  ['reset --factory', ['reset', '--factory'], '--cache', ''],
  [
    'factory-reset',
    ['factory-reset'],
    '--remove-kubernetes-cache',
    `Command "factory-reset" is deprecated, Use 'rdctl reset --factory' instead.\n`,
  ],
])('%s', (_, argv, cacheFlag, notice) => {
  test('stops a service, removes everything and reports it', async () => {
    const home = temporaryDirectory();
    const here = places({ RDCTL_HOME: home }, 'linux', '');
    const program = toolAt(entry(), home);
    expect(await program(['start', '--driver', 'simulated', '--wait'])).toMatchObject({ exit: 0 });
    write(join(here.cache, 'image'));
    const { exit, out, err } = await program(argv);
    expect({ exit, out }).toEqual({ exit: 0, out: '' });
    expect(err).toBe(`${notice}Removed:\n  ${here.state}\n  ${here.logs}\n  ${here.config}\n  ${here.snapshotKey}\n`);
    // With RDCTL_HOME, nothing of ours is in it.
    expect(readdirSync(home)).toEqual(['cache']);
  });

  test('removes what a machine leaves in its own directories, and nothing else', async () => {
    const home = temporaryDirectory();
    const here = places({ RDCTL_HOME: home }, 'linux', '');
    write(here.settingsFile);
    mkdirSync(here.serviceLock, { recursive: true });
    write(join(here.guestImages, 'sha256-0', 'manifest.json'));
    for (const name of ['qemu.log', 'guest-ssh.log', 'guest-home.log', 'qemu.log.1', 'qemu-notes.log']) {
      write(join(here.logs, name));
    }
    for (const name of ['downloads/a.part', 'k3s/channels.json', 'image']) write(join(here.cache, name));
    expect(await rdctl([...argv, cacheFlag], { env: { RDCTL_HOME: home } })).toMatchObject({ exit: 0 });
    expect([readdirSync(here.logs), readdirSync(here.cache), existsSync(here.guestImages)]).toEqual([
      ['qemu-notes.log'],
      ['image'],
      false,
    ]);
  });

  test('removes downloads on request', async () => {
    const env = ownEnvironment();
    const here = places(env, 'linux', '');
    write(here.settingsFile);
    write(join(here.cache, 'image'));
    expect(await rdctl(argv, { env })).toMatchObject({
      exit: 0,
      err: expect.stringContaining(`Kept:\n  ${here.cache} (downloads, which --cache removes)\n`),
    });
    expect((await rdctl([...argv, cacheFlag], { env })).exit).toBe(0);
    expect([existsSync(here.config), existsSync(here.cache)]).toEqual([false, false]);
  });

  test('removes nothing when no service ever ran, and says so', async () => {
    const home = temporaryDirectory();
    for (const name of ['bin/x', 'config/settings.json', 'logs/service.log', 'cache/x']) write(join(home, name));
    const { exit, err } = await rdctl(argv, { env: { RDCTL_HOME: home } });
    expect(exit).toBe(0);
    expect(err).toContain(`Kept:\n  ${join(home, 'logs', 'service.log')} (not created by rdctl)\n`);
    expect(readdirSync(home).sort()).toEqual(['bin', 'cache', 'config', 'logs']);
    const logs = join(temporaryDirectory(), 'log');
    write(join(logs, 'background.log'));
    const env = ownEnvironment({ RDCTL_COMPAT: 'rancher-desktop', RD_LOGS_DIR: logs });
    expect((await rdctl(argv, { env })).exit).toBe(0);
    expect(readdirSync(logs)).toEqual(['background.log']);
  });

  test('removes nothing when the backend does not stop', async () => {
    const home = temporaryDirectory();
    const here = places({ RDCTL_HOME: home }, 'linux', '');
    const program = toolAt(entry(), home, { RDCTL_SIMULATED_FAULTS: 'machine.stop:terminal,engine.stop:terminal' });
    expect(await program(['start', '--driver', 'simulated', '--wait'])).toMatchObject({ exit: 0 });
    const { exit, err } = await program(argv);
    expect(exit).toBe(1);
    expect(err).toContain('the backend did not stop; nothing was removed');
    expect(existsSync(here.settingsFile)).toBe(true);
    expect(existsSync(here.stateFile)).toBe(true);
    // Without the fault it is adopted, stopped and removed.
    expect(await toolAt(entry(), home)(argv)).toMatchObject({ exit: 0 });
    expect(readdirSync(home)).toEqual([]);
  });

  test('has nothing to remove in an empty home', async () => {
    const home = temporaryDirectory();
    expect(await rdctl(argv, { env: { RDCTL_HOME: home } })).toEqual({
      exit: 0,
      out: '',
      err: `${notice}There was nothing to remove.\n`,
    });
    expect(readdirSync(home)).toEqual([]);
  });

  test('keeps snapshots; -o json prints a document', async () => {
    const home = temporaryDirectory();
    const here = places({ RDCTL_HOME: home }, 'linux', '');
    write(here.settingsFile);
    mkdirSync(here.serviceLock, { recursive: true });
    write(join(here.snapshots, 'id', 'metadata.json'));
    const { exit, out } = await rdctl([...argv, '-o', 'json'], { env: { RDCTL_HOME: home } });
    expect(exit).toBe(0);
    expect(JSON.parse(out)).toEqual({
      removed: [here.state, here.config],
      kept: [{ path: here.snapshots, why: 'not empty' }],
      failed: [],
    });
  });

  describe('with the compatible application running', () => {
    async function foreign(): Promise<{ server: ScriptedServer; env: Record<string, string>; file: string }> {
      const server = await scriptedServer(({ method }) =>
        method === 'GET'
          ? { body: '{"vmState":"STARTED","locked":false}' }
          : { status: 202, body: 'Doing a full factory reset....' },
      );
      const base = join(server.home, 'user');
      const names = ['DATA', 'CONFIG', 'STATE', 'CACHE'].map((name) => [`XDG_${name}_HOME`, join(base, name)]);
      const env = { ...Object.fromEntries(names), HOME: base };
      const file = join(base, 'DATA', 'rancher-desktop', 'rd-engine.json');
      writeConnection(file, { user: 'user', password: 'secret', port: server.port });
      return { server, env, file };
    }

    test('does not reset it by accident', async () => {
      const { server, env, file } = await foreign();
      await using _ = server;
      const ours = places(env, 'linux', '').settingsFile;
      write(ours);
      const { exit, err } = await rdctl(argv, { env });
      expect(exit).toBe(3);
      expect(err).toContain(file);
      expect(err).toContain('--target rancher-desktop');
      expect(existsSync(ours)).toBe(true);
      expect(server.received.map(({ method }) => method)).not.toContain('PUT');
    });

    test('resets it when it is named', async () => {
      const { server, env, file } = await foreign();
      await using _ = server;
      const { exit, err } = await rdctl([...argv, '--target', 'rancher-desktop'], { env });
      expect(exit).toBe(0);
      expect(err).toContain('Doing a full factory reset....');
      const put = server.received.find(({ method }) => method === 'PUT');
      expect([put?.path, put?.body]).toEqual(['/v1/factory_reset', '{"keepSystemImages":true}']);
      expect(existsSync(file)).toBe(true);
    });

    test('leaves it alone when ours is named', async () => {
      const { server, env, file } = await foreign();
      await using _ = server;
      const ours = places(env, 'linux', '').settingsFile;
      write(ours);
      const { exit, err } = await rdctl([...argv, '--target', 'rdctl'], { env });
      expect([exit, existsSync(ours), existsSync(file)]).toEqual([0, false, true]);
      expect(err).toContain('Removed:\n');
      expect(server.received).toEqual([]);
    });
  });
});

test('directories in drop-in mode that were never adopted are not reset', async () => {
  const base = temporaryDirectory();
  const names = ['DATA', 'CONFIG', 'STATE', 'CACHE'].map((name) => [`XDG_${name}_HOME`, join(base, name)]);
  const env = { ...Object.fromEntries(names), HOME: base, RDCTL_COMPAT: 'rancher-desktop' };
  const here = places(env, 'linux', base);
  write(here.settingsFile, 'theirs');
  write(join(here.cache, 'image'));
  for (const argv of [['reset', '--factory'], ['reset', '--cache'], ['factory-reset']]) {
    const { exit, err } = await rdctl(argv, { env });
    expect([argv, exit]).toEqual([argv, 3]);
    expect(err).toContain('made by Rancher Desktop');
  }
  expect(readFileSync(here.settingsFile, 'utf8')).toBe('theirs');
  expect(existsSync(join(here.cache, 'image'))).toBe(true);
});
