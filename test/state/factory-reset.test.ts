import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { idOf } from '../../src/features/extensions/directory.ts';
import { clearCache, factoryReset, removalOperations, untouchedSummary } from '../../src/state/factory-reset.ts';
import { isInstalled } from '../../src/state/own-files.ts';
import { type Places, places } from '../../src/state/places.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

let user: string;
beforeEach(() => {
  user = temporaryDirectory();
});

afterEach(() => {
  vi.unstubAllEnvs();
});

function write(path: string, text = 'x'): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** Everything that a used installation has, next to foreign files. */
function used(here: Places): void {
  for (const path of [
    here.connectionFile,
    here.settingsFile,
    here.previousSettingsFile,
    here.stateFile,
    here.stagedSettingsFile,
    here.historyFile,
    join(here.tokens, 'ci-bot.json'),
    lockOf(here),
    join(here.state, 'drivers', 'host', 'data', 'image'),
    join(here.logs, 'service.log'),
    join(here.extensions, idOf('x/y'), 'metadata.json'),
    ...(here.home === undefined ? [join(here.bin, 'rdctl'), join(here.cache, 'image.qcow2')] : []),
    here.backendLock,
    ...(here.dropInMarker === undefined ? [] : [here.dropInMarker]),
  ]) {
    write(path);
  }
  mkdirSync(here.snapshots, { recursive: true });
}

const lockOf = ({ serviceLock }: Places) => join(serviceLock, '1-0.json');

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

describe.each(Object.entries(KINDS))('the directories of %s', (kind, at) => {
  test('are empty afterwards, except for downloads', async () => {
    const here = at();
    used(here);
    write(join(user, 'mine'));
    const { removed, kept, failed } = await factoryReset(here, { cache: false });
    expect(failed).toEqual([]);
    expect(removed.length).toBeGreaterThan(1);
    const downloads = kind === 'RDCTL_HOME' ? [] : [{ path: here.cache, why: 'downloads, which --cache removes' }];
    expect(kept).toEqual(downloads);
    const files = downloads.map(({ path }) => join(path, 'image.qcow2').slice(user.length + 1));
    expect(filesBelow(user)).toEqual(['mine', ...files].sort());
  });

  test('are empty afterwards, including downloads', async () => {
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

  test('keep the history, if requested', async () => {
    const here = at();
    used(here);
    const { kept, failed } = await factoryReset(here, { cache: true, keepsHistory: true });
    expect(failed).toEqual([]);
    expect(kept[0]).toEqual({ path: here.historyFile, why: 'the history, as requested' });
    expect(filesBelow(here.state)).toEqual(['history.jsonl']);
    expect(existsSync(here.settingsFile)).toBe(false);
  });

  test('keep existing snapshots and shims', async () => {
    const here = at();
    used(here);
    write(join(here.snapshots, 'id', 'metadata.json'));
    write(join(here.data, 'containerd-shims', 'mine'));
    const { kept } = await factoryReset(here, { cache: true });
    const paths = kept.map(({ path }) => path);
    expect(paths.slice(0, 2)).toEqual([here.snapshots, join(here.data, 'containerd-shims')]);
    // The mark says who owns the directory with the snapshots.
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

test('with RDCTL_HOME, files of the user beside ours stay, also in directories of the same name', async () => {
  const here = KINDS.RDCTL_HOME();
  used(here);
  write(join(here.logs, 'service.1.log'));
  write(join(here.logs, 'dockerd.log.1'));
  write(join(here.config, 'settings.json.corrupt-20300102T030405006Z'));
  write(join(here.config, '.settings.json.0123456789ab.tmp'));
  const theirs = [
    'notes.txt',
    'bin/rdctl',
    'cache/x',
    'config/app.json',
    'extensions/mine/x',
    'logs/web.log',
    'state/db',
  ];
  for (const path of theirs) write(join(here.data, path));
  const { removed, failed } = await factoryReset(here, { cache: true });
  expect(filesBelow(here.data)).toEqual([...theirs].sort());
  expect(failed).toEqual([]);
  expect(removed).toContain(here.settingsFile);
  expect(removed).not.toContain(here.config);
});

test('directories of the user behind links are left alone', async () => {
  const here = KINDS.RDCTL_HOME();
  used(here);
  const elsewhere = temporaryDirectory();
  write(join(elsewhere, 'settings.json'));
  await factoryReset(here, { cache: true });
  symlinkSync(elsewhere, here.config);
  const { removed, kept } = await factoryReset(here, { cache: true });
  expect([removed, kept]).toEqual([[], [{ path: here.config, why: 'a link; links are not followed' }]]);
  expect(filesBelow(elsewhere)).toEqual(['settings.json']);
});

test('only our own names are removed from a log directory set by a variable', async () => {
  const logs = join(user, 'var', 'log');
  const here = places({ RDCTL_COMPAT: 'rancher-desktop', RD_LOGS_DIR: logs }, 'linux', user);
  used(here);
  write(join(logs, 'syslog'));
  const { removed } = await factoryReset(here, { cache: true });
  expect(removed).toContain(join(logs, 'service.log'));
  expect(filesBelow(user)).toEqual(['var/log/syslog']);
});

test('old data of the other application, which `paths` lists, is left alone', async () => {
  const here = KINDS['drop-in']();
  used(here);
  const theirs = ['.config/Rancher Desktop/Preferences', '.cache/rancher-desktop-updater/staged'];
  for (const path of theirs) write(join(user, path));
  await factoryReset(here, { cache: true });
  expect(filesBelow(user)).toEqual([...theirs].sort());
});

describe('directories in which no service ever ran', () => {
  test('are recognized by their contents', async () => {
    for (const kind of ['RDCTL_HOME', 'drop-in'] as const) {
      const here = KINDS[kind]();
      write(here.settingsFile);
      expect(await isInstalled(here)).toBe(false);
      used(here);
      expect(await isInstalled(here)).toBe(true);
    }
    expect(await isInstalled(KINDS.own())).toBe(true);
  });

  test('are left alone, and files with our names are reported', async () => {
    const here = KINDS.RDCTL_HOME();
    write(here.settingsFile);
    write(join(here.data, 'logs', 'web.log'));
    expect(await untouchedSummary(here, true)).toEqual({
      removed: [],
      kept: [{ path: here.settingsFile, why: 'not created by rdctl' }],
      failed: [],
    });
  });

  test('have nothing to report when they are empty', async () => {
    const here = KINDS.RDCTL_HOME();
    mkdirSync(here.snapshots, { recursive: true });
    mkdirSync(here.guestImages, { recursive: true });
    write(join(here.guestImages, 'image'));
    expect((await untouchedSummary(here, true)).kept.map(({ path }) => path)).toEqual([here.guestImages]);
  });

  test('are still recognized after an incomplete reset', async () => {
    const here = KINDS.RDCTL_HOME();
    used(here);
    const operations = {
      ...removalOperations,
      async unlink(path: string) {
        if (path === here.settingsFile) throw Object.assign(new Error('EPERM'), { code: 'EPERM' });
        await removalOperations.unlink(path);
      },
    };
    await factoryReset(here, { cache: true, operations });
    expect(await isInstalled(here)).toBe(true);
    await factoryReset(here, { cache: true });
    expect(filesBelow(user)).toEqual([]);
    expect(await isInstalled(here)).toBe(false);
  });
});

test('links are removed and never followed', async () => {
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
  expect(kept).toEqual([{ path: join(elsewhere, 'config'), why: 'reached through a link' }]);
  expect(filesBelow(elsewhere)).toEqual(['config/settings.json', 'disk/large']);
});

test('mounted directories are left alone and reported; the rest is removed', async () => {
  const here = KINDS.own();
  used(here);
  const mounted = join(here.state, 'drivers', 'host', 'data');
  const operations = { ...removalOperations, mounts: async () => ['/', '/proc', mounted] };
  const { failed, removed } = await factoryReset(here, { cache: true, operations });
  expect(failed).toEqual([{ path: mounted, reason: 'something is mounted there' }]);
  expect(removed).not.toContain(here.state);
  expect(filesBelow(user)).toEqual([join(mounted, 'image'), lockOf(here)].map((path) => path.slice(user.length + 1)));
});

test('a file that cannot be removed is reported, and everything else is removed', async () => {
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
  expect(filesBelow(user)).toEqual([stubborn, lockOf(here)].map((path) => path.slice(user.length + 1)));
});

test('the lock is removed last', async () => {
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
  expect(order.at(-1)).toBe(lockOf(here));
});

test('a home directory or the root is never ours alone', async () => {
  const here = KINDS.own();
  used(here);
  const before = filesBelow(user);
  for (const data of ['/rdctl', join(homedir(), '..', 'rdctl')]) {
    vi.stubEnv('HOME', join(dirname(data), 'rdctl'));
    await expect(factoryReset({ ...here, data }, { cache: true })).rejects.toThrow('is not used by rdctl alone');
  }
  expect(filesBelow(user)).toEqual(before);
});

test('only downloads', async () => {
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

test.each(Object.keys(KINDS) as (keyof typeof KINDS)[])('a dry run in a home of the kind %s', async (kind) => {
  const here = KINDS[kind]();
  used(here);
  write(join(here.snapshots, 'one'));
  const before = filesBelow(user);
  const foreseen = await factoryReset(here, { cache: true, dryRun: true });
  expect(filesBelow(user)).toEqual(before);
  expect(foreseen.removed.length).toBeGreaterThan(2);
  expect(await factoryReset(here, { cache: true })).toEqual(foreseen);
});
