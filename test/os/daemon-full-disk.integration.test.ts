import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { steadyClock } from '../../src/os/clock.ts';
import { findDaemon, startDaemon, stopDaemon } from '../../src/os/daemon.ts';
import { readProcess } from '../../src/os/process-table.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** Only root may mount; `.ci/run` is. With `RDCTL_REQUIRE_REAL=1` it must work. */
function cannotMount(): boolean {
  const cannot = process.platform !== 'linux' || process.getuid?.() !== 0;
  if (cannot && process.env.RDCTL_REQUIRE_REAL === '1')
    throw new Error('a full disk can be made by root on Linux only');
  if (cannot) process.stderr.write('\nSKIPPED: a full disk can be made by root on Linux only\n');
  return cannot;
}

test.skipIf(cannotMount())('a program is found even though the disk was too full to record its pid', async () => {
  const disk = temporaryDirectory();
  // One page: enough for the first word of the program, but not for a second one.
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4k,mode=0700', 'rdctl-test', disk]);
  onTestFinished(() => void execFileSync('umount', ['--lazy', disk]));
  const own = temporaryDirectory();
  const recordFile = join(disk, 'record.json');
  const argv = [process.execPath, '-e', 'setInterval(() => undefined, 1000)', join(own, 'own')];
  const pid = await startDaemon({ argv, recordFile, logFile: join(own, 'log'), env: {} });
  onTestFinished(async () => void (await stopDaemon(recordFile, { graceMs: 1_000, clock: steadyClock })));
  expect(readdirSync(disk)).toContain('record.json');
  expect(await findDaemon(recordFile)).toEqual({ state: 'running', pid });
  expect(await stopDaemon(recordFile, { graceMs: 60_000, clock: steadyClock })).toBe('stopped');
  expect(await readProcess(pid)).toBeUndefined();
  expect(await findDaemon(recordFile)).toEqual({ state: 'none' });
});
