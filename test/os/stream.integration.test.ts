import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stream } from '../../src/os/run.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** Reports that it runs, and records that it was asked to exit. */
const PROGRAM = `process.on('SIGTERM', () => { require('node:fs').writeFileSync(process.argv[1], ''); process.exit(0); });
console.log('there'); setInterval(() => undefined, 1000);`;

test.each([
  [undefined, true],
  [0, false],
])('an abandoned program is asked to exit, unless there is no time for it: %s', async (graceMs, asked) => {
  const note = join(temporaryDirectory(), 'asked');
  const argv = [process.execPath, '-e', PROGRAM, note];
  const options = graceMs === undefined ? {} : { graceMs };
  for await (const chunk of stream(argv, options)) {
    expect(Buffer.from(chunk).toString()).toContain('there');
    break;
  }
  expect(existsSync(note)).toBe(asked);
});

test('a canceled program is not waited for when other processes hold its output', async () => {
  const abort = new AbortController();
  const holder = 'sleep 600 & echo $!; wait';
  let pid = 0;
  const reading = (async () => {
    for await (const chunk of stream(['sh', '-c', holder], { signal: abort.signal, graceMs: 0 })) {
      pid = Number(Buffer.from(chunk).toString());
      abort.abort();
    }
  })();
  await expect(reading).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  // It still runs, with the other end of the pipe.
  expect(process.kill(pid, 'SIGKILL')).toBe(true);
});
