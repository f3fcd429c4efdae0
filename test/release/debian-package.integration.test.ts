import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { debianPackage } from '../../release/debian/package.ts';
import { TARGETS } from '../../release/targets.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** A package of a small file, made in a process with this umask. */
async function packed(umask: number): Promise<string> {
  const [target] = TARGETS;
  if (!target) throw new Error('there is no target');
  const folder = join(temporaryDirectory(), 'out');
  mkdirSync(folder);
  const program = join(folder, 'program');
  writeFileSync(program, 'program');
  const before = process.umask(umask);
  try {
    const facts = { version: '0.1.0', target, program, packages: [], notices: 'none\n', folder };
    const name = await debianPackage({ ...facts, epoch: 1_700_000_000, maintainer: 'Ann <ann@example.test>' });
    return join(folder, name);
  } finally {
    process.umask(before);
  }
}

test('two packages of one file are the same bytes, whatever the umask', async () => {
  const [one, other] = [await packed(0o022), await packed(0o077)];
  expect(readFileSync(one).equals(readFileSync(other))).toBe(true);
  const listing = execFileSync('dpkg-deb', ['--contents', one], { encoding: 'utf8' }).trimEnd().split('\n');
  const modes = new Set(listing.map((line) => line.split(/\s+/).slice(0, 2).join(' ')));
  expect([...modes].sort()).toEqual(['-rw-r--r-- root/root', '-rwxr-xr-x root/root', 'drwxr-xr-x root/root']);
});
