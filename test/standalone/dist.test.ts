import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { compile } from '../../release/compile.ts';
import { fileName, ownTarget } from '../../release/targets.ts';
import { copyOfTheSource } from '../helpers/source-copy.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

// Of what `npm run dist` has left in out/ for this system.

const OUT = resolve('out');
const { version } = JSON.parse(readFileSync('package.json', 'utf8'));

function own() {
  const target = ownTarget();
  if (!target) throw new Error('there is no file for this computer');
  return { target, name: fileName(version, target) };
}

const sha256 = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex');

test('another build in another directory has the same digest', async () => {
  const { target, name } = own();
  const again = join(temporaryDirectory(), 'again');
  await compile(target, again, copyOfTheSource());
  expect(sha256(again)).toBe(sha256(join(OUT, name)));
});

test('the sums are of all files, and sha256sum agrees', () => {
  const listed = readFileSync(join(OUT, 'SHA256SUMS'), 'utf8').trimEnd().split('\n');
  const there = readdirSync(OUT).filter((name) => !name.startsWith('SHA256SUMS'));
  expect(listed.map((line) => line.slice(66))).toEqual(there.sort());
  execFileSync('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: OUT });
});

test('the bill of materials names each package inside, with its license, and the runtime', () => {
  const { target, name } = own();
  const bill = JSON.parse(readFileSync(join(OUT, `${name}.cdx.json`), 'utf8'));
  expect(bill.metadata.component.hashes).toEqual([{ alg: 'SHA-256', content: sha256(join(OUT, name)) }]);
  const names = bill.components.map((each: { group?: string; name: string }) =>
    each.group === undefined ? each.name : `${each.group}/${each.name}`,
  );
  expect(names).toEqual(expect.arrayContaining(['fastify', 'yaml', 'ajv', '@clack/prompts', target.package]));
  expect(names).not.toEqual(expect.arrayContaining(['esbuild', 'vitest', 'typescript']));
  const licenses = readFileSync(join(OUT, `rdctl-${version}-licenses.txt`), 'utf8');
  for (const each of bill.components) {
    expect(each.licenses).toHaveLength(1);
    if (each.type === 'library') {
      const full = each.group === undefined ? each.name : `${each.group}/${each.name}`;
      expect(licenses).toContain(`\n${full} ${each.version} (`);
    }
  }
});
