import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** A clone with a tool that prints what it was given. */
function clone() {
  const folder = join(temporaryDirectory(), 'a clone');
  for (const each of ['src', 'dist', 'bin', 'elsewhere']) mkdirSync(join(folder, each), { recursive: true });
  cpSync('rdctl', join(folder, 'rdctl'));
  const tool = join(folder, 'dist', 'rdctl.cjs');
  writeFileSync(tool, 'console.log(JSON.stringify([process.env.RDCTL_COMMAND, ...process.argv.slice(2)]));');
  const source = join(folder, 'src', 'plan.ts');
  writeFileSync(source, '');
  const at = (file: string, seconds: number) => utimesSync(file, seconds, seconds);
  at(source, 1000);
  at(tool, 2000);
  return {
    folder,
    tool,
    isEdited: () => at(source, 3000),
    run(script: string, argv: string[], stage: { cwd?: string; path?: string; env?: Record<string, string> } = {}) {
      const { cwd = folder, path = process.env.PATH, env } = stage;
      const { status, stdout, stderr } = spawnSync(script, argv, {
        cwd,
        env: { ...env, PATH: path },
        encoding: 'utf8',
      });
      return { status, out: stdout, err: stderr };
    },
    /** A directory with programs for `PATH`, and nothing else but what the script itself needs. */
    programs(node?: string): string {
      const bin = join(folder, 'bin');
      for (const each of ['readlink', 'dirname', 'find', 'head', 'sh']) {
        symlinkSync(execFileSync('sh', ['-c', `command -v ${each}`], { encoding: 'utf8' }).trim(), join(bin, each));
      }
      if (node !== undefined) {
        writeFileSync(join(bin, 'node'), `#!/bin/sh\necho ${node}\n`);
        chmodSync(join(bin, 'node'), 0o755);
      }
      return bin;
    },
  };
}

test('runs what was built, with the arguments as they are, from any directory, through links and by the PATH', () => {
  const { folder, run } = clone();
  const argv = ['up', 'a b', '', '--x=*'];
  expect(run('./rdctl', argv)).toEqual({ status: 0, out: `${JSON.stringify(['./rdctl', ...argv])}\n`, err: '' });
  const elsewhere = join(folder, 'elsewhere');
  expect(run('../rdctl', [], { cwd: elsewhere }).out).toBe('["../rdctl"]\n');
  symlinkSync('../rdctl', join(elsewhere, 'first'));
  symlinkSync(join(elsewhere, 'first'), join(elsewhere, 'second'));
  expect(run('./second', ['x'], { cwd: elsewhere }).out).toBe('["./second","x"]\n');
  expect(run('rdctl', ['x'], { path: `${folder}:${process.env.PATH}` }).out).toBe('["rdctl","x"]\n');
});

test('says that the source is newer than what was built, and runs it', () => {
  const { isEdited, run } = clone();
  isEdited();
  const { status, out, err } = run('./rdctl', []);
  expect({ status, out }).toEqual({ status: 0, out: '["./rdctl"]\n' });
  expect(err).toMatch(/^notice: src\/plan\.ts is newer than what was built\. .* npm ci\)\n$/);
});

test('a clone that has not been built, and a Node that is missing or too old, are errors that say what to do', () => {
  const { folder, run, programs } = clone();
  const path = programs();
  expect(run('./rdctl', [], { path })).toMatchObject({
    status: 1,
    out: '',
    err: expect.stringMatching(/^Error: node is not on the PATH\. Install Node 20\.19/),
  });
  expect(run('./rdctl', ['up'], { path, env: { SUDO_USER: 'you' } })).toMatchObject({
    status: 1,
    err: expect.stringContaining('sudo env PATH="$PATH" ./rdctl up\n'),
  });
  for (const version of ['v18.20.4', 'v20.18.3']) {
    const old = clone();
    expect(old.run('./rdctl', [], { path: old.programs(version) })).toMatchObject({
      status: 1,
      out: '',
      err: expect.stringContaining(`rdctl needs Node 20.19 or newer, and node on the PATH is ${version}`),
    });
  }
  cpSync('rdctl', join(folder, 'elsewhere', 'rdctl'));
  expect(run('./elsewhere/rdctl', [])).toMatchObject({
    status: 1,
    out: '',
    err: `Error: this clone has not been built yet. Build it with: (cd '${folder}/elsewhere' && npm ci)\n`,
  });
});
