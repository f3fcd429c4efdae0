import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import { changeNotices } from '../../src/drivers/machines/qemu/mounts/change-notices.ts';
import type { Share } from '../../src/drivers/machines/qemu/mounts/directories.ts';
import { NOTICE_SCRIPT } from '../../src/drivers/machines/qemu/mounts/guest-scripts.ts';
import { watchTree } from '../../src/drivers/machines/qemu/mounts/tree-watch.ts';
import { steadyClock } from '../../src/os/clock.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const uid = process.getuid?.() ?? 0;

/** A watched directory, with what the guest was told about it. */
async function scene() {
  const root = realpathSync(temporaryDirectory());
  for (const name of ['src', 'node_modules', 'hidden']) mkdirSync(join(root, name));
  writeFileSync(join(root, 'src', 'a'), '1');
  const told: string[] = [];
  let connections = 0;
  let line = new PassThrough();
  const notices = changeNotices({
    guest: {
      async converse() {
        connections += 1;
        line = new PassThrough();
        line.on('data', (data: Buffer) => {
          told.push(
            ...data
              .toString()
              .split('\n')
              .filter(Boolean)
              .map((text) => text.replace(`${uid} `, '').replace(root, '')),
          );
        });
        return line;
      },
    },
    clock: steadyClock,
  });
  onTestFinished(() => notices.stop());
  const share: Share = {
    id: 'mount-1',
    path: root,
    real: root,
    mode: 'writable-notify',
    hidden: [join(root, 'hidden')],
  };
  notices.follow([share]);
  const written = new Set<string>();
  // It watches once a change is reported; those written while it did not yet may be reported later.
  const settled = async (path: string) => {
    written.add(`/${path}`);
    await expect
      .poll(() => {
        writeFileSync(join(root, path), String(told.length));
        return told;
      })
      .toContain(`/${path}`);
    await quiet();
  };
  /** Until nothing is reported for longer than a batch takes. */
  const quiet = async () => {
    for (let before = -1; before !== told.length; await steadyClock.sleep(300)) before = told.length;
    return told.splice(0).filter((path) => !written.has(path));
  };
  /** What is reported next, however busy this computer is. */
  const reported = async () => {
    await expect.poll(() => told.some((path) => !written.has(path))).toBe(true);
    return quiet();
  };
  await settled('src/ready');
  return {
    root,
    told,
    notices,
    share,
    quiet,
    reported,
    settled,
    connections: () => connections,
    lose: () => line.destroy(),
  };
}

describe('changes on this host', () => {
  test('are reported once: files, new directories and what is in them, deletions as their directory', async () => {
    const { root, quiet, reported, settled } = await scene();
    writeFileSync(join(root, 'src', 'a'), '2');
    expect(await reported()).toEqual(['/src/a']);
    renameSync(join(root, 'src', 'a'), join(root, 'src', 'a b%'));
    expect((await reported()).sort()).toEqual(['/src', '/src/a%20b%25']);
    rmSync(join(root, 'src', 'a b%'));
    expect(await reported()).toEqual(['/src']);
    mkdirSync(join(root, 'src', 'new', 'deep'), { recursive: true });
    expect(await reported()).toContain('/src/new');
    await settled('src/new/deep/file');
    for (const name of ['node_modules', 'hidden']) writeFileSync(join(root, name, 'x'), '');
    expect(await quiet()).toEqual([]);
  });

  test('do not include what the guest does to report them', async () => {
    const { root, quiet, reported } = await scene();
    const file = join(root, 'src', 'a');
    writeFileSync(file, '2');
    expect(await reported()).toEqual(['/src/a']);
    const before = statSync(file, { bigint: true });
    for (const path of [file, join(root, 'src')]) {
      const { status } = spawnSync('sh', ['-c', NOTICE_SCRIPT], { input: `${uid} ${path.replaceAll(' ', '%20')}\n` });
      expect(status).toBe(0);
    }
    const { mtimeNs, mode, size } = statSync(file, { bigint: true });
    expect({ mtimeNs, mode, size }).toEqual({ mtimeNs: before.mtimeNs, mode: before.mode, size: before.size });
    // The directory was never reported before.
    expect(['/src', '']).toContain((await quiet()).join());
    spawnSync('sh', ['-c', NOTICE_SCRIPT], { input: `${uid} ${join(root, 'src')}\n` });
    expect(await quiet()).toEqual([]);
  });

  test('are not reported of programs that could lose rights by it, and links', async () => {
    const { root, reported } = await scene();
    const set = join(root, 'src', 'set');
    writeFileSync(set, 'x');
    chmodSync(set, 0o4755);
    writeFileSync(join(root, 'src', 'elf'), '\x7fELF', { mode: 0o755 });
    writeFileSync(join(root, 'src', 'script'), '#!/bin/sh', { mode: 0o755 });
    symlinkSync('/etc/passwd', join(root, 'src', 'link'));
    expect((await reported()).sort()).toEqual(['/src', '/src/script']);
  });

  test('in large numbers are reported by directory', async () => {
    const { root, quiet, reported } = await scene();
    const writeAll = (text: string) => {
      for (let at = 0; at < 1_100; at += 1) writeFileSync(join(root, 'src', `f${at}`), text);
    };
    writeAll('');
    await quiet();
    // The directory itself does not change.
    writeAll('1');
    expect(await reported()).toEqual(['/src']);
  });

  test('are reported again after the connection broke, and no longer after the end', async () => {
    const { root, quiet, reported, notices, lose, connections, share, settled } = await scene();
    expect(connections()).toBe(1);
    lose();
    writeFileSync(join(root, 'src', 'a'), '2');
    expect(await reported()).toEqual(['/src/a']);
    expect(connections()).toBe(2);
    notices.follow([share]);
    notices.follow([]);
    utimesSync(join(root, 'src', 'a'), 1, 1);
    expect(await quiet()).toEqual([]);
    notices.follow([share]);
    await settled('src/again');
  });
});

test('a tree with too many directories is watched in part, and says so', async () => {
  const root = realpathSync(temporaryDirectory());
  for (const name of ['a', 'b', 'c']) mkdirSync(join(root, name));
  const failures: string[] = [];
  const failed = (why: string) => void failures.push(why);
  const tree = watchTree({ root, hidden: [], most: 3, changed: () => undefined, failed });
  onTestFinished(() => tree.close());
  await tree.add(root);
  expect(failures).toEqual([`${root} has more than 3 directories`]);
});

test('the script in the guest touches what it is told to, nothing through a link, and nothing of another user', () => {
  const root = realpathSync(temporaryDirectory());
  const [file, inner] = [join(root, 'a b'), join(root, 'directory', 'file')];
  mkdirSync(join(root, 'directory'));
  for (const path of [file, inner]) writeFileSync(path, '');
  symlinkSync('a b', join(root, 'link'));
  symlinkSync('directory', join(root, 'way'));
  const touched = (owner: number, path: string) => {
    const times = () => [file, inner].map((each) => statSync(each, { bigint: true }).ctimeNs);
    const before = times();
    const input = `${owner} ${path.replaceAll(' ', '%20')}\n`;
    expect(spawnSync('sh', ['-c', NOTICE_SCRIPT], { input, encoding: 'utf8' })).toMatchObject({
      status: 0,
      stderr: '',
    });
    const after = times();
    return [file, inner].filter((_, at) => before[at] !== after[at]);
  };
  expect(touched(uid, file)).toEqual([file]);
  expect(touched(uid, inner)).toEqual([inner]);
  for (const name of ['link', 'way/file', 'gone']) expect(touched(uid, join(root, name)), name).toEqual([]);
  expect(touched(uid + 1, file)).toEqual([]);
});
