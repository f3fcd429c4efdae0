import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, inject } from 'vitest';
import { isStandalone, TOOL } from './tool-program.ts';

/**
 * A copy of the tool for the tests of one file, built once per run from the current source, without a code cache; or links to the standalone
 * file that is under test.
 */
export function builtTool(): { folder(): string; entry(): string; application(): string } {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'rdctl-dist-'));
    if (isStandalone) {
      for (const name of ['rdctl', 'rdctl-app']) symlinkSync(TOOL, join(folder, name));
      return;
    }
    cpSync(builtOnce(inject('builds')), folder, { recursive: true });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const end = isStandalone ? '' : '.cjs';
  return {
    folder: () => folder,
    entry: () => join(folder, `rdctl${end}`),
    application: () => join(folder, `rdctl-app${end}`),
  };
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
