import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { GuestImage } from '../../src/drivers/guest-images/image.ts';
import { accelerationFailure, accelerators } from '../../src/drivers/machines/qemu/accelerator.ts';
import { wholeDisk } from '../../src/drivers/machines/qemu/arguments.ts';
import {
  checkDiskCopy,
  type DiskParts,
  dataBytes,
  diskFacts,
  ensureData,
  ensureRoot,
} from '../../src/drivers/machines/qemu/disks.ts';
import type { Run } from '../../src/drivers/shell.ts';
import { RdError } from '../../src/errors.ts';
import { findProgram, programPath } from '../../src/os/program.ts';
import { run as runProgram } from '../../src/os/run.ts';
import { diskHeader } from '../helpers/disk-header.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { HOST } from './scripted-qemu.ts';

const MIB = 2 ** 20;
const signal = new AbortController().signal;
const run: Run = (argv, options) => runProgram(argv, options);
const path = programPath(process.env.PATH);
const hasImages = (await findProgram('qemu-img', path)) !== undefined;
const hasQemu = (await findProgram('qemu-system-x86_64', path)) !== undefined;

/** A place with an image whose disk is real only as far as this needs it. */
async function scene(text = 'first') {
  const root = temporaryDirectory();
  const logged: string[] = [];
  const places = { disk: join(root, 'disk.qcow2'), data: join(root, 'data.qcow2') };
  const image = await imageIn(join(root, 'image'), text);
  const parts = { places, run, signal, log: (_level: string, message: string) => void logged.push(message) };
  return { root, places, parts, image, logged };
}

async function imageIn(directory: string, text: string): Promise<GuestImage> {
  mkdirSync(directory, { recursive: true });
  const raw = join(directory, 'disk.raw');
  const bytes = Buffer.alloc(MIB);
  bytes.write(text);
  writeFileSync(raw, bytes);
  await run(['qemu-img', 'convert', '-f', 'raw', '-O', 'qcow2', raw, join(directory, 'disk.qcow2')]);
  const file = (name: string) => ({ name, bytes: 1, sha256: '0'.repeat(64) });
  return {
    format: 1,
    name: 'test',
    architecture: 'x86_64',
    created: '2020-01-01T00:00:00Z',
    rootBytes: MIB,
    digest: 'sha256:0',
    directory,
    files: { kernel: file('vmlinuz'), initrd: file('initrd'), disk: file('disk.qcow2') },
  };
}

async function ensureDisks(parts: DiskParts, image: GuestImage, ofImage: boolean, bytes: number): Promise<void> {
  await ensureRoot(parts, join(image.directory, image.files.disk.name), ofImage);
  expect(await ensureData(parts, bytes)).toBeGreaterThanOrEqual(bytes);
}

async function beginning(disk: string): Promise<string> {
  const raw = `${disk}.raw`;
  await run(['qemu-img', 'convert', '-f', 'qcow2', '-O', 'raw', disk, raw]);
  return readFileSync(raw).subarray(0, 6).toString().replaceAll('\0', '');
}

async function writeInto(disk: string, text: string): Promise<void> {
  await run(['qemu-io', '-f', 'qcow2', '-c', `write -P ${text.charCodeAt(0)} 0 65536`, disk]);
}

function damage(disk: string): void {
  const bytes = readFileSync(disk);
  bytes.fill(0xff, 0, 64);
  writeFileSync(disk, bytes);
}

describe.skipIf(!hasImages)('the disks of a machine', () => {
  test('are created once: the root over the image, the data disk empty and in its size', async () => {
    const { places, parts, image, logged } = await scene();
    await ensureDisks(parts, image, false, 64 * MIB);
    expect(await diskFacts(parts, places.disk)).toEqual({ bytes: MIB, backing: join(image.directory, 'disk.qcow2') });
    expect(await diskFacts(parts, places.data)).toEqual({ bytes: 64 * MIB });
    await writeInto(places.disk, 'a');
    await writeInto(places.data, 'b');
    await ensureDisks(parts, image, true, 64 * MIB);
    expect(await beginning(places.disk)).toBe('aaaaaa');
    expect(await beginning(places.data)).toBe('bbbbbb');
    expect(logged).toEqual([]);
  });

  test('grow and never shrink', async () => {
    const { places, parts, image } = await scene();
    for (const [wanted, size] of [
      [16, 16],
      [32, 32],
      [8, 32],
    ] as const) {
      await ensureDisks(parts, image, true, wanted * MIB);
      expect((await diskFacts(parts, places.data)).bytes).toBe(size * MIB);
    }
  });

  test('keep the data with another image, on a new root disk', async () => {
    const { root, places, parts, image, logged } = await scene();
    await ensureDisks(parts, image, false, MIB);
    await writeInto(places.disk, 'a');
    await writeInto(places.data, 'b');
    await ensureDisks(parts, await imageIn(join(root, 'other'), 'second'), false, MIB);
    expect(await beginning(places.disk)).toBe('second');
    expect(await beginning(places.data)).toBe('bbbbbb');
    expect(logged).toEqual(['recreating the root disk of the guest']);
  });

  test('follow an image that moved with its home', async () => {
    const { root, places, parts, image } = await scene();
    await ensureDisks(parts, image, false, MIB);
    rmSync(image.directory, { recursive: true });
    const moved = await imageIn(join(root, 'moved', basename(image.directory)), 'first');
    await ensureDisks(parts, moved, true, MIB);
    expect((await diskFacts(parts, places.disk)).backing).toBe(join(moved.directory, 'disk.qcow2'));
    expect(await beginning(places.disk)).toBe('first');
  });

  test('never combine two images, whatever the record says, because it is written before the root is created', async () => {
    const { root, places, parts, image, logged } = await scene();
    await ensureDisks(parts, image, false, MIB);
    await writeInto(places.disk, 'a');
    await writeInto(places.data, 'b');
    await ensureDisks(parts, await imageIn(join(root, 'other'), 'second'), true, MIB);
    expect(await beginning(places.disk)).toBe('second');
    expect(await beginning(places.data)).toBe('bbbbbb');
    expect(logged).toEqual(['recreating the root disk of the guest']);
  });

  test('that are damaged: the root is recreated, the data is never touched', async () => {
    const { places, parts, image, logged } = await scene();
    await ensureDisks(parts, image, false, MIB);
    damage(places.disk);
    await ensureDisks(parts, image, true, MIB);
    expect(await beginning(places.disk)).toBe('first');
    expect(logged).toHaveLength(1);
    damage(places.data);
    const before = readFileSync(places.data);
    await expect(ensureDisks(parts, image, true, MIB)).rejects.toMatchObject({
      code: 'ERR_DRIVER_TERMINAL',
      message: expect.stringContaining('is damaged'),
      details: [expect.any(String)],
      advice: expect.stringContaining('Nothing was changed'),
    });
    expect(readFileSync(places.data).equals(before)).toBe(true);
  });
});

describe('a data disk from elsewhere', () => {
  test.each<[string, (path: string) => void, string]>([
    [
      'has a backing file',
      (path) => writeFileSync(path, diskHeader({ backing: '/etc/passwd' })),
      'its header names a backing file',
    ],
    [
      'has a data file',
      (path) => writeFileSync(path, diskHeader({ features: 4n })),
      'its header names an external data file',
    ],
    ['is a FIFO', (path) => execFileSync('mkfifo', [path]), 'it is not a regular file'],
    ['is a directory', (path) => mkdirSync(path), 'it is not a regular file'],
  ])('that %s is opened by no program', async (_what, make, why) => {
    const data = join(temporaryDirectory(), 'data.qcow2');
    make(data);
    const parts = {
      places: { disk: `${data}.none`, data },
      run: () => Promise.reject(new Error('a program was started')),
      log: () => undefined,
      signal,
    };
    const refusal = { code: 'ERR_DRIVER_TERMINAL', message: `the data disk ${data} was not made by rdctl: ${why}` };
    await expect(ensureData(parts, MIB)).rejects.toMatchObject(refusal);
    await expect(checkDiskCopy(parts, data)).rejects.toMatchObject(refusal);
    expect(await dataBytes(data)).toBe(why.startsWith('its header') ? 2 ** 30 : undefined);
  });

  test('may be behind a link of the user, and in a copy may not', async () => {
    const directory = temporaryDirectory();
    const data = join(directory, 'data.qcow2');
    const moved = join(directory, 'elsewhere');
    writeFileSync(moved, diskHeader());
    symlinkSync(moved, data);
    const info = JSON.stringify({ 'virtual-size': 2 ** 30 });
    const run: Run = async () => ({ exitCode: 0, stdout: info, stderr: '' });
    const parts = { places: { disk: `${data}.none`, data }, run, log: () => undefined, signal };
    expect(await ensureData(parts, MIB)).toBe(2 ** 30);
    expect(await dataBytes(data)).toBe(2 ** 30);
    await expect(checkDiskCopy(parts, data)).rejects.toMatchObject({
      message: expect.stringContaining('not a regular'),
    });
    writeFileSync(moved, diskHeader({ backing: '/etc/passwd' }));
    await expect(ensureData(parts, MIB)).rejects.toMatchObject({ message: expect.stringContaining('a backing file') });
  });

  test.skipIf(!hasImages)('made by qemu-img itself is refused as well', async () => {
    const { root, places, parts } = await scene();
    const victim = join(root, 'victim');
    for (const options of [
      ['-b', victim, '-F', 'raw'],
      ['-o', `data_file=${victim}`],
    ]) {
      writeFileSync(victim, Buffer.alloc(MIB, 'v'));
      rmSync(places.data, { force: true });
      await run(['qemu-img', 'create', '-q', '-f', 'qcow2', ...options, places.data, String(MIB)]);
      writeFileSync(victim, 'mine');
      await expect(ensureData(parts, 2 * MIB)).rejects.toMatchObject({ code: 'ERR_DRIVER_TERMINAL' });
      expect(readFileSync(victim, 'utf8')).toBe('mine');
    }
  });
});

test.skipIf(!hasImages)(
  'the programs of QEMU read a disk over the files that they are given, not over those of its header',
  async () => {
    const { root, places, image } = await scene('first');
    const other = await imageIn(join(root, 'other, with "quotes"'), 'second');
    const [first, second] = [image, other].map(({ directory }) => join(directory, 'disk.qcow2')) as [string, string];
    await run(['qemu-img', 'create', '-q', '-f', 'qcow2', '-b', first, '-F', 'qcow2', places.disk]);
    const raw = join(root, 'raw');
    const read = async (...files: string[]) => {
      await run(['qemu-img', 'convert', '-f', 'qcow2', '-O', 'raw', wholeDisk(files), raw]);
      return readFileSync(raw).subarray(0, 6).toString().replaceAll('\0', '');
    };
    expect(await read(places.disk, first)).toBe('first');
    expect(await read(places.disk, second)).toBe('second');
    expect(await read(places.disk)).toBe('');
  },
);

test.skipIf(!hasImages)('a data disk in use by another program is not called damaged', async () => {
  const { places, parts } = await scene();
  await ensureData(parts, MIB);
  const holder = spawn('qemu-io', ['-f', 'qcow2', places.data], { stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => void holder.kill());
  // Its prompt: it has opened the disk.
  await once(holder.stdout, 'data');
  await expect(ensureData(parts, MIB)).rejects.toMatchObject({
    code: 'ERR_DRIVER_FAILED',
    message: expect.stringContaining('is in use by another program'),
    advice: expect.stringContaining('fuser'),
  });
  const gone = once(holder, 'exit');
  holder.stdin.end();
  await gone;
  expect(await ensureData(parts, MIB)).toBe(MIB);
});

describe('whether guests can run', () => {
  test.skipIf(!hasQemu)('is answered by running an instruction', async () => {
    expect(await accelerationFailure('x86_64', 'tcg', temporaryDirectory(), run, signal)).toBeUndefined();
  });

  test.skipIf(!hasQemu)('is no for an accelerator that QEMU does not have', async () => {
    const noSuch: Run = (argv, options) =>
      run(
        argv.map((word) => (word === 'tcg' ? 'whpx' : word)),
        options,
      );
    expect(await accelerationFailure('x86_64', 'tcg', temporaryDirectory(), noSuch, signal)).toContain('whpx');
  });

  test('is yes when the guest writes to the port, tested with the accelerator and the disk', async () => {
    const asked: string[] = [];
    const answer = await accelerationFailure(
      'x86_64',
      'kvm',
      temporaryDirectory(),
      async (argv) => {
        const disk = /^file=(.*),format=raw/.exec(argv[argv.indexOf('-drive') + 1] ?? '')?.[1] ?? '';
        expect(readFileSync(disk).subarray(510, 512)).toEqual(Buffer.from([0x55, 0xaa]));
        asked.push(argv[argv.indexOf('-accel') + 1] ?? '', argv[argv.indexOf('-cpu') + 1] ?? '');
        return { exitCode: 33, stdout: '', stderr: '' };
      },
      signal,
    );
    expect(answer).toBeUndefined();
    expect(asked).toEqual(['kvm', 'host']);
  });

  test('is tested once, and the machine gets KVM where it works', async () => {
    let runs = 0;
    const ask = accelerators(HOST, temporaryDirectory(), async () => {
      runs += 1;
      return { exitCode: 33, stdout: '', stderr: '' };
    });
    expect([await ask(signal), await ask(signal)]).toEqual([{ accelerator: 'kvm' }, { accelerator: 'kvm' }]);
    expect(runs).toBe(1);
  });

  test.each([
    ['No such file or directory', /^this host has no \/dev\/kvm; .*firmware/],
    ['Permission denied', /cannot open \/dev\/kvm; .*group kvm/],
    ['Device or resource busy', /QEMU reported: -accel kvm: failed to initialize kvm: Device or resource busy$/],
    // A clause: the caller ends the sentence.
    ['it failed.', /QEMU reported: -accel kvm: failed to initialize kvm: it failed$/],
  ])('without KVM includes the reason and a remedy: %s', async (why, told) => {
    const stderr = `Could not access KVM kernel module: ${why}\nqemu-system-x86_64: -accel kvm: failed to initialize kvm: ${why}\n`;
    const ask = accelerators(HOST, temporaryDirectory(), async () => ({ exitCode: 1, stdout: '', stderr }));
    expect(await ask(signal)).toEqual({ accelerator: 'tcg', emulatedBecause: expect.stringMatching(told) });
  });

  test('is no for KVM that emulates kernels, and cannot', async () => {
    const dir = temporaryDirectory();
    const qemu = join(dir, 'qemu');
    writeFileSync(qemu, '#!/bin/sh\necho "KVM internal error. Suberror: 1\nemulation failure" >&2\nexec sleep 60\n', {
      mode: 0o755,
    });
    const ask = accelerators(HOST, dir, (argv, options) => run([qemu, ...argv.slice(1)], options));
    expect(await ask(signal)).toEqual({
      accelerator: 'tcg',
      emulatedBecause: 'a test guest did not run with KVM; QEMU reported: KVM internal error. Suberror: 1',
    });
  });

  test('is no when QEMU fails, hangs, or the guest ends in another way', async () => {
    for (const exitCode of [0, 1, 134]) {
      const answer = await accelerationFailure(
        'x86_64',
        'kvm',
        temporaryDirectory(),
        async () => ({ exitCode, stdout: '', stderr: '' }),
        signal,
      );
      expect(answer).toBe(`it exited with status ${exitCode} before the guest ran`);
    }
    const hangs = () => Promise.reject(new RdError('ERR_DRIVER_FAILED', 'it did not finish within 20 s'));
    expect(await accelerationFailure('x86_64', 'kvm', temporaryDirectory(), hangs, signal)).toBe(
      'it did not finish within 20 s',
    );
    const cancelled = () => Promise.reject(new RdError('ERR_CANCELLED', 'it was cancelled'));
    await expect(accelerationFailure('x86_64', 'kvm', temporaryDirectory(), cancelled, signal)).rejects.toMatchObject({
      code: 'ERR_CANCELLED',
    });
  });
});
