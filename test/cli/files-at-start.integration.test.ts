import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { filesAtStart } from '../../cli/commands/apply/files-at-start.ts';
import { fakeIo } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const at = (home: string, more: Record<string, string> = {}) =>
  fakeIo({ env: { HOME: home, XDG_CONFIG_HOME: join(home, '.config'), ...more } });

test('a first start names the shell files that it changes, with what is done to each', async () => {
  const home = temporaryDirectory();
  writeFileSync(join(home, '.bashrc'), '# mine\n');
  const files = await filesAtStart(at(home), undefined);
  const bin = join(home, '.local/share/rdctl/bin');
  expect(files).toContainEqual({ action: 'update', file: join(home, '.bashrc'), what: `adds ${bin} to PATH` });
  expect(files).toContainEqual({ action: 'create', file: join(home, '.zshrc'), what: `adds ${bin} to PATH` });
});

test.each([
  ['a home of its own', { RDCTL_HOME: '/nonexistent' }, undefined],
  ['the simulated driver', {}, 'simulated'],
])('%s changes none', async (_, env, driver) => {
  expect(await filesAtStart(at(temporaryDirectory(), env), driver)).toEqual([]);
});

test('settings that keep the shell files as they are', async () => {
  const home = temporaryDirectory();
  const io = at(home);
  const config = join(home, '.config', 'rdctl');
  mkdirSync(config, { recursive: true });
  writeFileSync(join(config, 'settings.json'), '{"version":19,"application":{"pathManagementStrategy":"manual"}}');
  expect(await filesAtStart(io, undefined)).toEqual([]);
});
