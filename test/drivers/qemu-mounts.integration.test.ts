import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readlinkSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { qemu } from '../../src/drivers/index.ts';
import { comma } from '../../src/drivers/machines/qemu/arguments.ts';
import {
  featuresOf,
  type HostFacts,
  homeFacts,
  homeToShare,
} from '../../src/drivers/machines/qemu/mounts/host-facts.ts';
import { featureFor, MOUNTERS, virtiofsdArguments } from '../../src/drivers/machines/qemu/mounts/mount-types.ts';
import { guestMounts, PLACE_SCRIPT, REFUSED, readHomeRecord } from '../../src/drivers/machines/qemu/mounts/mounts.ts';
import { qemuPlaces } from '../../src/drivers/machines/qemu/places.ts';
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

describe('the shared directory', () => {
  test('is the home directory, as written and as resolved', () => {
    expect(homeToShare({ home: '/home/u/', real: '/data/u', own: [] })).toEqual({
      path: '/home/u',
      real: '/data/u',
      hidden: [],
    });
    expect(homeToShare({ home: '/root', real: '/root', own: [] })).toMatchObject({ path: '/root' });
  });

  test('hides our own files in it, once', () => {
    const own = ['/home/u/.local/rd', '/home/u/.local/rd/state', '/home/u/.local/rd-other', '/home/user', '/srv/x'];
    expect(homeToShare({ home: '/home/u', real: '/home/u', own })).toMatchObject({
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
    ['/home/a\nb', '/home/a\nb', 'control characters'],
  ])('is none for %j', (home, real, why) => {
    expect(homeToShare({ home, real, own: [] })).toEqual({ missing: expect.stringContaining(why) });
  });

  test('is none when the keys of the machine contain it', () => {
    expect(homeToShare({ home: '/s/x', real: '/s/x', own: ['/s'] })).toEqual({
      missing: expect.stringContaining('in /s,'),
    });
    // The connection file is in it, and a file cannot be covered.
    expect(homeToShare({ home: '/s', real: '/s', own: ['/s', '/s/state'] })).toEqual({
      missing: expect.stringContaining('HOME is /s,'),
    });
  });

  test('is checked: links, files, and missing paths', async () => {
    const directory = realpathSync(temporaryDirectory());
    const [link, file] = [join(directory, 'link'), join(directory, 'file')];
    symlinkSync(directory, link);
    writeFileSync(file, '');
    expect(await homeFacts(link, [link, file, '/nowhere'])).toEqual({ home: link, real: directory, own: [directory] });
    expect((await homeFacts(file, [])).real).toBeUndefined();
    expect((await homeFacts(undefined, [])).real).toBeUndefined();
  });

  test('is never a system path of the guest, and what is hidden is never outside', () => {
    const part = fc.constantFrom(
      'usr',
      'home',
      'u',
      'etc',
      'run',
      'var',
      'lib',
      'rdctl',
      '..',
      '.',
      '',
      'a,b',
      ' ',
      'ü',
    );
    const path = fc.array(part, { maxLength: 5 }).map((parts) => `/${parts.join('/')}`);
    fc.assert(
      fc.property(path, fc.array(path, { maxLength: 3 }), (home, own) => {
        const found = homeToShare({ home, real: home, own });
        if ('missing' in found) return;
        expect(found.path).not.toMatch(/^\/(etc|run|usr\/lib|var\/lib\/rdctl)?(\/|$)/);
        for (const each of found.hidden) expect(each.startsWith(`${home}/`)).toBe(true);
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
  const home = { path: '/p', real: `/ho me,a\\b'"ü`, hidden: [] };
  const places = qemuPlaces('/d,e', '/r');

  test('escape commas and backslashes in paths as each program expects', () => {
    expect(MOUNTERS['9p'].qemuArguments(home, with9p, places)).toEqual([
      '-virtfs',
      `local,path=/ho me,,a\\b'"ü,mount_tag=rdctl-home,security_model=none,multidevs=remap,id=home`,
    ]);
    const argv = virtiofsdArguments(EVERYTHING, home.real, '/s');
    expect(argv).toContain(`source=/ho me\\,a\\\\b'"ü`);
    expect(
      virtiofsdArguments({ ...EVERYTHING, virtiofsd: { path: '/v', dialect: 'rust' } }, home.real, '/s'),
    ).toContain(`--shared-dir=${home.real}`);
    expect(MOUNTERS.virtiofs.qemuArguments(home, withVirtiofs, places)).toEqual(
      expect.arrayContaining(['memory-backend=home-memory', `socket,id=home,path=${comma(places.homeSocket)}`]),
    );
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
  const make = (real: string, home: string) =>
    spawnSync('sh', ['-s', '--', real, home], { input: PLACE_SCRIPT, encoding: 'utf8' });

  test('is created, with its second name, and can be created again', () => {
    const directory = realpathSync(temporaryDirectory());
    const [real, home] = [join(directory, "a b'c", 'u'), join(directory, 'h', '-x')];
    for (let turn = 0; turn < 2; turn += 1) expect(make(real, home)).toMatchObject({ status: 0, stdout: '' });
    expect(readlinkSync(home)).toBe(real);
  });

  test('is refused where the guest has anything of its own', () => {
    const directory = realpathSync(temporaryDirectory());
    mkdirSync(join(directory, 'full', 'x'), { recursive: true });
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
});

/** A scripted guest that records what it was asked. */
function scene(facts: HostFacts = EVERYTHING) {
  const directory = temporaryDirectory();
  // The temporary files of these tests may be in /dev, which every guest has itself.
  const home = realpathSync(temporaryDirectory('/tmp'));
  mkdirSync(join(home, 'own'));
  const places = qemuPlaces(directory, '/nowhere');
  const asked: string[] = [];
  const world = { place: { exitCode: 0, stdout: '' }, table: '', fails: '' };
  const mounts = guestMounts({
    places,
    guest: {
      async run(argv: readonly string[], options: RunOptions = {}) {
        const line = argv.join(' ');
        const what = options.input === PLACE_SCRIPT ? 'place' : options.input === undefined ? line : `script ${line}`;
        if (line.includes('mountinfo')) return { exitCode: 0, stdout: world.table, stderr: '' };
        asked.push(what);
        if (world.fails !== '' && what.includes(world.fails)) throw new RdError('ERR_DRIVER_FAILED', 'it fails');
        return what === 'place' ? { ...world.place, stderr: '' } : { exitCode: 0, stdout: '', stderr: '' };
      },
    },
    clock: steadyClock,
    logFile: join(directory, 'log'),
    environment: {},
    port: async () => 1,
    home,
    own: [join(home, 'own')],
    facts: async () => facts,
    log: () => undefined,
  });
  return { mounts, asked, world, home, file: places.home };
}

describe('the directory in a machine', () => {
  test('is mounted with 9p at the same path, and our own files in it are covered', async () => {
    const { mounts, asked, home } = scene();
    expect(await mounts.begin(with9p, signal)).toContain('-virtfs');
    expect(await mounts.observe()).toEqual({ shared: { path: home, by: '9p' }, repair: expect.stringContaining(home) });
    await mounts.mount(with9p, signal);
    expect(asked).toEqual([
      'place',
      'modprobe 9pnet_virtio',
      `mount -t 9p -o trans=virtio,version=9p2000.L,msize=131072,cache=mmap -- rdctl-home ${home}`,
      `script sh -s -- ${join(home, 'own')}`,
    ]);
    expect(await mounts.observe()).toEqual({ shared: { path: home, by: '9p' } });
    expect(await mounts.blocksMigration()).toBeUndefined();
    await mounts.unmount(signal);
    expect(await mounts.observe()).toHaveProperty('repair');
  });

  test('is unmounted before it is mounted again, and processes waiting for it end', async () => {
    const { mounts, asked, world, home } = scene();
    await mounts.begin(with9p, signal);
    world.table = `1 2 0:39 / ${home} rw - fuse.sshfs rdctl-home rw\n1 2 0:40 / ${home}/own rw - tmpfs x rw\n`;
    await mounts.mount(with9p, signal);
    expect(asked[0]).toBe(`script sh -s -- ${home} 39`);
  });

  test('is not mounted at all when our own files cannot be covered', async () => {
    const { mounts, asked, world, home } = scene();
    await mounts.begin(with9p, signal);
    world.fails = join(home, 'own');
    world.table = `1 2 0:39 / ${home} rw - 9p rdctl-home rw\n`;
    await expect(mounts.mount(with9p, signal)).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED' });
    expect(asked.at(-1)).toBe(`script sh -s -- ${home}`);
    expect(await mounts.observe()).toHaveProperty('repair');
  });

  test('is given up where the guest has something there, and says so', async () => {
    const { mounts, asked, world } = scene();
    await mounts.begin(with9p, signal);
    world.place = { exitCode: REFUSED, stdout: 'the guest has something of its own in /x\n' };
    await mounts.mount(with9p, signal);
    expect(asked).toEqual(['place']);
    expect(await mounts.observe()).toEqual({ shared: { missing: 'the guest has something of its own in /x' } });
  });

  test('is not mounted where this host cannot share it, and QEMU gets no option for it', async () => {
    const { mounts, asked } = scene(NOTHING);
    expect(await mounts.begin(MACHINE, signal)).toEqual([]);
    await mounts.mount(MACHINE, signal);
    await mounts.unmount(signal);
    await mounts.end(signal);
    expect(asked).toEqual([]);
    expect(await mounts.observe()).toEqual({ shared: { missing: expect.stringContaining('sftp-server') } });
  });

  test('is unknown in a machine of an older release, and with a damaged record', async () => {
    const { mounts, file } = scene();
    const unknown = { shared: { missing: expect.stringContaining('without a shared directory') } };
    expect(await mounts.observe()).toEqual(unknown);
    for (const text of ['', '{', '[]', '{"type":"nfs","path":"/","real":"/","hidden":[]}', '{"type":"9p"}']) {
      writeFileSync(file, text);
      expect(await readHomeRecord(file)).toBeUndefined();
      expect(await mounts.observe()).toEqual(unknown);
    }
  });

  test('with virtiofs keeps a machine from being frozen, and is restored by a restart when its daemon is gone', async () => {
    const { mounts, file, home } = scene();
    writeFileSync(file, JSON.stringify({ type: 'virtiofs', path: home, real: home, hidden: [], mounted: true }));
    expect(await mounts.observe()).toMatchObject({ broken: expect.stringContaining('virtiofsd') });
    expect(await mounts.blocksMigration()).toContain('virtiofs');
  });
});
