import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll } from 'vitest';

/** Builds the tool from the present source for the tests of one file, without a code cache. */
export function builtTool(): { folder(): string; entry(): string } {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'rdctl-dist-'));
    execFileSync(process.execPath, [resolve('build.mjs'), '--no-cache', '--out-dir', folder], { stdio: 'inherit' });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return { folder: () => folder, entry: () => join(folder, 'rdctl.cjs') };
}
