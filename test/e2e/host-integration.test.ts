import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { hostPlaces } from '../../src/drivers/machines/host/places.ts';
import { run } from '../../src/os/run.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { callEngine } from '../helpers/engine-client.ts';
import { hostTraces } from '../helpers/host-instance.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';
import { rounds } from '../helpers/rounds.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { fingerprint, type UserHome, userHome } from '../helpers/user-home.ts';

const { entry } = builtTool();
const reason = await whyNoRealEngine();

const MARK = '### MANAGED BY RDCTL START (DO NOT EDIT)';

/** A user with dotfiles under version control, a docker login and another context. */
function livedIn({ at }: UserHome): void {
  mkdirSync(at('dotfiles'));
  writeFileSync(at('dotfiles', 'bashrc'), 'alias ll="ls -l"\nexport EDITOR=vi');
  symlinkSync('dotfiles/bashrc', at('.bashrc'));
  writeFileSync(at('.profile'), '# mine\n');
  chmodSync(at('.profile'), 0o600);
  mkdirSync(at('.config', 'fish'), { recursive: true });
  writeFileSync(at('.config', 'fish', 'config.fish'), 'set x 1\n');
  mkdirSync(at('.config', 'autostart'));
  writeFileSync(at('.config', 'autostart', 'other.desktop'), '[Desktop Entry]\n');
  mkdirSync(at('.docker', 'contexts', 'meta', 'abc'), { recursive: true });
  writeFileSync(at('.docker', 'contexts', 'meta', 'abc', 'meta.json'), '{"Name":"work"}');
  writeFileSync(at('.docker', 'config.json'), '{\n\t"auths": {\n\t\t"registry.example.com": {}\n\t}\n}');
  chmodSync(at('.docker', 'config.json'), 0o600);
  for (const name of ['share', 'state']) mkdirSync(at('.local', name), { recursive: true });
}

const contextFile = (name: string) =>
  join('.docker', 'contexts', 'meta', createHash('sha256').update(name).digest('hex'), 'meta.json');

function endpointOf(file: string): string {
  const { Endpoints } = JSON.parse(readFileSync(file, 'utf8'));
  return Endpoints.docker.Host;
}

/** As this user's docker command line reports it. */
async function dockerContext({ env }: UserHome): Promise<string> {
  const { stdout } = await run(['docker', 'context', 'show'], { env: { PATH: process.env.PATH, ...env } });
  return stdout.trim();
}

/** Changes since a fingerprint under the names users know: without our own files and directories, and links instead of their targets. */
function changedFiles({ home, at }: UserHome, before: Record<string, string>): string[] {
  const after = fingerprint(home);
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((name) => before[name] !== after[name] && !/^\.(local|config\/rdctl)\//.test(name))
    .filter((name) => [before[name], after[name]].some((print) => print && !print.endsWith(' ')))
    .map((name) => at(name === join('dotfiles', 'bashrc') ? '.bashrc' : name))
    .sort();
}

/** Another instance on this computer keeps its rules slightly longer than it lives. */
async function tracesOf(directory: string): Promise<string[]> {
  const { tag } = hostPlaces(directory);
  return (await hostTraces(directory)).filter((line) => !line.startsWith('-A RDCTL-') || line.includes(tag));
}

describe.skipIf(reason !== undefined)("the user's environment", () => {
  test('follows settings and engine, and a factory reset restores it byte for byte', async () => {
    const user = userHome(entry());
    const { at, rdctl } = user;
    livedIn(user);
    const before = fingerprint(user.home);
    const currentContext = () => JSON.parse(readFileSync(at('.docker', 'config.json'), 'utf8')).currentContext;
    const managed = (...path: string[]) => existsSync(at(...path)) && readFileSync(at(...path), 'utf8').includes(MARK);

    expect(await rdctl('start', '--driver', 'host', '--wait')).toMatchObject({ exit: 0 });
    const context = at(contextFile('rdctl'));
    expect(existsSync(context) && currentContext()).toBe('rdctl');
    // What the docker command line would do with it.
    expect((await callEngine(endpointOf(context), 'GET', '/_ping')).body.toString()).toBe('OK');
    expect(managed('dotfiles', 'bashrc')).toBe(true);
    expect(managed('.profile')).toBe(true);
    expect(managed('.config', 'fish', 'config.fish')).toBe(true);
    const status = JSON.parse((await rdctl('status', '-o', 'json')).out);
    expect(status.hostIntegration.files).toContainEqual({ part: 'docker-context', file: context, state: 'managed' });

    // The launcher is what the block puts on the PATH.
    const bin = at('.local', 'share', 'rdctl', 'bin');
    expect(readFileSync(at('.profile'), 'utf8')).toContain('export PATH="$HOME/.local/share/rdctl/bin:$PATH"');
    expect(readFileSync(join(bin, 'rdctl'), 'utf8').startsWith('#!/bin/sh\n')).toBe(true);

    expect(await rdctl('set', '--application.auto-start=true')).toMatchObject({ exit: 0 });
    const autostart = at('.config', 'autostart', 'rdctl.desktop');
    expect(existsSync(autostart)).toBe(true);
    await rdctl('set', '--application.auto-start=false', '--application.path-management-strategy=manual');
    expect(existsSync(autostart) || managed('.profile') || managed('dotfiles', 'bashrc')).toBe(false);
    await rdctl('set', '--application.path-management-strategy=rcfiles');
    expect(managed('.profile')).toBe(true);

    expect(await rdctl('set', '--container-engine.name=containerd')).toMatchObject({ exit: 0 });
    expect(existsSync(context)).toBe(false);
    expect(currentContext()).toBeUndefined();
    await rdctl('start', '--container-engine.name=moby', '--wait');
    expect(existsSync(context) && currentContext()).toBe('rdctl');

    const driver = at('.local', 'state', 'rdctl', 'drivers', 'host');
    const { exit, err } = await rdctl('reset', '--factory');
    expect({ exit, err }).toMatchObject({ exit: 0 });
    expect(err).toContain(at('.local', 'state', 'rdctl'));
    expect(fingerprint(user.home)).toEqual(before);
    expect(await tracesOf(driver)).toEqual([]);
  });

  test('has docker at hand as soon as a command says that the engine runs, also after an engine switch', async () => {
    const user = userHome(entry());
    const { rdctl, env } = user;
    const docker = async () => {
      const { stdout } = await run(['docker', 'info', '--format', '{{.DockerRootDir}}'], {
        env: { PATH: process.env.PATH, ...env },
      });
      return stdout.trim();
    };
    for (let round = 0; round < rounds(1, 6); round += 1) {
      expect(await rdctl('start', '--driver', 'host', '--wait')).toMatchObject({ exit: 0 });
      expect(await docker()).toContain(user.at('.local', 'state', 'rdctl'));
      for (const engine of ['containerd', 'moby']) {
        expect(await rdctl('start', `--container-engine.name=${engine}`, '--wait')).toMatchObject({ exit: 0 });
      }
      expect(await docker()).toContain(user.at('.local', 'state', 'rdctl'));
      expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
    }
  });

  test('is told of a file that cannot be changed, which undoes nothing, until it can', async () => {
    const user = userHome(entry());
    const { at, rdctl } = user;
    const outside = join(temporaryDirectory(), 'profile');
    writeFileSync(outside, '');
    symlinkSync(outside, at('.profile'));
    const started = await rdctl('start', '--driver', 'host', '--wait');
    expect(started).toMatchObject({ exit: 1 });
    expect(started.err).toContain(`${at('.profile')} was not changed: it is a link to ${outside}`);
    const up = await rdctl('up');
    expect(up).toMatchObject({ exit: 1 });
    expect(up.err).toContain(at('.profile'));
    const { backendState, converged, conditions } = JSON.parse((await rdctl('status', '-o', 'json')).out);
    expect([backendState, converged, conditions.at(-1).type]).toEqual(['DISABLED', true, 'UserFilesReady']);
    rmSync(at('.profile'));
    expect(await rdctl('up')).toMatchObject({ exit: 0 });
    expect(await rdctl('start', '--wait')).toMatchObject({ exit: 0 });
    expect(existsSync(outside) && readFileSync(outside, 'utf8')).toBe('');
    await rdctl('shutdown');
  });

  test('gets the changes that a plan lists, before the first start and while the service runs', async () => {
    const user = userHome(entry());
    const { at, rdctl } = user;
    livedIn(user);
    const profile = (file: string, state: string, application: object) => {
      const settings = { version: 19, application, kubernetes: { enabled: false } };
      writeFileSync(at(file), JSON.stringify({ apiVersion: 'rdctl/v1', kind: 'Profile', state, settings }));
    };
    profile('on.yaml', 'started', { autoStart: true });
    profile('off.yaml', 'stopped', { autoStart: false, pathManagementStrategy: 'manual' });
    for (const file of ['on.yaml', 'off.yaml']) {
      const before = fingerprint(user.home);
      const { userFiles } = JSON.parse((await rdctl('plan', '-f', at(file), '--driver', 'host', '-o', 'json')).out);
      expect(userFiles.length).toBeGreaterThan(3);
      expect(await rdctl('apply', '-f', at(file), '--driver', 'host')).toMatchObject({ exit: 0 });
      const listed = userFiles.map((each: { file: string }) => each.file).sort();
      await expect.poll(() => changedFiles(user, before), { timeout: 10_000 }).toEqual(listed);
      const again = JSON.parse((await rdctl('plan', '-f', at(file), '-o', 'json')).out);
      expect([again.changes, again.userFiles]).toEqual([[], []]);
    }
  });

  test('gets the changes that a start names, and at the next start only those of the docker context', async () => {
    const user = userHome(entry());
    const { at, rdctl } = user;
    livedIn(user);
    const named = (err: string) => [...err.matchAll(/^ {2}[~+-] (\S+): /gm)].map(([, file = '']) => file).sort();
    const before = fingerprint(user.home);
    const { exit, err } = await rdctl('start', '--driver', 'host', '--wait');
    expect([exit, err]).toEqual([0, expect.stringMatching(/^The start changes your files:\n/)]);
    expect(named(err)).toContain(at('.profile'));
    await expect.poll(() => changedFiles(user, before), { timeout: 10_000 }).toEqual(named(err));
    expect(await rdctl('start', '--wait')).toEqual({ exit: 0, out: '', err: '' });
    expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
    const again = await rdctl('start', '--wait');
    expect([again.exit, named(again.err)]).toEqual([0, [at('.docker', 'config.json'), at(contextFile('rdctl'))]]);
  });

  test('has its own docker context while the engine is stopped, and ours while it runs', async () => {
    const user = userHome(entry());
    const { at, rdctl } = user;
    livedIn(user);
    const config = at('.docker', 'config.json');
    const before = readFileSync(config, 'utf8');
    const shown = () => dockerContext(user);
    expect(await shown()).toBe('default');
    await rdctl('start', '--driver', 'host', '--wait');
    await expect.poll(shown, { timeout: 10_000 }).toBe('rdctl');
    expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
    expect([await shown(), readFileSync(config, 'utf8')]).toEqual(['default', before]);

    await rdctl('start', '--wait');
    await expect.poll(shown, { timeout: 10_000 }).toBe('rdctl');
    const { pid } = JSON.parse(readFileSync(at('.local', 'share', 'rdctl', 'app-engine.json'), 'utf8'));
    process.kill(pid, 'SIGKILL');
    expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
    expect([await shown(), readFileSync(config, 'utf8')]).toEqual(['default', before]);

    await rdctl('start', '--wait');
    await expect.poll(shown, { timeout: 10_000 }).toBe('rdctl');
    writeFileSync(at('off.yaml'), 'apiVersion: rdctl/v1\nkind: Profile\nstate: stopped\nsettings:\n  version: 19\n');
    expect(await rdctl('apply', '-f', at('off.yaml'))).toMatchObject({ exit: 0 });
    await expect.poll(shown).toBe('default');
    expect(readFileSync(config, 'utf8')).toBe(before);
  });

  test('is restored after the service was killed with its engine running on', async () => {
    const user = userHome(entry());
    const { at, rdctl } = user;
    livedIn(user);
    const before = fingerprint(user.home);
    await rdctl('start', '--driver', 'host', '--wait');
    await expect.poll(() => existsSync(at(contextFile('rdctl'))), { timeout: 10_000 }).toBe(true);
    const { pid } = JSON.parse(readFileSync(at('.local', 'share', 'rdctl', 'app-engine.json'), 'utf8'));
    process.kill(pid, 'SIGKILL');
    const driver = at('.local', 'state', 'rdctl', 'drivers', 'host');
    expect((await tracesOf(driver)).length).toBeGreaterThan(0);

    // A service does not start with these; what is left is stopped without them.
    const mistake = '{"version":19,"kubernetes":{"port":"no number"}}';
    const locked = at('.config', 'rancher-desktop.locked.json');
    writeFileSync(at('.config', 'rdctl', 'settings.json'), mistake);
    writeFileSync(locked, mistake);
    expect(await rdctl('start')).toMatchObject({ exit: 1, err: expect.stringContaining(locked) });
    const { exit, err } = await rdctl('factory-reset');
    expect({ exit, err }).toMatchObject({ exit: 0 });
    expect(err.match(/taking it over to stop it/g)).toHaveLength(1);
    // The refused start was the last to update the home, and left it unchanged.
    expect(err).toMatch(/The last service \(pid \d+\) exited without stopping/);
    rmSync(locked);
    expect(fingerprint(user.home)).toEqual(before);
    expect(await tracesOf(driver)).toEqual([]);
    expect(await rdctl('reset', '--factory')).toMatchObject({ exit: 0, err: 'There was nothing to remove.\n' });
  });

  test('is restored by a request to the API', async () => {
    const user = userHome(entry());
    const { at, rdctl } = user;
    livedIn(user);
    const before = fingerprint(user.home);
    await rdctl('start', '--driver', 'host', '--wait');
    const { pid } = JSON.parse(readFileSync(at('.local', 'share', 'rdctl', 'app-engine.json'), 'utf8'));
    expect(await rdctl('api', 'factory_reset', '-X', 'PUT', '-b', '{"keepSystemImages":false}')).toMatchObject({
      exit: 0,
      out: 'Doing a full factory reset....\n',
    });
    await expect.poll(() => existsSync(`/proc/${pid}`), { timeout: 90_000 }).toBe(false);
    expect(fingerprint(user.home)).toEqual(before);
  });
});

test('is left alone by the simulated driver', async () => {
  const user = userHome(entry());
  livedIn(user);
  const before = fingerprint(user.home);
  expect(await user.rdctl('start', '--driver', 'simulated', '--wait')).toMatchObject({ exit: 0 });
  const { hostIntegration } = JSON.parse((await user.rdctl('status', '-o', 'json')).out);
  expect(hostIntegration).toEqual({ offBecause: 'the simulated driver touches nothing real', files: [] });
  expect(fingerprint(user.home)).toMatchObject(before);
  expect(readdirSync(user.at('.docker'))).toEqual(['config.json', 'contexts']);
  expect(await user.rdctl('reset', '--factory')).toMatchObject({ exit: 0 });
  expect(fingerprint(user.home)).toEqual(before);
});
