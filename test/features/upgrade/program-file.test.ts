import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openProgram, type ProgramOperations } from '../../../src/features/upgrade/program-file.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

/** Real operations; the process is "killed" before number `limit`: from then on nothing changes the disk. */
function operations(limit = Number.POSITIVE_INFINITY) {
  let count = 0;
  const step = (work: () => void) => async () => {
    count += 1;
    if (count > limit) throw new Error('killed');
    work();
  };
  const made: ProgramOperations = {
    link: (from, to) => step(() => linkSync(from, to))(),
    rename: (from, to) => step(() => renameSync(from, to))(),
    unlink: (path) => step(() => unlinkSync(path))(),
    syncDirectory: () => step(() => undefined)(),
  };
  return { made, count: () => count };
}

interface Stage {
  limit?: number;
  platform?: 'linux' | 'win32';
}

const NONE_ALIVE = { isAlive: async () => false };

/** A directory with a program of version 1, and a file with version 2 elsewhere. */
function stage() {
  const folder = temporaryDirectory();
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const path = join(bin, 'rdctl');
  writeFileSync(path, 'one');
  chmodSync(path, 0o751);
  const next = join(folder, 'two');
  writeFileSync(next, 'two');
  const text = (file = path) => (existsSync(file) ? readFileSync(file, 'utf8') : undefined);
  const previous = join(bin, '.rdctl.previous');
  const open = ({ limit, platform = 'linux' }: Stage = {}) => {
    const { made, count } = operations(limit);
    return { count, file: openProgram(path, { platform, operations: made, processes: NONE_ALIVE }) };
  };
  async function upgrade(to: string, options?: Stage) {
    writeFileSync(next, to);
    const { count, file } = open(options);
    const program = await file;
    await program.replace(await program.stage(next, sha256(to)));
    return count();
  }
  async function back(options?: Stage) {
    const { count, file } = open(options);
    const program = await file;
    if (!(await program.hasPrevious())) throw new Error('no previous');
    await program.goBack();
    return count();
  }
  return { bin, path, next, previous, text, open, upgrade, back };
}

describe.each(['linux', 'win32'] as const)('on %s', (platform) => {
  test('the old program is kept, with the mode of the program, and the way back goes both ways', async () => {
    const { bin, path, previous, text, upgrade, back } = stage();
    await upgrade('two', { platform });
    expect([text(), text(previous)]).toEqual(['two', 'one']);
    expect(statSync(path).mode & 0o7777).toBe(0o751);
    await back({ platform });
    expect([text(), text(previous)]).toEqual(['one', 'two']);
    await back({ platform });
    expect([text(), text(previous)]).toEqual(['two', 'one']);
    await upgrade('three', { platform });
    expect([text(), text(previous)]).toEqual(['three', 'two']);
    expect(readdirSync(bin).sort()).toEqual(['.rdctl.previous', 'rdctl']);
  });
});

describe('killed before any of its steps', () => {
  test('an upgrade leaves a whole program, and the next one works and cleans up', async () => {
    const steps = await stage().upgrade('two');
    expect(steps).toBeGreaterThan(3);
    for (let limit = 0; limit < steps; limit += 1) {
      const { bin, previous, text, upgrade } = stage();
      await expect(upgrade('two', { limit })).rejects.toThrow();
      expect(['one', 'two'], `killed before step ${limit + 1}`).toContain(text());
      if (text() === 'two') expect(text(previous)).toBe('one');
      await upgrade('three');
      expect(text()).toBe('three');
      expect(['one', 'two']).toContain(text(previous));
      expect(readdirSync(bin).sort()).toEqual(['.rdctl.previous', 'rdctl']);
    }
  });

  test('a way back leaves a whole program, and no version is lost', async () => {
    const first = stage();
    await first.upgrade('two');
    const steps = await first.back();
    for (let limit = 0; limit < steps; limit += 1) {
      const { bin, previous, text, open, upgrade, back } = stage();
      await upgrade('two');
      await expect(back({ limit })).rejects.toThrow();
      expect(['one', 'two'], `killed before step ${limit + 1}`).toContain(text());
      // The next command, whatever it does, puts the other one in its place.
      await open().file;
      expect([text(), text(previous)].sort()).toEqual(['one', 'two']);
      const before = text();
      await back();
      expect(text()).not.toBe(before);
      expect(readdirSync(bin).sort()).toEqual(['.rdctl.previous', 'rdctl']);
    }
  });

  test('an upgrade before its exchange is no version to go back to', async () => {
    const { previous, text, upgrade, back } = stage();
    // The link and the rename that make the program its own predecessor.
    await expect(upgrade('two', { limit: 2 })).rejects.toThrow();
    expect([text(), text(previous)]).toEqual(['one', 'one']);
    await expect(back()).rejects.toThrow('no previous');
  });
});

test('a file with another digest is refused, and nothing of it stays', async () => {
  const { bin, next, text, open } = stage();
  const program = await open().file;
  await expect(program.stage(next, sha256('other'))).rejects.toMatchObject({
    code: 'ERR_UPGRADE_REFUSED',
    message: `${next} is not the file that was signed: its sha256 is ${sha256('two')}`,
  });
  await expect(program.stage(`${next}-none`, sha256('two'))).rejects.toMatchObject({ code: 'ERR_IO' });
  expect(readdirSync(bin)).toEqual(['rdctl']);
  expect(text()).toBe('one');
});

test('a program that another command has replaced meanwhile stays, and the way back is not lost', async () => {
  const { bin, next, previous, text, open, upgrade } = stage();
  const slow = await open().file;
  const staged = await slow.stage(next, sha256('two'));
  renameSync(staged, `${staged}.aside`);
  await upgrade('three');
  renameSync(`${staged}.aside`, staged);
  await expect(slow.replace(staged)).rejects.toMatchObject({ code: 'ERR_UPGRADE_REFUSED' });
  await slow.discard(staged);
  expect([text(), text(previous)]).toEqual(['three', 'one']);
  expect(readdirSync(bin).sort()).toEqual(['.rdctl.previous', 'rdctl']);
});

test('what a live process prepares is left alone', async () => {
  const { bin, path } = stage();
  writeFileSync(join(bin, '.rdctl.new-4242.tmp'), 'part');
  writeFileSync(join(bin, '.rdctl.new-4243.tmp'), 'part');
  writeFileSync(join(bin, '.other.new-4243.tmp'), 'part');
  await openProgram(path, { platform: 'linux', processes: { isAlive: async ({ pid }) => pid === 4242 } });
  expect(readdirSync(bin).sort()).toEqual(['.other.new-4243.tmp', '.rdctl.new-4242.tmp', 'rdctl']);
});

test('a link by the name of the application still leads to the program', async () => {
  const { bin, upgrade, text } = stage();
  const link = join(bin, 'rdctl-app');
  symlinkSync('rdctl', link);
  await upgrade('two');
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
  expect(text(link)).toBe('two');
});
