import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { steadyClock } from '../../src/os/clock.ts';
import { findDaemon, startDaemon, stopDaemon } from '../../src/os/daemon.ts';
import { readProcess } from '../../src/os/process-table.ts';
import { cannotMount, mountSmallDisk } from '../helpers/full-disk.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

test.skipIf(cannotMount())('a program is found even though the disk was too full to record its pid', async () => {
  const disk = temporaryDirectory();
  // One page: enough for the first word of the program, but not for a second one.
  onTestFinished(mountSmallDisk(disk, '4k'));
  const own = temporaryDirectory();
  const recordFile = join(disk, 'record.json');
  const argv = [process.execPath, '-e', 'setInterval(() => undefined, 1000)', join(own, 'own')];
  const pid = await startDaemon({ argv, recordFile, logFile: join(own, 'log'), env: {} });
  onTestFinished(async () => void (await stopDaemon(recordFile, { graceMs: 1_000, clock: steadyClock })));
  expect(readdirSync(disk)).toContain('record.json');
  // A process has no arguments while it becomes the program, and these are all that it can be found by.
  await expect.poll(() => findDaemon(recordFile)).toEqual({ state: 'running', pid });
  expect(await stopDaemon(recordFile, { graceMs: 60_000, clock: steadyClock })).toBe('stopped');
  expect(await readProcess(pid)).toBeUndefined();
  expect(await findDaemon(recordFile)).toEqual({ state: 'none' });
});
