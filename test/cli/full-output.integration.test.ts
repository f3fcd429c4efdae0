import { spawnSync } from 'node:child_process';
import { existsSync, openSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { run } from '../../cli/run.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { fakeIo } from '../helpers/cli.ts';
import { commandOf } from '../helpers/tool-program.ts';

/** As `fs.writeSync` throws it for a stream. */
function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: something, write`), { code, syscall: 'write', errno: -28 });
}

async function withFullOutput(argv: string[], code = 'ENOSPC') {
  const io = fakeIo({ env: { RDCTL_HOME: '/nowhere' } });
  const fail = () => {
    throw systemError(code);
  };
  const exit = await run(argv, { ...io, out: fail, say: fail });
  return { exit, err: io.text.err };
}

describe('output that cannot be written', () => {
  test.each([
    [['help']],
    [['create-profile', '--output=reg', '-b', '{}']],
    [['validate', 'examples/locked-down.yaml', '-o', 'json']],
    [['explain', 'kubernetes.port']],
  ])('%j is reported as such', async (argv) => {
    expect(await withFullOutput(argv)).toEqual({
      exit: 1,
      err: 'Error: could not write the output: no space left on the device\nThe output is incomplete.\n',
    });
  });

  test('does not hide an earlier error', async () => {
    const { exit, err } = await withFullOutput(['validate', 'no-such-file.yaml', '-o', 'json']);
    expect(exit).toBe(1);
    expect(err).toMatch(/^Error: no-such-file.yaml could not be read: no such file or directory\n/);
  });

  test('other write failures remain defects', async () => {
    expect((await withFullOutput(['help'], 'EINVAL')).err).toContain('This is a bug in rdctl.');
  });
});

const tool = builtTool();

test.runIf(existsSync('/dev/full'))('the program exits cleanly when both of its streams fail', () => {
  const full = openSync('/dev/full', 'w');
  const [program, ...words] = commandOf(tool.entry());
  const ended = (argv: string[], stdio: [number, number | 'pipe']) =>
    spawnSync(program, [...words, ...argv], { stdio: ['ignore', ...stdio], encoding: 'utf8' });
  const { status, stderr } = ended(['help'], [full, 'pipe']);
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: 'Error: could not write the output: no space left on the device\nThe output is incomplete.\n',
  });
  expect(ended(['help'], [full, full]).status).toBe(1);
  expect(ended(['nonsense'], [full, full]).status).toBe(1);
});
