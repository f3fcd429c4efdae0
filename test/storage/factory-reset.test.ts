import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { clearCache, factoryReset, removalOperations } from '../../src/storage/factory-reset.ts';
import { type Places, places } from '../../src/storage/places.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

let user: string;
beforeEach(() => {
  user = temporaryDirectory();
});

function write(path: string, text = 'x'): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** Everything that a used installation has, and something of others beside it. */
function used(here: Places): void {
  for (const path of [
    here.connectionFile,
    here.settingsFile,
    here.previousSettingsFile,
    here.stateFile,
    join(here.serviceLock, '1-0.json'),
    join(here.state, 'drivers', 'host', 'data', 'image'),
    join(here.logs, 'service.log'),
    join(here.extensions, 'x', 'metadata.json'),
    join(here.bin, 'rdctl'),
    join(here.cache, 'image.qcow2'),
    here.backendLock,
    ...(here.dropInMarker === undefined ? [] : [here.dropInMarker]),
  ]) {
    write(path);
  }
  mkdirSync(here.snapshots, { recursive: true });
}

function filesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .sort();
}

const KINDS = {
  own: () => places({}, 'linux', user),
  RDCTL_HOME: () => places({ RDCTL_HOME: join(user, 'home') }, 'linux', user),
  'drop-in': () => places({ RDCTL_COMPAT: 'rancher-desktop' }, 'linux', user),
  macOS: () => places({}, 'darwin', user),
} as const;

describe.each(Object.entries(KINDS))('the places of %s', (kind, at) => {
  test('are empty afterwards, but for the downloads', async () => {
    const here = at();
    used(here);
    write(join(user, 'mine'));
    const { removed, kept, failed } = await factoryReset(here, { cache: false });
    expect(failed).toEqual([]);
    expect(removed.length).toBeGreaterThan(1);
    expect(kept).toEqual([{ path: here.cache, why: 'downloads, which --cache removes' }]);
    expect(filesBelow(user)).toEqual(['mine', join(here.cache, 'image.qcow2').slice(user.length + 1)].sort());
  });

  test('are empty afterwards, downloads too', async () => {
    const here = at();
    used(here);
    const { kept, failed } = await factoryReset(here, { cache: true });
    expect([kept, failed]).toEqual([[], []]);
    expect(filesBelow(user)).toEqual([]);
    for (const path of [here.data, here.state, here.config]) {
      expect([path, existsSync(path)]).toEqual([path, kind === 'RDCTL_HOME' && path === here.home]);
    }
    expect(await factoryReset(here, { cache: true })).toEqual({ removed: [], kept: [], failed: [] });
  });

  test('keep snapshots and shims that there are', async () => {
    const here = at();
    used(here);
    write(join(here.snapshots, 'id', 'metadata.json'));
    write(join(here.data, 'containerd-shims', 'mine'));
    const { kept } = await factoryReset(here, { cache: true });
    const paths = kept.map(({ path }) => path);
    expect(paths.slice(0, 2)).toEqual([here.snapshots, join(here.data, 'containerd-shims')]);
    // The mark says whose directory it is that the snapshots are in.
    expect(paths.slice(2)).toEqual(here.dropInMarker === undefined ? [] : [here.dropInMarker]);
    expect(filesBelow(here.data)).toEqual(
      [
        'containerd-shims/mine',
        'snapshots/id/metadata.json',
        ...(here.dropInMarker ? ['rdctl-drop-in.json'] : []),
      ].sort(),
    );
  });
});

test('with RDCTL_HOME, what a user keeps beside our files stays', async () => {
  const here = KINDS.RDCTL_HOME();
  used(here);
  write(join(here.data, 'notes.txt'));
  await factoryReset(here, { cache: true });
  expect(filesBelow(here.data)).toEqual(['notes.txt']);
});

test('links are removed and not followed, wherever they are', async () => {
  const elsewhere = temporaryDirectory();
  write(join(elsewhere, 'disk', 'large'));
  write(join(elsewhere, 'config', 'settings.json'));
  const here = KINDS.own();
  used({ ...here, config: here.config });
  symlinkSync(join(elsewhere, 'disk'), join(here.data, 'disk'));
  symlinkSync('/', join(here.extensions, 'root'));
  await factoryReset(here, { cache: true });

  mkdirSync(dirname(here.config), { recursive: true });
  symlinkSync(join(elsewhere, 'config'), here.config);
  const { removed, kept } = await factoryReset(here, { cache: true });
  expect(removed).toEqual([here.config]);
  expect(kept).toEqual([{ path: join(elsewhere, 'config'), why: 'a link led there' }]);
  expect(filesBelow(elsewhere)).toEqual(['config/settings.json', 'disk/large']);
});

test('what is mounted is not touched, and told; the rest goes', async () => {
  const here = KINDS.own();
  used(here);
  const mounted = join(here.state, 'drivers', 'host', 'data');
  const operations = { ...removalOperations, mounts: async () => ['/', '/proc', mounted] };
  const { failed, removed } = await factoryReset(here, { cache: true, operations });
  expect(failed).toEqual([{ path: mounted, reason: 'something is mounted there' }]);
  expect(removed).not.toContain(here.state);
  expect(filesBelow(user)).toEqual([join(mounted, 'image').slice(user.length + 1)]);
});

test('a file that cannot be removed is told, and everything else goes', async () => {
  const here = KINDS.own();
  used(here);
  const stubborn = here.settingsFile;
  const operations = {
    ...removalOperations,
    async unlink(path: string) {
      if (path === stubborn) throw Object.assign(new Error('EPERM'), { code: 'EPERM' });
      await removalOperations.unlink(path);
    },
  };
  const { failed } = await factoryReset(here, { cache: true, operations });
  expect(failed).toEqual([{ path: stubborn, reason: 'operation not permitted' }]);
  expect(filesBelow(user)).toEqual([stubborn.slice(user.length + 1)]);
});

test('the lock goes last', async () => {
  const here = KINDS.own();
  used(here);
  const order: string[] = [];
  const operations = {
    ...removalOperations,
    async unlink(path: string) {
      order.push(path);
      await removalOperations.unlink(path);
    },
  };
  await factoryReset(here, { cache: true, operations });
  expect(order.length).toBeGreaterThan(8);
  expect(order.at(-1)).toBe(join(here.serviceLock, '1-0.json'));
});

test.each([
  ['/', '/'],
  ['/x', '/x'],
])('places that cannot be ours alone are refused: logs in %s', async (_, logs) => {
  const here = { ...KINDS['drop-in'](), logs };
  used({ ...here, logs: join(user, 'logs') });
  const before = filesBelow(user);
  await expect(factoryReset(here, { cache: true })).rejects.toThrow('is not a directory that is ours alone');
  expect(filesBelow(user)).toEqual(before);
});

test('downloads alone', async () => {
  const here = KINDS.own();
  used(here);
  await clearCache(here);
  expect(existsSync(here.cache)).toBe(false);
  expect(existsSync(here.settingsFile)).toBe(true);
  await clearCache(here);
  write(join(here.cache, 'stuck'));
  const operations = {
    ...removalOperations,
    async unlink() {
      throw Object.assign(new Error('EROFS'), { code: 'EROFS' });
    },
  };
  await expect(clearCache(here, operations)).rejects.toThrow('the file system is read-only');
  expect(readFileSync(join(here.cache, 'stuck'), 'utf8')).toBe('x');
});
