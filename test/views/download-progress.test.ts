import { expect, test } from 'vitest';
import { downloadProgress } from '../../cli/views/progress.ts';
import { fakeIo } from '../helpers/cli.ts';

const MIB = 1024 ** 2;

/** Time that the test advances. */
function fakeClock() {
  let now = 0;
  return {
    now: () => now,
    advance(ms: number) {
      now += ms;
    },
  };
}

test('is drawn at most ten times a second, and ends with the last value', () => {
  const io = fakeIo({ progress: true });
  const clock = fakeClock();
  const progress = downloadProgress(io, clock);
  for (let part = 1; part <= 2000; part += 1) {
    progress.show(part * MIB, 2000 * MIB);
    if (part < 2000) clock.advance(1);
  }
  const drawn = io.text.err.split('\r\u001b[2K');
  expect(drawn.length).toBeGreaterThan(15);
  expect(drawn.length).toBeLessThanOrEqual(21);
  expect(drawn[0]).toBe('1.0 MiB, 0%');
  expect(drawn.at(-1)).toBe('2.0 GiB, 100%');
  progress.end();
  expect(io.text.err.endsWith('\r\u001b[2K')).toBe(true);
});

test('is cleared before the reason of a retry and at its end', () => {
  const io = fakeIo({ progress: true });
  const clock = fakeClock();
  const progress = downloadProgress(io, clock);
  progress.show(MIB, undefined);
  progress.show(2 * MIB, undefined);
  progress.retry('the server has gone');
  clock.advance(200);
  expect(io.text.err).toBe('1.0 MiB\r\u001b[2Kthe server has gone; trying again.\n');
  progress.show(3 * MIB, undefined);
  progress.show(4 * MIB, undefined);
  progress.end();
  clock.advance(200);
  expect(io.text.err.endsWith('3.0 MiB\r\u001b[2K')).toBe(true);
});

test('without a terminal is a line for each quarter of a minute, and the reason of a retry', () => {
  const io = fakeIo();
  const clock = fakeClock();
  const progress = downloadProgress(io, clock);
  progress.show(MIB, 2 * MIB);
  progress.show(2 * MIB, 2 * MIB);
  clock.advance(200);
  progress.retry('the server has gone');
  for (let second = 0; second < 40; second += 1) {
    clock.advance(1000);
    progress.show(MIB, 2 * MIB);
  }
  progress.end();
  const line = '  Downloading: 1.0 MiB, 50%\n';
  expect(io.text.err).toBe(`the server has gone; trying again.\n${line}${line}`);
});
