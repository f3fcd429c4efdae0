import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { link, lstat, rename, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findSnapshot, readCatalogue, sweep } from '../../../src/features/snapshots/catalogue.ts';
import { createDraft } from '../../../src/features/snapshots/creation.ts';
import { readManifest, verify, verifyShape } from '../../../src/features/snapshots/manifest.ts';
import { checkName, checkUnique, quoted } from '../../../src/features/snapshots/name.ts';
import { checkSpace, copyTree, usage } from '../../../src/features/snapshots/tree.ts';
import { run } from '../../../src/os/run.ts';
import { sizeText } from '../../../src/os/size.ts';
import { withKey } from '../../helpers/sealed-snapshot.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';

const never = new AbortController().signal;
/** Needs mounts and device files. */
const isRoot = process.platform === 'linux' && process.getuid?.() === 0;

describe('names', () => {
  const LONG = 'n'.repeat(251);
  test.each([
    ['', 'snapshot name must not be the empty string'],
    [LONG, `invalid name "${'n'.repeat(29)}…": max length is 250, 251 were specified`],
    ['a\tb', "invalid character '\\t' at position 1 in name: all characters must be printable or a space"],
    ['é\u00a0', "invalid character '\\u00a0' at position 2 in name: all characters must be printable or a space"],
    ['\u0000', "invalid character '\\x00' at position 0 in name: all characters must be printable or a space"],
    ['a\u200db', "invalid character '\\u200d' at position 1 in name: all characters must be printable or a space"],
    ['\u{e0001}', "invalid character '\\U000e0001' at position 0 in name: all characters must be printable or a space"],
    [' a', 'invalid name " a": must not start with a white-space character'],
    ['a ', 'invalid name "a ": must not end with a white-space character'],
    [`${'b'.repeat(40)} `, `invalid name "…${'b'.repeat(29)} ": must not end with a white-space character`],
    [` ${'b'.repeat(40)}`, `invalid name " ${'b'.repeat(28)}…": must not start with a white-space character`],
  ])('%j is refused with the text that scripts match', (name, message) => {
    expect(() => checkName(name)).toThrow(expect.objectContaining({ message, code: 'ERR_SNAPSHOT' }));
  });

  test.each(['a', '../../etc', '"quoted" \\ name', '--help', '🦀 crab', 'n'.repeat(250), 'ü'.repeat(250)])(
    '%j is a name',
    (name) => expect(() => checkName(name)).not.toThrow(),
  );

  test('are compared exactly', () => {
    expect(() => checkUnique('One', ['one'])).not.toThrow();
    expect(() => checkUnique('o"ne', ['o"ne'])).toThrow('name "o\\"ne" already exists');
    expect(quoted('a\\b\n🦀')).toBe('"a\\\\b\\n🦀"');
  });
});

test('sizes are shown in suitable units', () => {
  expect([0, 1023, 1024, 1.5 * 1024 ** 3].map(sizeText)).toEqual(['0 bytes', '1023 bytes', '1.0 KiB', '1.5 GiB']);
});

/** A directory as engines create them: hard links, holes, symlinks, a name that is not UTF-8, modes. */
async function engineData(): Promise<string> {
  const top = join(temporaryDirectory(), 'data');
  mkdirSync(join(top, 'layer'), { recursive: true, mode: 0o711 });
  await writeFile(join(top, 'layer', 'file'), 'content');
  await link(join(top, 'layer', 'file'), join(top, 'same'));
  await symlink('layer/nowhere', join(top, 'link'));
  await writeFile(join(top, 'sparse'), '');
  await truncate(join(top, 'sparse'), 64 * 1024 * 1024);
  await writeFile(Buffer.concat([Buffer.from(`${top}/`), Buffer.from([0xff, 0xfe])]), 'raw');
  return top;
}

async function saved(kept: readonly string[], root = join(temporaryDirectory(), 'snapshots')) {
  await withKey(root);
  const record = { created: '2026-01-02T03:04:05Z', name: 'one', description: '' };
  const draft = createDraft({ root, record, driver: 'host', kept, settings: () => '{}\n' });
  await draft.save(never);
  expect((await readCatalogue(root)).snapshots).toEqual([]);
  await draft.complete(never);
  const { directory } = await findSnapshot(root, 'one');
  const manifest = await readManifest(directory, join(directory, 'rdctl-complete.txt'));
  return { root, directory, manifest };
}

test('a copy has the hard links, holes, symlinks and modes of the original', async () => {
  const top = await engineData();
  const copy = `${top}.copy`;
  await copyTree(top, copy, never);
  const [one, two] = [statSync(join(copy, 'layer', 'file')), statSync(join(copy, 'same'))];
  expect(one.ino).toBe(two.ino);
  expect(statSync(join(copy, 'sparse')).size).toBe(64 * 1024 * 1024);
  expect(statSync(join(copy, 'sparse')).blocks * 512).toBeLessThan(1024 * 1024);
  expect((await lstat(join(copy, 'link'))).isSymbolicLink()).toBe(true);
  expect(statSync(join(copy, 'layer')).mode & 0o777).toBe(0o711);
  expect(readdirSync(copy, { encoding: 'buffer' }).some((name) => name.equals(Buffer.from([0xff, 0xfe])))).toBe(true);
  expect(await usage([top])).toBeLessThan(1024 * 1024);
});

test.skipIf(!isRoot)('a copy has the attributes and devices of image layers', async () => {
  const top = await engineData();
  await run(['mknod', join(top, 'whiteout'), 'c', '0', '0']);
  const python = "import os,sys; os.setxattr(sys.argv[1], 'trusted.overlay.opaque', b'y')";
  await run(['python3', '-c', python, join(top, 'layer')]);
  const { directory } = await saved([top]);
  const look = "import os,sys; print(os.getxattr(sys.argv[1], 'trusted.overlay.opaque').decode())";
  expect((await run(['python3', '-c', look, join(directory, '0-data', 'layer')])).stdout).toBe('y\n');
  expect((await lstat(join(directory, '0-data', 'whiteout'))).isCharacterDevice()).toBe(true);
});

describe('the manifest', () => {
  test('matches what was saved, and what was missing', async () => {
    const { directory, manifest } = await saved([await engineData(), '/nowhere/at-all']);
    expect(manifest).toMatchObject({
      driver: 'host',
      parts: [{ name: 'data', saved: '0-data' }, { name: 'at-all' }],
    });
    await expect(verify(directory, manifest, never)).resolves.toBeUndefined();
    await expect(verify(directory, manifest, AbortSignal.abort())).rejects.toMatchObject({
      code: 'ERR_CANCELLED',
    });
  });

  test.each<[string, (data: string, directory: string) => unknown, string]>([
    ['one byte', (data) => writeFileSync(join(data, 'same'), 'CONTENT'), 'has changed'],
    ['a length', (data) => writeFileSync(join(data, 'same'), 'more content'), 'has 12 bytes instead of 7'],
    ['a file that is gone', (data) => rmSync(join(data, 'link')), '0-data/link is missing'],
    ['a file that came', (data) => writeFileSync(join(data, 'new'), ''), '0-data/new does not belong to it'],
    [
      'a link to elsewhere',
      async (data) => {
        rmSync(join(data, 'link'));
        await symlink('/etc', join(data, 'link'));
      },
      '0-data/link has changed',
    ],
    [
      'a directory for a file',
      (data) => {
        rmSync(join(data, 'sparse'));
        mkdirSync(join(data, 'sparse'));
      },
      '0-data/sparse is of another kind',
    ],
    [
      'the settings',
      (_data, directory) => writeFileSync(join(directory, 'settings.json'), '[]\n'),
      'settings.json has changed',
    ],
  ])('detects %s', async (_what, damage, message) => {
    const { directory, manifest } = await saved([await engineData()]);
    await damage(join(directory, '0-data'), directory);
    await expect(verify(directory, manifest, never)).rejects.toThrow(message);
  });

  test('detects an incomplete copy', async () => {
    const { directory, manifest } = await saved([await engineData()]);
    const copy = join(temporaryDirectory(), 'copy');
    await copyTree(join(directory, '0-data'), copy, never);
    await expect(verifyShape([[copy, '0-data']], manifest)).resolves.toBeUndefined();
    rmSync(join(copy, 'same'));
    await expect(verifyShape([[copy, '0-data']], manifest)).rejects.toThrow('0-data/same is missing');
  });
});

test.skipIf(!isRoot)('what does not fit is refused before copying, with both sizes', async () => {
  const top = temporaryDirectory();
  const small = join(top, 'small');
  mkdirSync(small);
  await run(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'rdctl-test', small]);
  try {
    writeFileSync(join(top, 'big'), Buffer.alloc(2 * 1024 * 1024, 1));
    await expect(checkSpace([join(top, 'big')], small)).rejects.toThrow(
      /^there is not enough space: the copy needs 66\.0 MiB, and \d+\.\d (?:KiB|MiB) is free in /,
    );
  } finally {
    await run(['umount', small]);
  }
});

test('the list is sorted by age and skips broken snapshots, and a sweep removes only unfinished ones', async () => {
  const root = temporaryDirectory();
  const make = (id: string, created: string, name: string) => {
    mkdirSync(join(root, id));
    writeFileSync(join(root, id, 'metadata.json'), JSON.stringify({ created, name, id, description: null }));
    writeFileSync(join(root, id, 'complete.txt'), 'Snapshot completed successfully.');
  };
  const id = (digit: number) => `${digit}0000000-0000-4000-8000-000000000000`;
  make(id(1), '2026-01-02T03:04:05.2Z', 'second');
  make(id(2), '2026-01-02T04:04:05.1+01:00', 'first');
  make(id(3), 'then', 'no date');
  mkdirSync(join(root, 'something else'));
  mkdirSync(join(root, `.${id(4)}.partial`));
  mkdirSync(join(root, `.${id(5)}.deleted`));
  mkdirSync(join(root, id(6)));
  const { snapshots, warnings } = await readCatalogue(root);
  expect(snapshots.map(({ name, description }) => [name, description])).toEqual([
    ['first', ''],
    ['second', ''],
  ]);
  expect(warnings).toEqual([
    `The snapshot in ${join(root, id(3))} is skipped: its metadata.json has no date. Remove it if it is not needed.`,
    `The snapshot in ${join(root, id(6))} is skipped: it is not complete. Remove it if it is not needed.`,
  ]);
  expect(await sweep(root)).toEqual([]);
  expect(readdirSync(root).sort()).toEqual([id(1), id(2), id(3), id(6), 'something else'].sort());
  await rename(root, `${root}.moved`);
  expect(await readCatalogue(root)).toEqual({ snapshots: [], warnings: [] });
  await rename(`${root}.moved`, root);
});

test('a snapshot is a directory, never the target of a link', async () => {
  const { root, directory } = await saved([await engineData()]);
  const elsewhere = join(temporaryDirectory(), 'elsewhere');
  await rename(directory, elsewhere);
  await symlink(elsewhere, directory);
  expect(await readCatalogue(root)).toEqual({
    snapshots: [],
    warnings: [`The snapshot in ${directory} is skipped: it is not a directory. Remove it if it is not needed.`],
  });
  await expect(findSnapshot(root, 'one')).rejects.toThrow('can\'t find snapshot "one"');
});
