import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, inject } from 'vitest';

/** A copy of the tool for the tests of one file, built once per run from the current source, without a code cache. */
export function builtTool(): { folder(): string; entry(): string } {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'rdctl-dist-'));
    cpSync(builtOnce(inject('builds')), folder, { recursive: true });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return { folder: () => folder, entry: () => join(folder, 'rdctl.cjs') };
}

function builtOnce(builds: string): string {
  const tool = join(builds, 'tool');
  if (existsSync(tool)) return tool;
  const own = mkdtempSync(join(builds, 'new-'));
  execFileSync(process.execPath, [resolve('build.mjs'), '--no-cache', '--out-dir', own], { stdio: 'inherit' });
  try {
    renameSync(own, tool);
  } catch (error) {
    // Another worker was faster.
    if (!existsSync(tool)) throw error;
  }
  return tool;
}
