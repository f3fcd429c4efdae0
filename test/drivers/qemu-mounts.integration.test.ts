import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, readlinkSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { qemu } from '../../src/drivers/index.ts';
import { comma } from '../../src/drivers/machines/qemu/arguments.ts';
import { UNCONFINED } from '../../src/drivers/machines/qemu/confine/confinement.ts';
import {
  type DirectoryFacts,
  directoriesToShare,
  directoryFacts,
  MOST_SHARES,
  type Share,
  type ShareChoice,
} from '../../src/drivers/machines/qemu/mounts/directories.ts';
import {
  CLEAR_SCRIPT,
  PLACE_SCRIPT,
  REFUSED,
  UNLINK_SCRIPT,
  USERS_SCRIPT,
} from '../../src/drivers/machines/qemu/mounts/guest-scripts.ts';
import { featuresOf, type HostFacts } from '../../src/drivers/machines/qemu/mounts/host-facts.ts';
import { featureFor, MOUNTERS, virtiofsdCommand } from '../../src/drivers/machines/qemu/mounts/mount-types.ts';
import { guestMounts } from '../../src/drivers/machines/qemu/mounts/mounts.ts';
import { readMountsRecord } from '../../src/drivers/machines/qemu/mounts/record.ts';
import { qemuPlaces, sharePlaces } from '../../src/drivers/machines/qemu/places.ts';
import { mountSupport } from '../../src/drivers/machines/qemu/support.ts';
import { parseMounts } from '../../src/drivers/machines/shared/mountinfo.ts';
import { RdError } from '../../src/errors.ts';
import { steadyClock } from '../../src/os/clock.ts';
import type { RunOptions } from '../../src/os/run.ts';
import { blockOf } from '../../src/plan/blocks.ts';
import { machineDrift } from '../../src/plan/drift.ts';
import { MACHINE } from '../contract/driver-suite.ts';
import { runs } from '../helpers/rounds.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const signal = new AbortController().signal;
const EVERYTHING: HostFacts = {
  sftpServer: '/usr/lib/openssh/sftp-server',
  virtiofsd: { path: '/usr/lib/qemu/virtiofsd', dialect: 'qemu' },
  isRoot: true,
  features: ['9p'],
};
const NOTHING: HostFacts = { sftpServer: undefined, virtiofsd: undefined, isRoot: false, features: [] };
const with9p = { ...MACHINE, mount: { ...MACHINE.mount, type: '9p' } };
const withVirtiofs = { ...MACHINE, mount: { ...MACHINE.mount, type: 'virtiofs' } };

/** Facts in which every directory is its own real path, except for links. */
function factsOf(
  mounts: DirectoryFacts['mounts'],
  {
    home = '/home/u',
    links = {},
    gone = [],
    own = [],
  }: Partial<Omit<DirectoryFacts, 'real' | 'home'>> & {
    home?: string | undefined;
    links?: Record<string, string>;
    gone?: string[];
  } = {},
): DirectoryFacts {
  const paths = [home, ...Object.keys(mounts).map((name) => name.replace(/^~/, home))];
  const there = paths.filter((path) => !gone.includes(path));
  return { home, mounts, own, real: new Map(there.map((path) => [path, links[path] ?? path])) };
}

const HOME: Partial<Share> = { id: 'home', path: '/home/u', real: '/home/u', mode: 'writable', hidden: [] };

describe('the home directory', () => {
  const homeOf = (home: string | undefined, real: string | undefined, own: readonly string[] = []) => {
    const facts = {
      home,
      mounts: {},
      own,
      real: new Map(real === undefined ? [] : [[home?.replace(/(?<=.)\/$/, '') ?? '', real]]),
    };
    // The path as it is looked up.
    const [path] =
      home === undefined ? [] : directoriesToShare({ ...facts, real: new Map() }).map((choice) => choice.path);
    return directoriesToShare({ ...facts, real: new Map(real === undefined ? [] : [[path ?? '', real]]) })[0];
  };

  test('is shared, as written and as resolved', () => {
    expect(homeOf('/home/u/', '/data/u')).toEqual({ ...HOME, real: '/data/u' });
    expect(homeOf('/root', '/root')).toMatchObject({ path: '/root' });
  });

  test('hides our own files in it, once', () => {
    const own = ['/home/u/.local/rd', '/home/u/.local/rd/state', '/home/u/.local/rd-other', '/home/user', '/srv/x'];
    expect(homeOf('/home/u', '/home/u', own)).toMatchObject({
      hidden: ['/home/u/.local/rd', '/home/u/.local/rd-other'],
    });
  });

  test.each<[string | undefined, string | undefined, string]>([
    [undefined, undefined, 'HOME is not set'],
    ['', undefined, 'HOME is not set'],
    ['home/u', undefined, 'not an absolute path'],
    ['/nonexistent', undefined, 'not a directory'],
    ['/', '/', ' itself'],
    ['/usr', '/usr', ' itself'],
    ['/var', '/var', '/var/lib/rdctl itself'],
    ['/var/lib/rdctl/x', '/var/lib/rdctl/x', ' itself'],
    ['/home/u', '/run/user/1', '/run itself'],
    ['/home/../etc', '/etc', ' itself'],
    ['/proc/self/cwd', '/home/u', '/proc itself'],
    ['/tmp', '/tmp', '/tmp itself'],
    ['/home/a\nb', '/home/a\nb', 'control characters'],
  ])('is not shared if HOME is %j', (home, real, why) => {
    expect(homeOf(home, real)).toEqual({ path: expect.any(String), missing: expect.stringContaining(why) });
  });

  test('is not shared if it is in the directory with the keys of the machine', () => {
    expect(homeOf('/s/x', '/s/x', ['/s'])).toMatchObject({ missing: expect.stringContaining('in /s,') });
    // The connection file is in it, and a file cannot be covered.
    expect(homeOf('/s', '/s', ['/s', '/s/state'])).toMatchObject({ missing: expect.stringContaining('is /s,') });
  });
});

describe('the directories to share', () => {
  test('are the home directory, and the others after those that contain them', () => {
    const mounts = { '~/a/b': 'writable', '/srv/x': 'read-only', '~/a': 'read-only' } as const;
    const choices = directoriesToShare(factsOf(mounts));
    expect(choices).toMatchObject([
      HOME,
      { path: '/srv/x', real: '/srv/x', mode: 'read-only' },
      { path: '/home/u/a', mode: 'read-only' },
      { path: '/home/u/a/b', mode: 'writable' },
    ]);
    const ids = choices.map((choice) => 'id' in choice && choice.id);
    expect(new Set(ids).size).toBe(4);
    for (const id of ids.slice(1)) expect(id).toMatch(/^mount-[0-9a-f]{8}$/);
  });

  test('each hide our own directories in them', () => {
    const own = ['/home/u/.rd', '/srv/x/state'];
    const choices = directoriesToShare(factsOf({ '/srv/x': 'writable', '~/.rd/sub': 'writable' }, { own }));
    expect(choices).toMatchObject([
      { hidden: ['/home/u/.rd'] },
      { hidden: ['/srv/x/state'] },
      { path: '/home/u/.rd/sub', missing: expect.stringContaining('keys of the machine') },
    ]);
  });

  test('leave out and cover what the profile does not share', () => {
    const mounts = { '~/.ssh': 'none', '~/.ssh/x': 'writable', '/srv': 'none', '~/gone': 'none' } as const;
    expect(directoriesToShare(factsOf(mounts, { gone: ['/home/u/gone'] }))).toMatchObject([
      { path: '/home/u', hidden: ['/home/u/.ssh'] },
      { path: '/home/u/.ssh', mode: 'none' },
      { path: '/home/u/.ssh/x', missing: expect.stringContaining('in /home/u/.ssh, which the profile hides') },
      { path: '/srv', mode: 'none' },
      { path: '/home/u/gone', missing: expect.stringContaining('nothing hides it') },
    ]);
  });

  test.each<[DirectoryFacts['mounts'], Partial<ShareChoice>]>([
    [{ '~': 'read-only' }, { ...HOME, mode: 'read-only' }],
    [{ '~': 'none' }, { path: '/home/u', mode: 'none' }],
    [{ '/home/u': 'read-only' }, { ...HOME, mode: 'read-only' }],
    [
      { '/link': 'none', '~': 'read-only' },
      { ...HOME, mode: 'read-only' },
    ],
  ])('%j sets the mode of the home directory', (mounts, expected) => {
    expect(directoriesToShare(factsOf(mounts, { links: { '/link': '/home/u' } }))).toEqual([expected]);
  });

  test('are each shared once, whatever leads to them, and only so many', () => {
    const same = directoriesToShare(
      factsOf({ '/link': 'read-only', '/srv': 'writable' }, { links: { '/link': '/srv' } }),
    );
    expect(same.filter((choice) => 'real' in choice)).toHaveLength(2);
    expect(same).toContainEqual({ path: '/srv', missing: '/srv is the same directory as /link' });
    const many = Object.fromEntries(
      Array.from({ length: MOST_SHARES + 3 }, (_, at) => [`/srv/${at}`, 'writable'] as const),
    );
    const shares = directoriesToShare(factsOf(many)).filter((choice) => 'real' in choice);
    expect(shares).toHaveLength(MOST_SHARES);
  });

  test('need no home directory, but those in it do', () => {
    expect(
      directoriesToShare({ ...factsOf({ '/srv': 'writable', '~/a': 'writable' }), home: undefined }),
    ).toMatchObject([
      { path: '~', missing: expect.stringContaining('HOME is not set') },
      { path: '/srv', mode: 'writable' },
      { path: '~/a', missing: expect.stringContaining('HOME is not set') },
    ]);
  });

  test('are looked up: links, files, and missing paths', async () => {
    const directory = realpathSync(temporaryDirectory());
    const [link, file, inside] = [join(directory, 'link'), join(directory, 'file'), join(directory, 'a b')];
    symlinkSync(directory, link);
    writeFileSync(file, '');
    mkdirSync(inside);
    const mounts = { '~/a b': 'writable', [file]: 'writable', '/nowhere': 'none' } as const;
    const { real, own } = await directoryFacts(link, mounts, [link, file, '/nowhere']);
    expect([...real]).toEqual([
      [link, directory],
      [join(link, 'a b'), inside],
    ]);
    expect(own).toEqual([directory]);
    expect((await directoryFacts(undefined, {}, [])).real).toEqual(new Map());
  });

  test('are never system paths of the guest, and what is hidden is in them', () => {
    const names = ['usr', 'home', 'u', 'etc', 'run', 'var', 'lib', 'rdctl', 'tmp', '..', '.', '', 'a,b', ' ', 'ü'];
    const path = fc.array(fc.constantFrom(...names), { maxLength: 5 }).map((parts) => `/${parts.join('/')}`);
    const mode = fc.constantFrom('read-only' as const, 'writable' as const, 'none' as const);
    const mounts = fc.dictionary(path, mode, { maxKeys: 4 });
    fc.assert(
      fc.property(path, mounts, fc.array(path, { maxLength: 3 }), (home, asked, own) => {
        const normal = (text: string) => posix.normalize(text).replace(/(?<=.)\/$/, '');
        const real = new Map([home, ...Object.keys(asked)].map((each) => [normal(each), normal(each)]));
        const shares = directoriesToShare({ home, mounts: asked, own: own.map(normal), real }).filter(
          (choice) => 'real' in choice,
        );
        for (const { path: shared, real: place, hidden } of shares) {
          expect(shared).not.toMatch(/^\/(etc|run|tmp$|usr\/lib|var\/lib\/rdctl)?(\/|$)/);
          for (const each of hidden) expect(each.startsWith(`${place}/`)).toBe(true);
        }
        expect(new Set(shares.map(({ real: place }) => place)).size).toBe(shares.length);
      }),
      { numRuns: runs(200) },
    );
  });
});

describe('what this host supports', () => {
  const blocked = (facts: HostFacts, path: keyof ReturnType<typeof mountSupport>, after: string) =>
    blockOf(
      { path, action: 'update', before: 'x', after },
      { locks: {}, driver: { ...qemu, support: { ...qemu.support, ...mountSupport(facts) } } },
    )?.message;

  test('refuses nothing when everything is installed, and each mount type with its reason when it is not', () => {
    for (const type of ['reverse-sshfs', '9p', 'virtiofs']) {
      expect(blocked(EVERYTHING, 'virtualMachine.mount.type', type)).toBeUndefined();
      expect(blocked(NOTHING, 'virtualMachine.mount.type', type)).toContain('openssh-sftp-server');
    }
    expect(blocked({ ...EVERYTHING, features: [] }, 'virtualMachine.mount.type', '9p')).toContain('--kernel generic');
    expect(blocked({ ...EVERYTHING, features: [] }, 'virtualMachine.mount.type', 'virtiofs')).toBeUndefined();
    expect(blocked({ ...EVERYTHING, isRoot: false }, 'virtualMachine.mount.type', 'virtiofs')).toContain('needs root');
    const rust = { ...EVERYTHING, isRoot: false, virtiofsd: { path: '/v', dialect: 'rust' } } as const;
    expect(blocked(rust, 'virtualMachine.mount.type', 'virtiofs')).toBeUndefined();
  });

  test('covers the options of 9p too', () => {
    const [model, protocol] = [
      'experimental.virtualMachine.mount.9p.securityModel',
      'experimental.virtualMachine.mount.9p.protocolVersion',
    ] as const;
    expect(blocked(EVERYTHING, model, 'passthrough')).toBeUndefined();
    expect(blocked(NOTHING, model, 'passthrough')).toContain('root');
    expect(blocked(NOTHING, model, 'mapped-xattr')).toBeUndefined();
    expect(blocked(EVERYTHING, protocol, '9p2000')).toContain('9p2000.u');
    expect(blocked(EVERYTHING, protocol, '9p2000.u')).toBeUndefined();
  });

  test('refuses directories in the way of the guest', () => {
    const blockedEntry = (key: string, after: string | undefined) =>
      blockOf(
        { path: 'machine.mounts', key, action: 'create', ...(after === undefined ? {} : { after }) },
        { locks: {}, driver: qemu },
      )?.message;
    expect(blockedEntry('/etc/x', 'writable')).toBe(
      '"/etc/x" cannot be shared with the qemu driver: its machine uses /etc itself.',
    );
    for (const key of ['/', '/usr', '/run', '/var/lib/rdctl'])
      expect(blockedEntry(key, 'read-only')).toContain('itself');
    for (const key of ['/etcetera', '/usr/local', '/srv', '~', '~/etc'])
      expect(blockedEntry(key, 'read-only')).toBeUndefined();
    expect(blockedEntry('/etc', 'none')).toBeUndefined();
    expect(blockedEntry('/etc', undefined)).toBeUndefined();
  });

  test('an option of 9p is no reason for a restart without 9p', () => {
    const other = { ...MACHINE, mount: { ...MACHINE.mount, msizeInKib: 512 } };
    expect(machineDrift({ spec: MACHINE }, other, qemu)).toEqual({ live: [], restart: [] });
    const with512 = { ...with9p, mount: { ...with9p.mount, msizeInKib: 512 } };
    expect(machineDrift({ spec: with9p }, with512, qemu).restart).toEqual([
      'experimental.virtualMachine.mount.9p.msizeInKib',
    ]);
    expect(machineDrift({ spec: with9p }, MACHINE, qemu).restart).toEqual(['virtualMachine.mount.type']);
  });

  test('9p is a feature of images, and other mount types need none', () => {
    expect(featureFor(with9p)).toBe('9p');
    expect(featureFor(MACHINE)).toBeUndefined();
    expect(featuresOf([{}, { features: [] }, { features: ['9p'] }, { features: ['9p'] }])).toEqual(['9p']);
  });
});

describe('command lines', () => {
  const share: Share = { id: 'home', path: '/p', real: `/ho me,a\\b'"ü`, mode: 'writable', hidden: [] };
  const other: Share = { id: 'mount-1', path: '/o', real: '/o', mode: 'read-only', hidden: [] };
  const places = qemuPlaces('/d,e', '/r');

  test('escape commas and backslashes in paths as each program expects', () => {
    expect(MOUNTERS['9p'].qemuArguments([share, other], with9p, places)).toEqual([
      '-virtfs',
      `local,path=/ho me,,a\\b'"ü,mount_tag=rdctl-home,security_model=none,multidevs=remap,id=home`,
      '-virtfs',
      'local,path=/o,mount_tag=rdctl-mount-1,security_model=none,multidevs=remap,readonly=on,id=mount-1',
    ]);
    const { argv } = virtiofsdCommand(EVERYTHING, share, '/s');
    expect(argv).toContain(`source=/ho me\\,a\\\\b'"ü`);
    const rust = { ...EVERYTHING, virtiofsd: { path: '/v', dialect: 'rust' } } as const;
    expect(virtiofsdCommand(rust, share, '/s').argv).toContain(`--shared-dir=${share.real}`);
    const words = MOUNTERS.virtiofs.qemuArguments([share, other], withVirtiofs, places);
    expect(words.filter((word) => word.includes('home-memory'))).toHaveLength(2);
    expect(words).toEqual(
      expect.arrayContaining([
        `socket,id=home,path=${comma(sharePlaces(places, 'home').socket)}`,
        'vhost-user-fs-pci,chardev=mount-1,tag=rdctl-mount-1',
      ]),
    );
  });

  test('make virtiofsd see a read-only share as such, if it runs as root', () => {
    expect(virtiofsdCommand(EVERYTHING, share, '/s')).not.toHaveProperty('within');
    expect(virtiofsdCommand(EVERYTHING, other, '/s').within?.slice(0, 2)).toEqual(['unshare', '--mount']);
    expect(virtiofsdCommand({ ...EVERYTHING, isRoot: false }, other, '/s')).not.toHaveProperty('within');
  });
});

describe('the mount table', () => {
  test('is parsed, with its escapes for blanks', () => {
    const text = [
      '218 26 0:39 / /tmp/ho\\040me,\\134x rw,nosuid shared:89 - fuse.sshfs rdctl-home rw,allow_other',
      '22 26 0:20 / /sys rw - sysfs sysfs rw',
      'nonsense',
      '',
    ].join('\n');
    expect(parseMounts(text)).toMatchObject([
      { point: '/tmp/ho me,\\x', type: 'fuse.sshfs', source: 'rdctl-home', minor: 39 },
      { point: '/sys', type: 'sysfs', source: 'sysfs', minor: 20 },
    ]);
  });
});

describe('the mount point in the guest', () => {
  const make = (real: string, path: string, realIn = 'guest', pathIn = 'guest') =>
    spawnSync('sh', ['-s', '--', real, path, realIn, pathIn], { input: PLACE_SCRIPT, encoding: 'utf8' });

  test('is created, with its second name, and can be created again', () => {
    const directory = realpathSync(temporaryDirectory());
    const [real, home] = [join(directory, "a b'c", 'u'), join(directory, 'h', '-x')];
    for (let turn = 0; turn < 2; turn += 1) expect(make(real, home)).toMatchObject({ status: 0, stdout: '' });
    expect(readlinkSync(home)).toBe(real);
    const unlink = (target: string) => spawnSync('sh', ['-s', '--', home, target], { input: UNLINK_SCRIPT }).status;
    expect(unlink('/elsewhere')).toBe(0);
    expect(readlinkSync(home)).toBe(real);
    expect(unlink(real)).toBe(0);
    expect(existsSync(home)).toBe(false);
    expect(unlink(real)).toBe(0);
  });

  test('may hold mount points of earlier shares, and nothing else', () => {
    const directory = realpathSync(temporaryDirectory());
    mkdirSync(join(directory, 'a', 'b', 'c'), { recursive: true });
    symlinkSync('b', join(directory, 'a', 'link'));
    expect(make(join(directory, 'a'), join(directory, 'a'))).toMatchObject({ status: 0 });
    writeFileSync(join(directory, 'a', 'b', 'file'), '');
    expect(make(join(directory, 'a'), join(directory, 'a'))).toMatchObject({ status: REFUSED });
  });

  test('is refused where the guest has anything of its own', () => {
    const directory = realpathSync(temporaryDirectory());
    mkdirSync(join(directory, 'full'));
    writeFileSync(join(directory, 'full', 'x'), '');
    writeFileSync(join(directory, 'file'), '');
    symlinkSync(directory, join(directory, 'link'));
    for (const [real, home] of [
      ['full', 'full'],
      ['file', 'file'],
      ['link/new', 'link/new'],
      ['new', 'full'],
      ['new', 'file'],
    ] as const) {
      expect(make(join(directory, real), join(directory, home))).toMatchObject({
        status: REFUSED,
        stdout: expect.stringContaining('the guest has'),
      });
    }
    expect(execFileSync('ls', [join(directory, 'full')], { encoding: 'utf8' })).toBe('x\n');
  });

  test('in another share is the directory there, where nothing is created or replaced', () => {
    const directory = realpathSync(temporaryDirectory());
    const [full, link, astray] = ['full', 'link', 'astray'].map((name) => join(directory, name)) as [
      string,
      string,
      string,
    ];
    mkdirSync(full);
    writeFileSync(join(full, 'x'), '');
    symlinkSync('full', link);
    symlinkSync('/nowhere', astray);
    expect(make(full, full, 'share', 'share')).toMatchObject({ status: 0 });
    expect(make(full, link, 'share', 'share')).toMatchObject({ status: 0 });
    expect(readlinkSync(link)).toBe('full');
    expect(make(full, astray, 'share', 'share')).toMatchObject({ status: REFUSED });
    expect(readlinkSync(astray)).toBe('/nowhere');
    expect(make(join(directory, 'gone'), join(directory, 'gone'), 'share', 'share')).toMatchObject({ status: REFUSED });
    expect(existsSync(join(directory, 'gone'))).toBe(false);
  });
});

describe('the users of a mount', () => {
  test('are found by an open file or their working directory, without touching the mount', async () => {
    const directory = realpathSync(temporaryDirectory());
    const file = join(directory, 'a b');
    writeFileSync(file, '');
    const users = () =>
      spawnSync('sh', ['-s', '--', directory, '9999:9'], { input: USERS_SCRIPT, encoding: 'utf8' }).stdout;
    expect(users()).toBe('');
    for (const start of [
      () => spawn('sleep', ['60'], { cwd: directory }),
      () => spawn('sh', ['-c', 'exec sleep 60 < "$1"', 'sh', file], { stdio: 'ignore' }),
    ]) {
      const child = start();
      onTestFinished(() => void child.kill('SIGKILL'));
      await expect.poll(users).toBe(`${child.pid} sleep\t${directory}\n`);
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    }
    expect(users()).toBe('');
  });
});

test('a mount that its server has removed meanwhile counts as removed', () => {
  const clear = (point: string) => spawnSync('sh', ['-s', '--', point, '999999'], { input: CLEAR_SCRIPT }).status;
  expect(clear(realpathSync(temporaryDirectory()))).toBe(0);
});

/** A scripted guest that records what it was asked. */
function scene(facts: HostFacts = EVERYTHING) {
  const directory = temporaryDirectory();
  // The temporary files of these tests may be in /dev, which every guest has itself.
  const home = realpathSync(temporaryDirectory('/tmp'));
  for (const name of ['own', 'a', 'a/b', 'secret']) mkdirSync(join(home, name));
  const places = qemuPlaces(directory, '/nowhere');
  const asked: string[] = [];
  const world = { place: { exitCode: 0, stdout: '' }, table: '', fails: '', users: '' };
  const mounts = guestMounts({
    places,
    guest: {
      async run(argv: readonly string[], options: RunOptions = {}) {
        const line = argv.join(' ');
        const kinds = new Map([
          [PLACE_SCRIPT, 'place'],
          [CLEAR_SCRIPT, 'clear'],
          [USERS_SCRIPT, 'users'],
          [UNLINK_SCRIPT, 'unlink'],
        ]);
        const kind = kinds.get(String(options.input)) ?? 'hide';
        const what = options.input === undefined ? line : `${kind} ${argv.slice(3).join(' ')}`;
        if (line.includes('mountinfo')) return { exitCode: 0, stdout: world.table, stderr: '' };
        asked.push(what);
        if (world.fails !== '' && what.includes(world.fails)) throw new RdError('ERR_DRIVER_FAILED', 'it fails');
        if (kind === 'place') return { ...world.place, stderr: '' };
        return { exitCode: 0, stdout: kind === 'users' ? world.users : '', stderr: '' };
      },
    },
    clock: steadyClock,
    logFile: join(directory, 'log'),
    environment: {},
    confine: UNCONFINED,
    port: async () => 1,
    home,
    own: [join(home, 'own')],
    facts: async () => facts,
    notices: { follow: () => undefined, flaw: () => undefined, stop: () => undefined },
    log: () => undefined,
  });
  /** What was asked since the last call, with short paths. */
  const since = () =>
    asked.splice(0).map((line) => line.replaceAll(home, 'HOME').replaceAll(/mount-[0-9a-f]{8}/g, 'ID'));
  return { mounts, since, world, home, file: places.shares };
}

const NINE_P = 'mount -t 9p -o trans=virtio,version=9p2000.L,msize=131072,cache=mmap';

describe('the directories in a machine', () => {
  test('are mounted with 9p at the same path, and our own files in them are covered', async () => {
    const { mounts, since, home } = scene();
    expect(await mounts.begin(with9p, signal)).toContain('-virtfs');
    const shared = { path: home, by: '9p', mounts: [{ path: home, mode: 'writable', by: '9p' }] };
    expect(await mounts.observe()).toEqual({ asked: {}, shared, repair: expect.stringContaining(home) });
    await mounts.mount(with9p, signal);
    expect(since()).toEqual([
      'place HOME HOME guest guest',
      'modprobe 9pnet_virtio',
      `${NINE_P},rw -- rdctl-home HOME`,
      'hide HOME/own',
    ]);
    expect(await mounts.observe()).toEqual({ asked: {}, shared });
    await mounts.mount(with9p, signal);
    expect(since()).toEqual([]);
    expect(await mounts.blocksMigration()).toBeUndefined();
    await mounts.unmount(signal);
    expect(await mounts.observe()).toHaveProperty('repair');
  });

  test('are mounted from the outermost to the innermost, each in its mode', async () => {
    const { mounts, since, home } = scene();
    const spec = { ...with9p, mounts: { '~/a/b': 'writable', '~/a': 'read-only', '~/secret': 'none' } as const };
    expect((await mounts.begin(spec, signal)).filter((word) => word.includes('readonly=on'))).toHaveLength(1);
    await mounts.mount(spec, signal);
    expect(since().filter((line) => !line.startsWith('modprobe'))).toEqual([
      'place HOME HOME guest guest',
      `${NINE_P},rw -- rdctl-home HOME`,
      'hide HOME/own HOME/secret',
      'place HOME/a HOME/a share share',
      `${NINE_P},ro -- rdctl-ID HOME/a`,
      'place HOME/a/b HOME/a/b share share',
      `${NINE_P},rw -- rdctl-ID HOME/a/b`,
    ]);
    expect(await mounts.observe()).toMatchObject({
      asked: spec.mounts,
      shared: {
        path: home,
        mounts: [
          { path: home, mode: 'writable' },
          { path: join(home, 'a'), mode: 'read-only', by: '9p' },
          { path: join(home, 'a/b'), mode: 'writable', by: '9p' },
          { path: join(home, 'secret'), mode: 'none' },
        ],
      },
    });
  });

  test('are not mounted in one that is not, and those elsewhere are', async () => {
    const { mounts, since, world, home } = scene();
    const other = realpathSync(temporaryDirectory('/tmp'));
    const spec = { ...with9p, mounts: { '~/a': 'read-only', [other]: 'writable' } as const };
    await mounts.begin(spec, signal);
    world.fails = 'rdctl-home';
    await expect(mounts.mount(spec, signal)).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED' });
    expect(since().filter((line) => line.startsWith('mount'))).toEqual([
      `${NINE_P},rw -- rdctl-home HOME`,
      `${NINE_P},rw -- rdctl-ID ${other}`,
    ]);
    expect(await mounts.observe()).toHaveProperty('repair', expect.stringContaining(home));
    world.fails = '';
    await mounts.mount(spec, signal);
    expect(since().filter((line) => line.startsWith('mount'))).toHaveLength(2);
    expect(await mounts.observe()).not.toHaveProperty('repair');
  });

  test('are unmounted before they are mounted again, and processes waiting for them end', async () => {
    const { mounts, since, world, home } = scene();
    await mounts.begin(with9p, signal);
    world.table = `1 2 0:39 / ${home} rw - fuse.sshfs rdctl-home rw\n1 2 0:40 / ${home}/own rw - tmpfs x rw\n`;
    await mounts.mount(with9p, signal);
    expect(since()[0]).toBe('clear HOME 39');
  });

  test('are not mounted at all when our own files cannot be covered', async () => {
    const { mounts, since, world, home } = scene();
    await mounts.begin(with9p, signal);
    world.fails = 'hide';
    world.table = `1 2 0:39 / ${home} rw - 9p rdctl-home rw\n`;
    await expect(mounts.mount(with9p, signal)).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED' });
    expect(since().at(-1)).toBe('clear HOME');
    expect(await mounts.observe()).toHaveProperty('repair');
  });

  test('are given up where the guest has something there, and say so', async () => {
    const { mounts, since, world } = scene();
    await mounts.begin(with9p, signal);
    world.place = { exitCode: REFUSED, stdout: 'the guest has something of its own in /x\n' };
    await mounts.mount(with9p, signal);
    expect(since()).toEqual(['place HOME HOME guest guest']);
    expect(await mounts.observe()).toMatchObject({ shared: { missing: 'the guest has something of its own in /x' } });
  });

  test('are not mounted where this host cannot share them, and QEMU gets no option for them', async () => {
    const { mounts, since } = scene(NOTHING);
    expect(await mounts.begin(MACHINE, signal)).toEqual([]);
    await mounts.mount(MACHINE, signal);
    await mounts.unmount(signal);
    await mounts.end(signal);
    expect(since()).toEqual([]);
    expect(await mounts.observe()).toMatchObject({ shared: { missing: expect.stringContaining('sftp-server') } });
  });

  test('are unknown in a machine of an older release, and with a damaged record', async () => {
    const { mounts, file } = scene();
    const unknown = {
      asked: {},
      shared: { missing: expect.stringContaining('without a shared directory'), mounts: [] },
    };
    expect(await mounts.observe()).toEqual(unknown);
    const directory = '{"id":"home","path":"/","real":"/","mode":"writable","hidden":[]}';
    for (const text of [
      '',
      '{',
      '[]',
      '{"type":"nfs","path":"/","real":"/","hidden":[]}',
      '{"type":"9p"}',
      '{"type":"9p","asked":{},"directories":[{}]}',
      `{"type":"nfs","asked":{},"directories":[${directory}]}`,
      `{"asked":{},"directories":[${directory}]}`,
    ]) {
      writeFileSync(file, text);
      expect(await readMountsRecord(file), text).toBeUndefined();
      expect(await mounts.observe()).toEqual(unknown);
    }
  });

  test('with virtiofs keep a machine from being frozen, and are restored by a restart when their daemon is gone', async () => {
    const { mounts, file, home } = scene();
    // As a release wrote it that shared only the home directory.
    writeFileSync(file, JSON.stringify({ type: 'virtiofs', path: home, real: home, hidden: [], mounted: true }));
    expect(await mounts.observe()).toMatchObject({ broken: expect.stringContaining('virtiofsd') });
    expect(await mounts.blocksMigration()).toContain('virtiofs');
  });
});

describe('a change of the directories of a running machine', () => {
  test('is refused by mount types whose directories are devices', async () => {
    const { mounts, since } = scene();
    await mounts.begin(with9p, signal);
    await expect(mounts.change({ ...with9p, mounts: { '/tmp': 'none' } }, signal)).rejects.toMatchObject({
      message: expect.stringContaining('needs a restart'),
    });
    expect(since()).toEqual([]);
  });

  /** With the home directory and `~/a` mounted. */
  async function running() {
    const made = scene();
    const { file, home } = made;
    const hidden = [join(home, 'own')];
    const inner = { id: 'mount-00000000', path: join(home, 'a'), real: join(home, 'a'), mode: 'writable', hidden: [] };
    const directories = [
      { id: 'home', path: home, real: home, mode: 'writable', hidden, mounted: true },
      { ...inner, mounted: true },
    ];
    writeFileSync(file, JSON.stringify({ type: 'reverse-sshfs', asked: { '~/a': 'writable' }, directories }));
    made.world.table = `1 2 0:39 / ${home} rw - fuse.sshfs x rw\n1 2 0:40 / ${home}/a rw - fuse.sshfs y rw\n`;
    return made;
  }

  test('changes nothing while a program uses a directory that would go away, and names the program', async () => {
    const { mounts, since, world, home, file } = await running();
    world.users = `12 node server\t${home}/a\n`;
    const before = readFileSync(file, 'utf8');
    await expect(mounts.change({ ...MACHINE, mounts: { '~/a': 'read-only' } }, signal)).rejects.toMatchObject({
      message: `${home}/a is in use in the machine by node server (pid 12)`,
    });
    expect(since()).toEqual(['users HOME/a 0:40']);
    expect(readFileSync(file, 'utf8')).toBe(before);
    expect((await mounts.observe()).asked).toEqual({ '~/a': 'writable' });
  });

  test('unmounts what goes away with everything in it, and leaves the rest alone', async () => {
    const { mounts, since, world } = await running();
    // The home directory would be mounted by a real program; here that fails.
    world.fails = 'sshfs';
    await expect(mounts.change({ ...MACHINE, mounts: { '~/secret': 'none' } }, signal)).rejects.toThrow('it fails');
    const done = since();
    expect(done.slice(0, 3)).toEqual(['users HOME 0:39 HOME/a 0:40', 'clear HOME/a 40', 'clear HOME 39']);
    // The record has the new directories already: a repetition, also by another service, mounts them.
    const { asked, repair, shared } = await mounts.observe();
    expect({ asked, repair }).toEqual({ asked: { '~/secret': 'none' }, repair: expect.any(String) });
    expect(shared.mounts).toHaveLength(2);
  });
});
