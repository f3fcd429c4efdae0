import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { writeLauncher } from '../../src/host-integration/launcher.ts';
import type { IntegrationTargets } from '../../src/host-integration/targets.ts';
import { testTargets } from '../helpers/integration-targets.ts';

/** A script that prints what it was started with, under a name that means something to a shell. */
function printing(targets: IntegrationTargets): IntegrationTargets {
  const script = join(targets.home, "it's $HOME.cjs");
  writeFileSync(script, 'console.log(JSON.stringify([process.env.RDCTL_COMPAT ?? null, ...process.argv.slice(2)]));');
  return { ...targets, self: [process.execPath, script] };
}

test.each([
  [false, null],
  [true, 'rancher-desktop'],
])('the launcher passes on every argument; drop-in mode %j', async (dropIn, compat) => {
  const path = await writeLauncher(printing(testTargets({ dropIn })));
  const out = execFileSync(path, ['a b', '$x', '', "'"], { env: {}, encoding: 'utf8' });
  expect(JSON.parse(out)).toEqual([compat, 'a b', '$x', '', "'"]);
});
