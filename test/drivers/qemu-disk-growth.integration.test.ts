import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { dataBytes } from '../../src/drivers/machines/qemu/disks.ts';
import { degradationOf, growDisk, growthWatch, parseGrowth } from '../../src/drivers/machines/qemu/live/disk-growth.ts';
import { qemuMonitor } from '../../src/drivers/machines/qemu/monitor.ts';
import { GROWTH_SCRIPT, REFUSE_WHILE_GROWING, START_SCRIPT } from '../../src/drivers/machines/qemu/setup-scripts.ts';
import { steadyClock } from '../../src/os/clock.ts';
import { findProgram, programPath } from '../../src/os/program.ts';
import { run } from '../../src/os/run.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { GIB, type ScriptedWorld, scriptedGuest, scriptedMonitor, scriptedWorld } from './scripted-qemu.ts';

const never = new AbortController().signal;
const TIB = 1024 * GIB;
const hasImages = (await findProgram('qemu-img', programPath(process.env.PATH))) !== undefined;

describe('a file system on a disk that grows', () => {
  async function scene(changes: Partial<ScriptedWorld>) {
    const world = scriptedWorld(changes);
    const path = join(temporaryDirectory(), 'qmp');
    const server = await scriptedMonitor(world, path);
    onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
    let time = 0;
    const clock = {
      now: () => time,
      async sleep(ms: number) {
        time += ms;
      },
    };
    const parts = { monitor: qemuMonitor(path), guest: scriptedGuest(world), clock };
    return { world, guest: parts.guest, grow: (to: number) => growDisk(parts, world.disk, to, never) };
  }

  test('is waited for', async () => {
    const { world, grow } = await scene({ growth: GIB });
    expect(await grow(60 * GIB)).toEqual({ state: 'done' });
    expect(world.fileSystem).toBe(60 * GIB);
  });

  test('keeps growing in the guest for minutes, and reports progress until it is done', async () => {
    const { world, guest, grow } = await scene({ growth: 4 * GIB });
    const growth = await grow(TIB);
    expect(growth).toMatchObject({ state: 'going', bytes: expect.any(Number) });
    expect(degradationOf(growth, TIB)).toMatch(
      /^the file system of the data disk has \d+ GiB of 1024 GiB and is still growing in the background$/,
    );
    // Requesting it again starts no second growth.
    expect(await grow(TIB)).toMatchObject({ state: 'going' });
    expect(world.orders.filter(({ execute }) => execute === 'block_resize')).toHaveLength(1);
    const watch = growthWatch(guest);
    expect(await watch.degradation(TIB, never)).toContain('is still growing');
    world.growth = TIB;
    expect(await watch.degradation(TIB, never)).toBeUndefined();
    // A finished growth is not queried again.
    world.growsNot = 'no';
    expect(await watch.degradation(TIB, never)).toBeUndefined();
    watch.begin();
    expect(await watch.degradation(TIB, never)).toContain('did not grow (no)');
  });

  test('reports why it failed', async () => {
    const { grow } = await scene({ growsNot: 'resize2fs: There are errors in the filesystem' });
    await expect(grow(30 * GIB)).rejects.toMatchObject({
      code: 'ERR_DRIVER_FAILED',
      message:
        'the file system of the data disk does not grow to 30 GiB: resize2fs: There are errors in the filesystem',
    });
  });

  test.each<[string, string, string | undefined]>([
    ['one that has grown', 'done 21474836480\n', undefined],
    [
      'one that says only the last of many lines',
      `failed ${5 * GIB}\nresize2fs 1.47\nno space\n`,
      'has 5 GiB and not 20 GiB, because it did not grow (no space)',
    ],
    [
      'one of which nothing is known',
      'sh: od: not found\nfailed 0\n',
      'is not 20 GiB, because it did not grow (sh: od: not found)',
    ],
    ['one that says nothing', '', 'is not 20 GiB, because it did not grow (no reason given)'],
  ])('%s', (_what, text, lack) => {
    const found = degradationOf(parseGrowth(text), 20 * GIB);
    if (lack === undefined) expect(found).toBeUndefined();
    else expect(found).toContain(lack);
  });
});

describe('the size of the data disk', () => {
  test.skipIf(!hasImages)('is read without a program, even while the disk is in use', async () => {
    const data = join(temporaryDirectory(), 'data.qcow2');
    expect(await dataBytes(data)).toBe(0);
    await run(['qemu-img', 'create', '-q', '-f', 'qcow2', data, String(100 * GIB)]);
    expect(await dataBytes(data)).toBe(100 * GIB);
    await run(['qemu-img', 'resize', '-q', data, String(8 * TIB)]);
    expect(await dataBytes(data)).toBe(8 * TIB);
  });

  test('is unknown for what is not a disk image', async () => {
    const data = join(temporaryDirectory(), 'data.qcow2');
    for (const text of ['', 'short', 'x'.repeat(4096)]) {
      writeFileSync(data, text);
      expect(await dataBytes(data)).toBeUndefined();
    }
  });
});

describe('the script in the guest', () => {
  /** A guest with a file as its disk, and a program in place of resize2fs. */
  function scene(program: string) {
    const root = temporaryDirectory();
    for (const name of ['sys/vda', 'sys/vdb', 'dev', 'run', 'bin']) mkdirSync(join(root, name), { recursive: true });
    writeFileSync(join(root, 'sys/vda/serial'), '');
    writeFileSync(join(root, 'sys/vdb/serial'), 'rdctl-data');
    writeFileSync(join(root, 'sys/vdb/size'), `${(20 * TIB) / 512}\n`);
    const disk = join(root, 'dev/vdb');
    /** In blocks of 4 KiB; the upper half of the number is stored far from the lower. */
    const setSize = (bytes: number) => {
      const superblock = Buffer.alloc(4096);
      const blocks = BigInt(bytes / 4096);
      superblock.writeUInt32LE(Number(blocks & 0xffffffffn), 1024 + 4);
      superblock.writeUInt32LE(2, 1024 + 24);
      superblock.writeUInt32LE(Number(blocks >> 32n), 1024 + 0x150);
      writeFileSync(disk, superblock);
    };
    setSize(20 * TIB);
    const grown = join(root, 'grown');
    writeFileSync(grown, readFileSync(disk));
    setSize(5 * TIB);
    const calls = join(root, 'calls');
    const text = `#!/bin/sh\necho "$1" >> ${calls}\ngrown() { cp ${grown} ${disk}.new; mv ${disk}.new ${disk}; }\n${program}\n`;
    writeFileSync(join(root, 'bin/resize2fs'), text);
    chmodSync(join(root, 'bin/resize2fs'), 0o755);
    const here = (script: string) =>
      script
        .replaceAll('/sys/block', join(root, 'sys'))
        .replaceAll('/dev/vd', join(root, 'dev/vd'))
        .replaceAll('"/dev/$', `"${root}/dev/$`)
        .replaceAll('/run/', `${root}/run/`)
        .replaceAll('sleep 2', 'sleep 0.1');
    const env = { PATH: `${root}/bin:${process.env.PATH}` };
    const ask = async (script: string, ...words: string[]) =>
      (await run(['dash', '-s', '--', ...words], { input: here(script), env })).stdout;
    return {
      root,
      ask,
      setSize,
      called: () => (existsSync(calls) ? readFileSync(calls, 'utf8').split('\n').filter(Boolean) : []),
      async ended() {
        let said = '';
        do {
          await steadyClock.sleep(50);
          said = await ask(GROWTH_SCRIPT, 'look');
        } while (said.startsWith('going'));
        return said;
      },
    };
  }

  test('has nothing to do where the file system fills its disk', async () => {
    const { ask, setSize, called } = scene('exit 1');
    setSize(20 * TIB);
    expect(await ask(START_SCRIPT)).toBe('');
    expect(await ask(GROWTH_SCRIPT, 'begin')).toBe(`done ${20 * TIB}\n`);
    expect(called()).toEqual([]);
  });

  test('begins one growth however often it is called, and reports progress', async () => {
    const { root, ask, called, ended } = scene('sleep 1; grown');
    for (const order of ['begin', 'look', 'begin']) {
      expect(await ask(GROWTH_SCRIPT, order)).toBe(`going ${5 * TIB}\n`);
    }
    expect(await ended()).toBe(`done ${20 * TIB}\n`);
    expect(called()).toEqual([join(root, 'dev/vdb')]);
  });

  test('waits for a quick one at boot, and says nothing about it', async () => {
    const { ask, called } = scene('grown');
    expect(await ask(START_SCRIPT)).toBe('');
    expect(called()).toHaveLength(1);
  });

  test.each([
    ['another one that is at work', 'resize2fs: Device or resource busy'],
    ['a superblock that is being written', 'resize2fs: Superblock checksum does not match superblock'],
  ])('waits for %s', async (_what, text) => {
    const { ask, called, ended } = scene(`[ $(wc -l < "$0.calls" 2>/dev/null || echo 0) -ge 3 ] && { grown; exit 0; }
echo x >> "$0.calls"; echo '${text}' >&2; exit 1`);
    expect(await ask(GROWTH_SCRIPT, 'begin')).toMatch(/^going /);
    expect(await ended()).toBe(`done ${20 * TIB}\n`);
    expect(called()).toHaveLength(4);
  });

  test('gives up on one that fails, says why, and retries only when told to', async () => {
    const { ask, called, ended } = scene("echo 'resize2fs 1.47'; echo 'resize2fs: no, \\\"never\\\"' >&2; exit 1");
    expect(await ask(GROWTH_SCRIPT, 'begin')).toMatch(/^going /);
    const failed = `failed ${5 * TIB}\nresize2fs 1.47\nresize2fs: no, \\"never\\"\n`;
    expect(await ended()).toBe(failed);
    expect(await ask(GROWTH_SCRIPT, 'look')).toBe(failed);
    expect(called()).toHaveLength(1);
    expect(await ask(START_SCRIPT)).toBe(failed);
    expect(called()).toHaveLength(2);
  });

  test('counts one that ended slightly below the disk size as done: the last blocks may be too few for a group', async () => {
    const { ask, called, ended } = scene('exit 0');
    await ask(GROWTH_SCRIPT, 'begin');
    expect(await ended()).toBe(`done ${5 * TIB}\n`);
    expect(await ask(START_SCRIPT)).toBe('');
    expect(called()).toHaveLength(2);
  });

  test('grows again for a disk that grew in the meantime', async () => {
    const { root, ask, called, ended } = scene('sleep 0.5; grown');
    await ask(GROWTH_SCRIPT, 'begin');
    writeFileSync(join(root, 'sys/vdb/size'), `${(24 * TIB) / 512}\n`);
    await ended();
    expect(called()).toHaveLength(2);
  });

  test('lets nothing freeze the file system while it grows', async () => {
    const { ask, ended } = scene('sleep 1; grown');
    await ask(REFUSE_WHILE_GROWING);
    await ask(GROWTH_SCRIPT, 'begin');
    await expect(ask(REFUSE_WHILE_GROWING)).rejects.toMatchObject({ details: [expect.stringContaining('is growing')] });
    await ended();
    await ask(REFUSE_WHILE_GROWING);
  });

  test('never fails a start, whatever the guest lacks', async () => {
    const { root, ask } = scene('exit 0');
    writeFileSync(join(root, 'sys/vdb/serial'), 'other');
    expect(parseGrowth(await ask(START_SCRIPT))).toMatchObject({ state: 'failed', bytes: 0 });
  });
});
