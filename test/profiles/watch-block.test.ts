import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadDesired } from '../../profiles/document/load.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const HEAD = 'apiVersion: rdctl/v1\nkind: Profile\nsettings: { version: 19 }\n';

async function load(...texts: string[]) {
  const cwd = temporaryDirectory();
  const names = texts.map((text, index) => {
    writeFileSync(join(cwd, `${index}.yaml`), HEAD + text);
    return `${index}.yaml`;
  });
  const readStdin = async () => Buffer.alloc(0);
  return loadDesired(names, { cwd, env: {}, platform: 'linux', arch: 'x64', readStdin });
}

test('without the blocks, drift is reported and nothing waits', async () => {
  const { desired } = await load('');
  expect(desired?.watch).toEqual({ heal: 'report', fields: {} });
  expect(desired?.maintenance).toBeUndefined();
});

test('later layers win: heal and the window as a whole, fields one by one', async () => {
  const { desired } = await load(
    'watch: { heal: warn, fields: { state: report, images: warn } }\napply: { window: "Sat 02:00-04:00", maxDefer: 2w }\n',
    'watch: { heal: enforce, fields: { images: report, machine.mounts: enforce } }\napply: { window: "Sun 02:00-04:00" }\n',
  );
  expect(desired?.watch).toEqual({
    heal: 'enforce',
    fields: { state: 'report', images: 'report', 'machine.mounts': 'enforce' },
  });
  expect(desired?.maintenance).toEqual({ window: 'Sun 02:00-04:00' });
});

test.each([
  ['watch: always', '4:8 watch must be a mapping, not "always"'],
  ['watch: { heal: enforc }', '4:16 "enforc" is not a value of heal'],
  ['watch: { heals: warn }', '4:10 unknown key "heals"'],
  ['watch: { fields: warn }', '4:18 fields must be a mapping of settings to report, warn, enforce, not "warn"'],
  [
    'watch: { fields: { containerEngine.nam: warn } }',
    '4:20 containerEngine.nam is not a setting or section of a profile',
  ],
  ['watch: { fields: { version: warn } }', '4:20 version is not a setting or section of a profile'],
  ['watch: { fields: { images: 1 } }', '4:28 1 is not a value of images'],
  ['apply: "Sat 02:00-04:00"', '4:8 apply must be a mapping, not "Sat 02:00-04:00"'],
  ['apply: { maxDefer: 7d }', '4:8 window is missing'],
  ['apply: { window: 2 }', '4:18 window must be text, not 2'],
  ['apply: { window: Sat }', '4:18 "Sat" has days without a time'],
  ['apply: { window: "Sat 02:00-04:00", maxDefer: 7 }', '4:47 maxDefer cannot be 7'],
  ['apply: { window: "Sat 02:00-04:00", every: 7d }', '4:37 unknown key "every"'],
])('%s is refused', async (text, finding) => {
  const { findings } = await load(`${text}\n`);
  const [first] = findings.map(({ line, column, message }) => `${line}:${column} ${message}`);
  expect(first).toBe(finding);
});
