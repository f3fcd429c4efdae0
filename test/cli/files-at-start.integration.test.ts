import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { filesAtStart, giveBackFiles } from '../../cli/commands/apply/files-at-start.ts';
import { host } from '../../src/drivers/index.ts';
import { RdError } from '../../src/errors.ts';
import { fakeIo, rdctl, type Stage } from '../helpers/cli.ts';
import { followedIntegration } from '../helpers/followed-integration.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const at = (home: string, more: Record<string, string> = {}) =>
  fakeIo({ env: { HOME: home, XDG_CONFIG_HOME: join(home, '.config'), ...more } });

test('a first start names the shell files that it changes, with what is done to each', async () => {
  const home = temporaryDirectory();
  writeFileSync(join(home, '.bashrc'), '# mine\n');
  const { files, advice } = await filesAtStart(at(home, { SHELL: '/usr/bin/nu' }), undefined);
  expect(advice).toContain(join(home, '.config', 'nushell', 'config.nu'));
  const bin = join(home, '.local/share/rdctl/bin');
  expect(files).toContainEqual({ action: 'update', file: join(home, '.bashrc'), what: `adds ${bin} to PATH` });
  expect(files).toContainEqual({ action: 'create', file: join(home, '.zshrc'), what: `adds ${bin} to PATH` });
});

test.each([
  ['a home of its own', { RDCTL_HOME: '/nonexistent' }, undefined],
  ['the simulated driver', {}, 'simulated'],
])('%s changes none', async (_, env, driver) => {
  expect(await filesAtStart(at(temporaryDirectory(), env), driver)).toEqual({ files: [] });
});

test('settings that keep the shell files as they are', async () => {
  const home = temporaryDirectory();
  const io = at(home);
  const config = join(home, '.config', 'rdctl');
  mkdirSync(config, { recursive: true });
  writeFileSync(join(config, 'settings.json'), '{"version":19,"application":{"pathManagementStrategy":"manual"}}');
  expect(await filesAtStart(io, undefined)).toEqual({ files: [] });
});

/** `rdctl start` of a program that is no service, so that whatever has been printed and changed was so before it ran. */
async function startOf(home: string, argv: string[] = [], stage: Stage = {}) {
  const program = join(home, 'service');
  writeFileSync(program, '#!/bin/sh\nexit 1\n');
  chmodSync(program, 0o755);
  const { env } = at(home, { DOCKER_CONFIG: join(home, 'docker') });
  return rdctl(['start', '--path', program, ...argv], { ...stage, env: { ...env, ...stage.env } });
}

test('rdctl start names the files on stderr before they change, with the docker context', async () => {
  const home = temporaryDirectory();
  writeFileSync(join(home, '.bashrc'), '# mine\n');
  const { exit, out, err } = await startOf(home);
  expect([exit, out]).toEqual([1, '']);
  expect(err.startsWith('The start changes your files:\n')).toBe(true);
  expect(err).toContain(`  ~ ${join(home, '.bashrc')}: adds ${join(home, '.local/share/rdctl/bin')} to PATH\n`);
  expect(err).toContain(`  + ${join(home, 'docker', 'config.json')}: selects docker context rdctl\n`);
  expect(readFileSync(join(home, '.bashrc'), 'utf8')).toBe('# mine\n');
});

test('rdctl start names what the settings given to it change', async () => {
  const flags = ['path-management-strategy=manual', 'auto-start'].map((flag) => `--application.${flag}`);
  const chooseDriver = async () => ({ factory: host });
  const { err } = await startOf(temporaryDirectory(), [...flags, '--container-engine.name=containerd'], {
    chooseDriver,
  });
  expect(err).toMatch(
    /^The start changes your files:\n {2}\+ \S+\/autostart\/rdctl\.desktop: starts rdctl at login\nError: /,
  );
});

test.each<[string, string[], (home: string) => Stage]>([
  ['a home of its own', [], (home) => ({ env: { RDCTL_HOME: join(home, 'own') } })],
  ['the simulated driver', ['--driver', 'simulated'], () => ({})],
  ['no driver that can run', [], () => ({ chooseDriver: () => Promise.reject(new RdError('ERR_NO_DRIVER', 'none')) })],
  ['directories of Rancher Desktop', [], () => ({ env: { RDCTL_COMPAT: 'rancher-desktop' } })],
])('rdctl start with %s names no files', async (_, argv, stage) => {
  const home = temporaryDirectory();
  mkdirSync(join(home, '.local/share/rancher-desktop/lima'), { recursive: true });
  expect((await startOf(home, argv, stage(home))).err).toMatch(/^Error: /);
});

test('what a start has changed in the files it named is given back, byte for byte, and only there', async () => {
  const home = temporaryDirectory();
  writeFileSync(join(home, '.bashrc'), 'mine');
  const user = followedIntegration(home);
  await expect.poll(() => readFileSync(join(home, '.bashrc'), 'utf8')).toContain('MANAGED BY RDCTL');
  await user.close();
  const had = readFileSync(join(home, '.bashrc'), 'utf8');
  writeFileSync(join(home, '.zshrc'), had);
  const io = at(home);
  await giveBackFiles(io, [{ file: join(home, '.bashrc'), action: 'update', what: 'adds it to PATH' }]);
  expect(readFileSync(join(home, '.bashrc'), 'utf8')).toBe('mine');
  expect(readFileSync(join(home, '.zshrc'), 'utf8')).toBe(had);
});
