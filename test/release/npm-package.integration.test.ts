import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { npmPackage } from '../../release/npm-package.ts';
import { PRODUCT } from '../../src/product.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

test('the package for npm installs and runs offline, without scripts or dependencies', () => {
  const folder = temporaryDirectory();
  const name = npmPackage(folder, ['node_modules/yaml', 'node_modules/fastify']);
  expect(readdirSync(folder)).toEqual([name]);
  const [home, cwd] = [join(folder, 'home'), join(folder, 'empty')];
  for (const each of [home, cwd]) mkdirSync(each);
  writeFileSync(join(cwd, 'package.json'), '{}');
  const { PATH } = process.env;
  // A cache of its own, in which there is nothing.
  const env = { PATH, HOME: home, RDCTL_HOME: join(home, 'rdctl'), npm_config_offline: 'true', NO_COLOR: '1' };
  const run = (file: string, ...words: string[]) => execFileSync(file, words, { cwd, env, encoding: 'utf8' });

  run('npm', 'install', '--ignore-scripts', '--no-audit', '--no-fund', join(folder, name));
  expect(readdirSync(join(cwd, 'node_modules')).filter((each) => !each.startsWith('.'))).toEqual(['@rdctl']);
  expect(run('npx', 'rdctl', 'version')).toContain(`v${PRODUCT.version}`);
  const example = join(cwd, 'node_modules/@rdctl/rdctl/examples/moby.yaml');
  expect(run('npx', 'rdctl', 'plan', '-f', example, '--driver', 'simulated')).toContain('2 changes');
  expect(readFileSync(join(cwd, 'node_modules/@rdctl/rdctl/NOTICES.txt'), 'utf8')).toContain('\nfastify ');
  // From the archive itself, as a newcomer does it.
  const npx = run('npx', '--yes', '--package', join(folder, name), '--', 'rdctl', 'version');
  expect(npx).toContain(`v${PRODUCT.version}`);
});
