import { spawn } from 'node:child_process';
import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { commandOf } from '../helpers/tool-program.ts';

/** Endless bytes; counts how many were read. */
function endless(): { stream: Readable; taken: () => number } {
  let taken = 0;
  function* pieces() {
    for (;;) {
      taken += 64 * 1024;
      yield Buffer.alloc(64 * 1024, 'y\n');
    }
  }
  return { stream: Readable.from(pieces()), taken: () => taken };
}

describe('endless input is refused after the maximum size', () => {
  const MEBIBYTE = 1024 * 1024;

  test.each<[string[], number, RegExp]>([
    [['import-profile', '-'], 16, /<stdin> has more than 16 MiB/],
    [['profile', 'check', '-'], 16, /<stdin> has more than 16 MiB/],
    [['diff', '-', 'live'], 16, /<stdin> has more than 16 MiB/],
    [['profile', 'upgrade', '-'], 1, /has more than 1 MiB/],
    [['create-profile', '--output', 'json', '--input', '-'], 1, /has more than 1 MiB/],
    [['validate', '-f', '-'], 1, /has more than 1 MiB/],
  ])('%j', async (argv, mebibytes, message) => {
    const [program, ...words] = commandOf();
    const child = spawn(program, [...words, ...argv], {
      env: { PATH: process.env.PATH, RDCTL_HOME: '/nonexistent' },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const { stream, taken } = endless();
    child.stdin.on('error', () => stream.destroy());
    stream.pipe(child.stdin);
    let said = '';
    for (const output of [child.stdout, child.stderr]) {
      output.on('data', (part: Buffer) => {
        said += part;
      });
    }
    const exit = await new Promise((done) => child.once('close', done));
    stream.destroy();
    expect(said).toMatch(message);
    expect([1, 3]).toContain(exit);
    expect(taken()).toBeGreaterThan(mebibytes * MEBIBYTE);
    expect(taken()).toBeLessThan((mebibytes + 2) * MEBIBYTE);
  });
});
