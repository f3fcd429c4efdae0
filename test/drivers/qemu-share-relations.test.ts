import { expect, test } from 'vitest';
import type { Share } from '../../src/drivers/machines/qemu/mounts/directories.ts';
import { parseUsers } from '../../src/drivers/machines/qemu/mounts/directory-use.ts';
import type { MountType } from '../../src/drivers/machines/qemu/mounts/mount-types.ts';
import type { DirectoryRecord, MountRecord } from '../../src/drivers/machines/qemu/mounts/record.ts';
import {
  leavingShares,
  notifying,
  openedByQemu,
  placeOf,
  sharedDirectories,
  withInner,
  withMounted,
} from '../../src/drivers/machines/qemu/mounts/share-relations.ts';

function share(real: string, rest: Partial<MountRecord> = {}): MountRecord {
  return { id: real, path: real, real, mode: 'writable', hidden: [], mounted: true, ...rest };
}

const HOME = share('/home/me');
const INNER = share('/home/me/code');
const OTHER = share('/data');
const ALL = [HOME, INNER, OTHER];
const names = (shares: readonly Share[]) => shares.map(({ real }) => real);

test.each<[string, DirectoryRecord[], string[]]>([
  ['nothing changes', ALL, []],
  ['whether it is mounted is no change', ALL.map((each) => ({ ...each, mounted: false })), []],
  ['one goes away', [HOME, INNER], ['/data']],
  ['with the outer one, the inner one is mounted again', [INNER, OTHER], ['/home/me', '/home/me/code']],
  ['another one comes', [...ALL, share('/more')], []],
  ['read-only', [HOME, INNER, { ...OTHER, mode: 'read-only' }], ['/data']],
  ['reporting changes needs no new mount', [HOME, INNER, { ...OTHER, mode: 'writable-notify' }], []],
  ['something in it is hidden', [HOME, { ...INNER, hidden: ['/home/me/code/x'] }, OTHER], ['/home/me/code']],
  ['the directory is missing now', [HOME, INNER, { path: '/data', missing: 'gone' }], ['/data']],
])('shares that leave: %s', (_, next, leaving) => {
  expect(names(leavingShares(ALL, next))).toEqual(leaving);
});

test('the chosen shares and those in them, outermost first', () => {
  expect(names(withInner([HOME], ALL))).toEqual(['/home/me', '/home/me/code']);
  expect(names(withInner([INNER], ALL))).toEqual(['/home/me/code']);
});

test('a share that stays is still mounted; another one is not', () => {
  const next = [...ALL.map((each) => ({ ...each, mounted: false })), { path: '/gone', missing: 'gone' }];
  const marked = withMounted(next, [HOME, { ...OTHER, mounted: false }]);
  expect(marked).toEqual([{ ...next[0], mounted: true }, ...next.slice(1)]);
});

test('changes in a share within another are reported once', () => {
  const notify = { ...HOME, mode: 'writable-notify', hidden: ['/home/me/.cache'] } as const;
  expect(notifying([notify, INNER, OTHER])).toEqual([{ ...notify, hidden: ['/home/me/.cache', '/home/me/code'] }]);
});

test.each([
  ['/home/me/code', INNER, 'share'],
  ['/home/me', HOME, 'guest'],
  ['/data', OTHER, 'guest'],
])('%s is in the guest or in another share', (path, of, place) => {
  expect(placeOf(path, of, ALL)).toBe(place);
});

test('what is shared is reported with the home directory first', () => {
  const gone = { path: '/data', missing: 'gone' };
  const mounts = [{ path: '/home/me', mode: 'writable', by: 'virtiofs' }, gone];
  const record = { type: 'virtiofs', asked: {}, directories: [HOME, gone] } as const;
  expect(sharedDirectories(record)).toEqual({ path: '/home/me', by: 'virtiofs', mounts });
  expect(sharedDirectories({ ...record, directories: [gone] })).toEqual({ missing: 'gone', mounts: [gone] });
  expect(sharedDirectories({ asked: {}, directories: [] })).toMatchObject({ missing: 'the profile does not share it' });
});

test('QEMU itself opens directories with 9p only, and none that is not shared', () => {
  const opened = (type?: MountType) =>
    openedByQemu({ ...(type ? { type } : {}), asked: {}, directories: [HOME, { path: '/data', missing: 'gone' }] });
  expect(opened('9p')).toEqual([HOME]);
  for (const type of ['reverse-sshfs', 'virtiofs', undefined] as const) expect(opened(type)).toEqual([]);
  expect(openedByQemu(undefined)).toEqual([]);
});

test('the programs that use a directory, whatever their names', () => {
  const text = '12 node\t/home/me\n7 a b (c)\t/data\n\nls: cannot open\n';
  expect(parseUsers(text)).toEqual([
    { program: 'node (pid 12)', point: '/home/me' },
    { program: 'a b (c) (pid 7)', point: '/data' },
  ]);
});
