import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeParents, removeParents } from '../../src/drivers/machines/host/shell.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

test('directories that were created for a file are removed with it, existing ones stay', async () => {
  const there = temporaryDirectory();
  const top = join(there, 'a');
  const file = join(top, 'b', 'file');
  expect(await makeParents(file)).toBe(top);
  expect(statSync(top).mode & 0o777).toBe(0o700);
  expect(await makeParents(file)).toBeUndefined();
  expect(await removeParents(file, top)).toBe(true);
  expect([existsSync(top), existsSync(there)]).toEqual([false, true]);
  // Someone else has removed it.
  expect(await removeParents(file, top)).toBe(true);
});

test('a directory that others use by now stays, with its parents', async () => {
  const there = temporaryDirectory();
  const file = join(there, 'a', 'b', 'file');
  mkdirSync(join(there, 'a', 'b'), { recursive: true });
  writeFileSync(join(there, 'a', 'other'), '');
  expect(await removeParents(file, join(there, 'a'))).toBe(false);
  expect([existsSync(join(there, 'a', 'b')), existsSync(join(there, 'a', 'other'))]).toEqual([false, true]);
});
