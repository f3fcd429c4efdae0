import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { comma, wholeDisk } from '../../src/drivers/machines/qemu/arguments.ts';
import { diskCopy } from '../../src/drivers/machines/qemu/disk-copy.ts';
import { checkDiskCopy } from '../../src/drivers/machines/qemu/disks.ts';
import { qemuMonitor } from '../../src/drivers/machines/qemu/monitor.ts';
import type { Run } from '../../src/drivers/shell.ts';
import { steadyClock } from '../../src/os/clock.ts';
import { findDaemon, startDaemon, stopDaemon } from '../../src/os/daemon.ts';
import { findProgram, programPath } from '../../src/os/program.ts';
import { run as runProgram } from '../../src/os/run.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const MIB = 2 ** 20;
const never = new AbortController().signal;
const run: Run = (argv, options) => runProgram(argv, options);
const path = programPath(process.env.PATH);
const programs = await Promise.all(['qemu-img', 'qemu-system-x86_64'].map((program) => findProgram(program, path)));

/** A QEMU without a guest, with data at the beginning and in the middle of its data disk. */
async function scene() {
  const directory = temporaryDirectory();
  const raw = join(directory, 'raw');
  const data = join(directory, 'data.qcow2');
  const content = Buffer.concat([randomBytes(4 * MIB), Buffer.alloc(4 * MIB), randomBytes(MIB)]);
  writeFileSync(raw, content);
  truncateSync(raw, 256 * MIB);
  await run(['qemu-img', 'convert', '-f', 'raw', '-O', 'qcow2', raw, data]);
  const socket = join(directory, 'qmp');
  const recordFile = join(directory, 'qemu.json');
  await startDaemon({
    argv: [
      'qemu-system-x86_64',
      ...['-nodefaults', '-no-user-config', '-machine', 'q35', '-accel', 'tcg', '-m', '64', '-S', '-display', 'none'],
      ...[
        '-drive',
        `file=${comma(wholeDisk([data]))},if=none,id=data,node-name=data0,format=qcow2,discard=unmap,detect-zeroes=unmap`,
      ],
      ...['-device', 'virtio-blk-pci,drive=data', '-qmp', `unix:${socket},server=on,wait=off`],
    ],
    recordFile,
    logFile: join(directory, 'qemu.log'),
    env: process.env,
  });
  onTestFinished(async () => void (await stopDaemon(recordFile, { graceMs: 5_000, clock: steadyClock })));
  await expect.poll(() => existsSync(socket), { timeout: 20_000 }).toBe(true);
  const monitor = qemuMonitor(socket);
  const isAlive = async () => (await findDaemon(recordFile)).state === 'running';
  /** What a guest would write. */
  const overwrite = () => {
    const args = { 'command-line': 'qemu-io data "write -P 9 0 1M"' };
    return monitor.use((qmp) => qmp.execute('human-monitor-command', args), never);
  };
  const nodes = async () => {
    const found = await monitor.use((qmp) => qmp.execute('query-named-block-nodes', { flat: true }), never);
    return JSON.stringify(found).match(/"node-name":"[a-z][^"]*"/g);
  };
  const copy = diskCopy({ monitor, run, clock: steadyClock, isAlive });
  mkdirSync(join(directory, 'a place, with blanks'));
  return { copy, raw, data, nodes, overwrite, to: join(directory, 'a place, with blanks', 'copy.qcow2') };
}

describe.skipIf(programs.includes(undefined))('QEMU', () => {
  test('copies the disk as of one moment, and keeps it sparse', async () => {
    const { copy, raw, data, nodes, overwrite, to } = await scene();
    await copy.prepare(to, never);
    await copy.begin(never);
    await overwrite();
    const shares: number[] = [];
    await copy.finish(never, (share) => shares.push(share));
    expect(shares.at(-1)).toBe(1);
    expect(await nodes()).toEqual(['"node-name":"data0"']);
    await checkDiskCopy({ run, signal: never }, to);
    await run(['qemu-img', 'compare', '-f', 'raw', '-F', 'qcow2', raw, to]);
    const changed = await run(['qemu-img', 'compare', '-U', '-f', 'raw', '-F', 'qcow2', raw, data], { accept: [1] });
    expect(changed.stdout).toContain('mismatch');
    expect(statSync(to).blocks * 512).toBeLessThan(6 * MIB);
  });

  test('releases a canceled copy, and can make another', async () => {
    const { copy, nodes, to } = await scene();
    await copy.prepare(to, never);
    await copy.begin(never);
    await copy.drop(never);
    await copy.drop(never);
    expect(await nodes()).toEqual(['"node-name":"data0"']);
    await copy.prepare(to, never);
    await copy.begin(never);
    await copy.finish(never, () => undefined);
    await checkDiskCopy({ run, signal: never }, to);
  });

  test('a damaged copy is reported with the findings of qemu-img', async () => {
    const { copy, to } = await scene();
    await copy.prepare(to, never);
    await copy.begin(never);
    await copy.finish(never, () => undefined);
    const bytes = readFileSync(to);
    // The refcount table starts where the header says.
    bytes.fill(0xff, Number(bytes.readBigUInt64BE(48)), Number(bytes.readBigUInt64BE(48)) + 64);
    writeFileSync(to, bytes);
    await expect(checkDiskCopy({ run, signal: never }, to)).rejects.toMatchObject({
      code: 'ERR_DRIVER_FAILED',
      message: 'the copy of the data disk is damaged',
      details: expect.toSatisfy((lines: string[]) => lines.length > 0 && lines.length <= 21),
    });
  });
});
