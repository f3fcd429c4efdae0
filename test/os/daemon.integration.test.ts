import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Clock } from '../../src/os/clock.ts';
import { steadyClock } from '../../src/os/clock.ts';
import type { DaemonSpec } from '../../src/os/daemon.ts';
import { findDaemon, startDaemon, stopDaemon, writeDaemonRecord } from '../../src/os/daemon.ts';
import { readProcess, readProcesses } from '../../src/os/process-table.ts';
import { boundLog, tailOf } from '../../src/os/program-log.ts';
import { NODE } from '../helpers/node-program.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const STUBBORN = 'process.on("SIGTERM", () => undefined); console.log("up"); setInterval(() => undefined, 1000)';
const WILLING = 'console.log("up"); setInterval(() => undefined, 1000)';

function daemon(script: string, directory = temporaryDirectory()): DaemonSpec {
  return {
    argv: [process.execPath, '-e', script, join(directory, 'own')],
    recordFile: join(directory, 'record.json'),
    logFile: join(directory, 'log'),
    env: {},
  };
}

/** Waits until the program has printed: its signal handlers are not installed before that. */
async function up(spec: DaemonSpec): Promise<void> {
  await expect.poll(() => tailOf(spec.logFile)).toContain('up');
}

/** A clock on which every wait ends at once. */
function fastPace(): Clock {
  let time = 0;
  return {
    now: () => time,
    async sleep(ms) {
      time += ms;
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

describe.skipIf(process.platform !== 'linux')('a daemon', () => {
  test('is found by its record, only once, and stopped', async () => {
    const spec = daemon(WILLING);
    expect(await findDaemon(spec.recordFile)).toEqual({ state: 'none' });
    const pid = await startDaemon(spec);
    expect(await startDaemon(spec)).toBe(pid);
    expect(await findDaemon(spec.recordFile)).toEqual({ state: 'running', pid });
    expect(await stopDaemon(spec.recordFile, { graceMs: 60_000, clock: steadyClock })).toBe('stopped');
    expect(await readProcess(pid)).toBeUndefined();
    expect(await findDaemon(spec.recordFile)).toEqual({ state: 'none' });
    expect(await stopDaemon(spec.recordFile, { graceMs: 60_000, clock: steadyClock })).toBe('none');
  });

  test('below a wrapper that stays is recorded and found itself, and outlives the wrapper', async () => {
    const spec = daemon(WILLING);
    const script = `const { spawn } = require('node:child_process'), [program, ...args] = process.argv.slice(1);
      const { pid } = spawn(program, args, { stdio: 'inherit' });
      require('node:fs').writeSync(3, JSON.stringify({ 'child-pid': pid }, null, 2));
      require('node:fs').closeSync(3);`;
    const pid = await startDaemon({ ...spec, within: [process.execPath, '-e', script, '--'], reportsPid: true });
    await up(spec);
    const wrapper = (await readProcess(pid))?.parent ?? 0;
    expect((await readProcess(wrapper))?.argv).toEqual([process.execPath, '-e', script, '--', ...spec.argv]);
    expect(await findDaemon(spec.recordFile)).toEqual({ state: 'running', pid });
    // As after a kill of the service before it had recorded the process.
    await writeDaemonRecord(spec.recordFile, { argv: spec.argv });
    expect(await findDaemon(spec.recordFile)).toEqual({ state: 'running', pid });
    process.kill(wrapper, 'SIGKILL');
    await expect.poll(() => readProcess(wrapper)).toBeUndefined();
    expect(await stopDaemon(spec.recordFile, { graceMs: 60_000, clock: steadyClock })).toBe('stopped');
    expect(await readProcess(pid)).toBeUndefined();
  });

  test('has no wrapper left once it is stopped', async () => {
    const spec = daemon(WILLING);
    const script = `const { spawn } = require('node:child_process'), [program, ...args] = process.argv.slice(1);
      const child = spawn(program, args, { stdio: 'inherit' });
      require('node:fs').writeSync(3, JSON.stringify({ 'child-pid': child.pid }));
      require('node:fs').closeSync(3);
      child.once('exit', () => setTimeout(() => process.exit(), 300));`;
    const pid = await startDaemon({ ...spec, within: [process.execPath, '-e', script, '--'], reportsPid: true });
    await up(spec);
    const wrapper = (await readProcess(pid))?.parent ?? 0;
    expect(await stopDaemon(spec.recordFile, { graceMs: 60_000, clock: steadyClock })).toBe('stopped');
    expect(await readProcess(wrapper)).toBeUndefined();
  });

  test('below a wrapper that fails has ended', async () => {
    const spec = daemon(WILLING);
    const within = [process.execPath, '-e', 'process.exit(1)', '--'];
    await startDaemon({ ...spec, within, reportsPid: true });
    await expect.poll(() => findDaemon(spec.recordFile)).toEqual({ state: 'ended' });
    await stopDaemon(spec.recordFile, { graceMs: 0, clock: steadyClock });
  });

  test('below a wrapper that reports nothing is found by its arguments', async () => {
    const spec = daemon(WILLING);
    const script = `const [program, ...args] = process.argv.slice(1);
      require('node:fs').closeSync(3);
      require('node:child_process').spawn(program, args, { stdio: 'inherit' });`;
    await startDaemon({ ...spec, within: [process.execPath, '-e', script, '--'], reportsPid: true });
    await up(spec);
    const found = await findDaemon(spec.recordFile);
    expect((await readProcess(found.state === 'running' ? found.pid : 0))?.argv).toEqual(spec.argv);
    expect(await stopDaemon(spec.recordFile, { graceMs: 60_000, clock: steadyClock })).toBe('stopped');
  });

  test('does not belong to a copied record, but to a moved one', async () => {
    const parent = temporaryDirectory();
    const spec = daemon(WILLING, join(parent, 'one'));
    mkdirSync(dirname(spec.recordFile));
    const pid = await startDaemon(spec);
    const [copy, moved] = [join(parent, 'copy'), join(parent, 'moved')];
    cpSync(dirname(spec.recordFile), copy, { recursive: true });
    expect(await findDaemon(join(copy, 'record.json'))).toEqual({ state: 'none' });
    expect(await stopDaemon(join(copy, 'record.json'), { graceMs: 60_000, clock: steadyClock })).toBe('none');
    expect(await findDaemon(spec.recordFile)).toEqual({ state: 'running', pid });
    renameSync(dirname(spec.recordFile), moved);
    expect(await findDaemon(join(moved, 'record.json'))).toEqual({ state: 'running', pid });
    expect(await stopDaemon(join(moved, 'record.json'), { graceMs: 60_000, clock: steadyClock })).toBe('stopped');
  });

  test('is not started twice on the same files when its record is gone', async () => {
    const spec = daemon(WILLING);
    const pid = await startDaemon(spec);
    // A process that has just begun has no arguments for a moment.
    await expect.poll(async () => (await readProcess(pid))?.argv).toEqual(spec.argv);
    const record = readFileSync(spec.recordFile, 'utf8');
    rmSync(spec.recordFile);
    await expect(startDaemon(spec)).rejects.toMatchObject({
      code: 'ERR_DRIVER_TERMINAL',
      message: expect.stringContaining(`(pid ${pid}) is already using the same files`),
    });
    expect(existsSync(spec.recordFile)).toBe(false);
    writeFileSync(spec.recordFile, record);
    expect(await stopDaemon(spec.recordFile, { graceMs: 60_000, clock: steadyClock })).toBe('stopped');
  });

  test('is killed when it does not exit within the grace period', async () => {
    const spec = daemon(STUBBORN);
    const pid = await startDaemon(spec);
    await up(spec);
    const clock = fastPace();
    // On the fast clock the grace period passes at once; the killed process still needs real time to disappear.
    const waits: Clock = {
      now: clock.now,
      sleep: (ms) => (clock.now() < 200 ? clock.sleep(ms) : steadyClock.sleep(1)),
    };
    expect(await stopDaemon(spec.recordFile, { graceMs: 200, clock: waits })).toBe('killed');
    expect(await readProcess(pid)).toBeUndefined();
  });

  test('is left alone by a stop whose signal aborts', async () => {
    const spec = daemon(STUBBORN);
    await startDaemon(spec);
    await up(spec);
    const stopping = stopDaemon(spec.recordFile, { graceMs: 60_000, clock: steadyClock, signal: AbortSignal.abort() });
    await expect(stopping).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
    expect((await findDaemon(spec.recordFile)).state).toBe('running');
    await stopDaemon(spec.recordFile, { graceMs: 0, clock: steadyClock });
  });

  test('is found even if its parent was killed before it recorded the pid', async () => {
    const spec = daemon(WILLING);
    const pid = await startDaemon(spec);
    // A process that has just begun has no arguments for a moment.
    await expect.poll(async () => (await readProcess(pid))?.argv).toEqual(spec.argv);
    await writeDaemonRecord(spec.recordFile, { argv: spec.argv });
    expect(await findDaemon(spec.recordFile)).toEqual({ state: 'running', pid });
    await stopDaemon(spec.recordFile, { graceMs: 60_000, clock: steadyClock });
    expect(await readProcess(pid)).toBeUndefined();
  });

  test('is not mistaken for another process with its pid', async () => {
    const spec = daemon(WILLING);
    const self = await readProcess(process.pid);
    await writeDaemonRecord(spec.recordFile, {
      argv: spec.argv,
      process: { pid: process.pid, started: self?.started ?? '' },
    });
    expect(await findDaemon(spec.recordFile)).toEqual({ state: 'ended' });
    await writeDaemonRecord(spec.recordFile, {
      argv: self?.argv ?? [],
      process: { pid: process.pid, started: 'other boot:1' },
    });
    expect(await findDaemon(spec.recordFile)).toEqual({ state: 'ended' });
    // That this continues proves that nothing was signaled.
    expect(await stopDaemon(spec.recordFile, { graceMs: 0, clock: steadyClock })).toBe('none');
  });

  test('is found under the name it gave itself in place of its arguments', async () => {
    const file = join(temporaryDirectory(), 'own-program');
    const text =
      "process.title = process.argv[1] + ' server'; console.log('renamed'); setInterval(() => undefined, 1000);";
    writeFileSync(file, `#!${NODE}\n${text}\n`, { mode: 0o755 });
    const spec = { ...daemon(WILLING), argv: [file, 'server', '--config', `${file}.with-a-long-name`] };
    const pid = await startDaemon(spec);
    await expect.poll(async () => (await readProcess(pid))?.argv[0]).toBe(`${file} server`);
    expect(await findDaemon(spec.recordFile)).toEqual({ state: 'running', pid });
    await writeDaemonRecord(spec.recordFile, { argv: spec.argv });
    expect(await findDaemon(spec.recordFile)).toEqual({ state: 'running', pid });
    expect(await stopDaemon(spec.recordFile, { graceMs: 60_000, clock: steadyClock })).toBe('stopped');
  });

  test('is found at every moment while a script becomes its interpreter', async () => {
    const directory = temporaryDirectory();
    const script = join(directory, 'script');
    writeFileSync(script, '#!/usr/bin/env node\nsetInterval(() => undefined, 1000);\n', { mode: 0o755 });
    for (let index = 0; index < 20; index++) {
      const spec = { ...daemon(''), argv: [script, join(directory, `own${index}`)], env: { PATH: process.env.PATH } };
      await startDaemon(spec);
      const looks = [];
      for (let look = 0; look < 20; look++) looks.push(await findDaemon(spec.recordFile));
      await stopDaemon(spec.recordFile, { graceMs: 1_000, clock: steadyClock });
      expect(looks.filter(({ state }) => state !== 'running')).toEqual([]);
    }
  });

  test('is reported as exited after it exits by itself', async () => {
    const spec = daemon('process.exit(3)');
    await startDaemon(spec);
    await expect.poll(async () => (await findDaemon(spec.recordFile)).state).toBe('ended');
  });

  test('leaves no record when it cannot start, and says how to install it', async () => {
    const spec = { ...daemon(''), argv: ['dockerd', '--config-file', '/nowhere'], env: { PATH: '/nonexistent' } };
    await expect(startDaemon(spec)).rejects.toMatchObject({
      code: 'ERR_DRIVER_TERMINAL',
      advice: 'Install it: apt-get install --no-install-recommends docker.io',
    });
    expect(await findDaemon(spec.recordFile)).toEqual({ state: 'none' });
  });

  test('talks to a partner through both their streams, and the partner ends with it', async () => {
    const directory = temporaryDirectory();
    const heard = join(directory, 'heard');
    const asks = `process.stdout.write("a".repeat(300000) + "\\n"); let all = "";
      process.stdin.on("data", (d) => { all += d; require("fs").writeFileSync(process.argv[1], String(all.length)); })`;
    const spec = { ...daemon('', directory), argv: [process.execPath, '-e', asks, heard], partner: ['cat', '-u'] };
    const pid = await startDaemon(spec);
    await expect.poll(() => existsSync(heard) && readFileSync(heard, 'utf8')).toBe('300001');
    expect(await findDaemon(spec.recordFile)).toEqual({ state: 'running', pid });
    const partners = async () =>
      (await readProcesses()).filter(({ parent, argv }) => parent === process.pid && argv.join(' ') === 'cat -u');
    expect(await partners()).toHaveLength(1);
    await stopDaemon(spec.recordFile, { graceMs: 60_000, clock: steadyClock });
    await expect.poll(partners).toEqual([]);
  });

  test('is not started without its partner', async () => {
    const spec = { ...daemon(WILLING), partner: [join(temporaryDirectory(), 'missing')] };
    await expect(startDaemon(spec)).rejects.toMatchObject({
      code: 'ERR_DRIVER_TERMINAL',
      message: expect.stringContaining('missing could not'),
    });
    expect(await findDaemon(spec.recordFile)).toEqual({ state: 'none' });
  });
});

describe('its log', () => {
  test('is rotated when it is too large, keeping one old file', async () => {
    const file = join(temporaryDirectory(), 'log');
    writeFileSync(file, `${'x'.repeat(100)}\nlast\n`);
    await boundLog(file, 1000);
    expect(existsSync(`${file}.1`)).toBe(false);
    expect(await tailOf(file, 1)).toEqual(['last']);
    await boundLog(file, 50);
    expect(statSync(file).size).toBe(0);
    expect(readFileSync(`${file}.1`, 'utf8')).toContain('last');
    expect(await tailOf(join(temporaryDirectory(), 'missing'))).toEqual([]);
  });
});
