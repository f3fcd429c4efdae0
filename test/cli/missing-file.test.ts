import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

test.each([
  [['apply', 'tem'], 'Did you mean team.yaml?'],
  [['apply', 'tema.yaml'], 'Did you mean team.yaml?'],
  [['apply', '-f', 'sub/frist.yml'], 'Did you mean sub/first.yaml?'],
  [['apply', 'unlike-any'], 'Specify a profile'],
  [['apply', '-f', 'unlike-any.yaml'], 'Specify a readable file'],
])('rdctl %j: %s', async (argv, advice) => {
  const cwd = temporaryDirectory();
  mkdirSync(join(cwd, 'sub'));
  writeFileSync(join(cwd, 'team.yaml'), '');
  writeFileSync(join(cwd, 'sub', 'first.yaml'), '');
  const { exit, err } = await rdctl(argv, { cwd, env: { RDCTL_HOME: join(cwd, 'home') } });
  expect(exit).toBe(1);
  expect(err).toContain('could not be read: no such file or directory');
  expect(err).toContain(advice);
});
