import { execFileSync } from 'node:child_process';
import { lstatSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { writeLauncher } from '../../../src/features/host-integration/launcher.ts';
import { type IntegrationTargets, launcherOf } from '../../../src/features/host-integration/targets.ts';
import { testTargets } from '../../helpers/integration-targets.ts';

/** A script that prints its arguments, under a name with shell metacharacters. */
function printing(targets: IntegrationTargets): IntegrationTargets {
  const script = join(targets.home, "it's $HOME.cjs");
  writeFileSync(script, 'console.log(JSON.stringify([process.env.RDCTL_COMPAT ?? null, ...process.argv.slice(2)]));');
  return { ...targets, self: [process.execPath, script] };
}

test.each([
  [false, null],
  [true, 'rancher-desktop'],
])('the launcher passes on all arguments; drop-in mode %j', async (dropIn, compat) => {
  const targets = printing(testTargets({ dropIn }));
  expect(await writeLauncher(targets)).toBeUndefined();
  const out = execFileSync(launcherOf(targets), ['a b', '$x', '', "'"], { env: {}, encoding: 'utf8' });
  expect(JSON.parse(out)).toEqual([compat, 'a b', '$x', '', "'"]);
});

test('a foreign file in its place is renamed, and not written through', async () => {
  const targets = testTargets({ dropIn: true });
  const path = launcherOf(targets);
  const theirs = join(targets.home, 'theirs');
  writeFileSync(theirs, 'their program');
  for (const name of ['rdctl.before-rdctl', 'rdctl.before-rdctl-2']) {
    symlinkSync(theirs, `${path}.new`);
    renameSync(`${path}.new`, path);
    expect(await writeLauncher(targets)).toBe(join(targets.bin, name));
    expect(lstatSync(join(targets.bin, name)).isSymbolicLink()).toBe(true);
    expect(readFileSync(path, 'utf8')).toContain('export RDCTL_COMPAT=');
  }
  // Our own is overwritten, even one of another release elsewhere.
  expect(await writeLauncher({ ...targets, self: ['/other/node', '/other/rdctl.cjs'] })).toBeUndefined();
  expect(readFileSync(path, 'utf8')).toContain('/other/node');
  expect(readdirSync(targets.bin)).toHaveLength(3);
  expect(readFileSync(theirs, 'utf8')).toBe('their program');
});
