import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { RdError } from '../../src/errors.ts';
import {
  type FileOperations,
  fileOperations,
  removeLeftovers,
  writeFileAtomic,
  writeFilesAtomic,
} from '../../src/os/atomic-file.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** The process dies at the n-th operation: a write gets half of its bytes to disk, and nothing happens afterwards. */
function dyingAt(fatal: number, dead: () => void): FileOperations {
  let count = 0;
  const never = () => {
    dead();
    return new Promise<never>(() => undefined);
  };
  const dies = () => ++count >= fatal;
  return {
    ...fileOperations,
    mkdir: (directory) => (dies() ? never() : fileOperations.mkdir(directory)),
    writeNew(path, data, mode) {
      if (!dies()) return fileOperations.writeNew(path, data, mode);
      writeFileSync(path, data.slice(0, data.length / 2), { mode });
      return never();
    },
    rename: (from, to) => (dies() ? never() : fileOperations.rename(from, to)),
    syncDirectory: (directory) => (dies() ? never() : fileOperations.syncDirectory(directory)),
    unlink: (path) => (dies() ? never() : fileOperations.unlink(path)),
  };
}

test.each([1, 2, 3, 4, 5, 6, 7])(
  'killed at operation %i, the file has the old or the new content, complete',
  async (fatal) => {
    const directory = temporaryDirectory();
    const path = join(directory, 'settings.json');
    const previous = join(directory, 'settings.previous.json');
    await writeFileAtomic(path, 'the first content', { previous });
    await writeFileAtomic(path, 'the old content', { previous });

    await new Promise<void>((dead) => {
      writeFileAtomic(path, 'the new content', { previous, operations: dyingAt(fatal, dead) });
    });

    const renamed = fatal > 6;
    expect(readFileSync(path, 'utf8')).toBe(renamed ? 'the new content' : 'the old content');
    expect(['the first content', 'the old content']).toContain(readFileSync(previous, 'utf8'));

    await removeLeftovers(path);
    await removeLeftovers(previous);
    expect(readdirSync(directory).sort()).toEqual(['settings.json', 'settings.previous.json']);
    await writeFileAtomic(path, 'the next content', { previous });
    expect(readFileSync(path, 'utf8')).toBe('the next content');
  },
);

test('one write that keeps a previous copy takes seven operations', async () => {
  const path = join(temporaryDirectory(), 'f');
  writeFileSync(path, 'old');
  let count = 0;
  const counting = Object.fromEntries(
    Object.entries(fileOperations).map(([name, work]) => [
      name,
      (...args: unknown[]) => {
        count += 1;
        return Reflect.apply(work, undefined, args);
      },
    ]),
  ) as unknown as FileOperations;
  await writeFileAtomic(path, 'new', { previous: `${path}.previous`, operations: counting });
  expect(count).toBe(7);
});

test('files and directories are private to their user', async () => {
  const path = join(temporaryDirectory(), 'a', 'b', 'secret.json');
  await writeFileAtomic(path, 'x');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(join(path, '..')).mode & 0o777).toBe(0o700);
  chmodSync(path, 0o644);
  await writeFileAtomic(path, 'y');
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test.each([
  ['ENOSPC', 'no space left on the device', 'Free some space'],
  ['EROFS', 'the file system is read-only', 'RDCTL_HOME'],
  ['EACCES', 'permission denied', 'RDCTL_HOME'],
])('%s is one message with advice, and the old content stays', async (code, reason, advice) => {
  const directory = temporaryDirectory();
  const path = join(directory, 'settings.json');
  writeFileSync(path, 'old');
  const failing: FileOperations = {
    ...fileOperations,
    async writeNew(target, data, mode) {
      await fileOperations.writeNew(target, data.slice(0, 1), mode);
      throw Object.assign(new Error(code), { code });
    },
  };
  const error = await writeFileAtomic(path, 'new', { operations: failing }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(RdError);
  expect(error).toMatchObject({ code: 'ERR_IO', message: `could not write ${path}: ${reason}` });
  expect((error as RdError).advice).toContain(advice);
  expect(readFileSync(path, 'utf8')).toBe('old');
  expect(readdirSync(directory)).toEqual(['settings.json']);
});

test('a directory in place of the file is reported', async () => {
  const path = join(temporaryDirectory(), 'settings.json');
  mkdirSync(path);
  await expect(writeFileAtomic(path, 'x')).rejects.toThrow(`could not write ${path}: it is a directory`);
});

test('only temporary files of that same file are removed', async () => {
  const directory = temporaryDirectory();
  for (const name of ['.a.json.0123456789ab.tmp', '.a.json.bak.tmp', '.b.json.0123456789ab.tmp', 'a.json']) {
    writeFileSync(join(directory, name), '');
  }
  expect(await removeLeftovers(join(directory, 'a.json'))).toEqual(['.a.json.0123456789ab.tmp']);
  expect(readdirSync(directory)).toHaveLength(3);
  expect(await removeLeftovers(join(directory, 'nowhere', 'a.json'))).toEqual([]);
});

test('files written together stay unchanged when there is no space for the last one', async () => {
  const directory = temporaryDirectory();
  const files = ['a', 'b'].map((name) => ({ path: join(directory, name), data: 'new' }));
  for (const { path } of files) writeFileSync(path, 'old');
  const full: FileOperations = {
    ...fileOperations,
    writeNew: (path, data, mode) =>
      path.includes('.b.')
        ? Promise.reject(Object.assign(new Error('full'), { code: 'ENOSPC' }))
        : fileOperations.writeNew(path, data, mode),
  };
  await expect(writeFilesAtomic(files, { operations: full })).rejects.toThrow(
    `could not write ${join(directory, 'b')}: no space left on the device`,
  );
  expect(readdirSync(directory).sort()).toEqual(['a', 'b']);
  for (const { path } of files) expect(readFileSync(path, 'utf8')).toBe('old');
  await writeFilesAtomic(files);
  for (const { path } of files) expect(readFileSync(path, 'utf8')).toBe('new');
});
