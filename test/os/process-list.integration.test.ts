import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { steadyClock } from '../../src/os/clock.ts';
import { findDaemon, startDaemon, stopDaemon } from '../../src/os/daemon.ts';
import { listProcesses, parseProcesses } from '../../src/os/process-list.ts';
import { readProcess, signalProcess } from '../../src/os/process-table.ts';
import { tailOf } from '../../src/os/program-log.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** Until the test ends, everything takes this system for macOS; `ps` accepts the same options here. */
function onMac(): void {
  const platform = Object.getOwnPropertyDescriptor(process, 'platform') ?? {};
  Object.defineProperty(process, 'platform', { ...platform, value: 'darwin' });
  onTestFinished(() => void Object.defineProperty(process, 'platform', platform));
}

test('the table of ps has pid, parent, start and command of processes that live', () => {
  const table = [
    '    1     0 Ss   Mon Nov  2 09:00:01 2026 /sbin/launchd',
    '  501     1 S+   Tue Nov 24 11:30:59 2026 /opt/homebrew/bin/qemu-system-aarch64 -name rdctl-1,x -qmp unix:/tmp/a b/qmp',
    '  502   501 Z    Tue Nov 24 11:31:00 2026 (ssh)',
    'warning: nothing',
    '',
  ].join('\n');
  expect(parseProcesses(table)).toEqual([
    { pid: 1, parent: 0, started: 'Mon Nov  2 09:00:01 2026', argv: ['/sbin/launchd'] },
    {
      pid: 501,
      parent: 1,
      started: 'Tue Nov 24 11:30:59 2026',
      argv: ['/opt/homebrew/bin/qemu-system-aarch64', '-name', 'rdctl-1,x', '-qmp', 'unix:/tmp/a', 'b/qmp'],
    },
  ]);
});

describe.skipIf(process.platform === 'win32')('without /proc', () => {
  test('a process is found as ps shows it, and a missing one is not', async () => {
    const [entry] = await listProcesses(process.pid);
    expect(entry).toMatchObject({ pid: process.pid, parent: process.ppid });
    expect(await listProcesses()).toContainEqual(entry);
    expect(await listProcesses(2 ** 22 + 1)).toEqual([]);
  });

  test('a daemon in a directory with blanks is found by its record and stopped, and another start is not', async () => {
    onMac();
    const directory = join(temporaryDirectory(), 'Application Support');
    mkdirSync(directory);
    const spec = {
      argv: [process.execPath, '-e', 'console.log("up"); setInterval(() => 0, 1000)', join(directory, 'own')],
      recordFile: join(directory, 'record.json'),
      logFile: join(directory, 'log'),
      env: {},
    };
    const pid = await startDaemon(spec);
    await expect.poll(() => tailOf(spec.logFile)).toContain('up');
    expect(await findDaemon(spec.recordFile)).toEqual({ state: 'running', pid });
    expect(await startDaemon(spec)).toBe(pid);
    expect(await signalProcess({ pid, started: 'Mon Nov  2 09:00:01 2026' }, 'SIGKILL')).toBe(false);
    expect(await stopDaemon(spec.recordFile, { graceMs: 60_000, clock: steadyClock })).toBe('stopped');
    expect(await readProcess(pid)).toBeUndefined();
    expect(await findDaemon(spec.recordFile)).toEqual({ state: 'none' });
  });

  test('a daemon whose record is gone keeps another one from its files', async () => {
    onMac();
    const directory = join(temporaryDirectory(), 'a b');
    mkdirSync(directory);
    const argv = [process.execPath, '-e', 'setInterval(() => 0, 1000)', join(directory, 'own')];
    const spec = { argv, recordFile: join(directory, 'one.json'), logFile: join(directory, 'log'), env: {} };
    const pid = await startDaemon(spec);
    await expect(startDaemon({ ...spec, recordFile: join(directory, 'two.json') })).rejects.toMatchObject({
      message: expect.stringContaining(`(pid ${pid}) is already using the same files`),
    });
    expect(await stopDaemon(spec.recordFile, { graceMs: 60_000, clock: steadyClock })).toBe('stopped');
  });
});
