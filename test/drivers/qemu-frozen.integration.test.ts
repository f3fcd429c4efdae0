import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { QemuArguments } from '../../src/drivers/machines/qemu/arguments.ts';
import { UNCONFINED } from '../../src/drivers/machines/qemu/confine/confinement.ts';
import { type FrozenFacts, frozenKey, machineShape } from '../../src/drivers/machines/qemu/frozen/state.ts';
import type { Connection } from '../../src/drivers/machines/qemu/guest.ts';
import { hostPortFilter } from '../../src/drivers/machines/qemu/host-ports/filter.ts';
import { qemuMachine } from '../../src/drivers/machines/qemu/machine.ts';
import { qemuMonitor } from '../../src/drivers/machines/qemu/monitor.ts';
import { qemuPlaces } from '../../src/drivers/machines/qemu/places.ts';
import { type QemuRecord, readQemuRecord, writeQemuRecord } from '../../src/drivers/machines/qemu/record.ts';
import { CANNOT, NO_DATA, SHARES } from '../../src/drivers/machines/qemu/setup-scripts.ts';
import type { Run } from '../../src/drivers/shell.ts';
import { RdError } from '../../src/errors.ts';
import { steadyClock } from '../../src/os/clock.ts';
import { stopDaemon } from '../../src/os/daemon.ts';
import { MACHINE } from '../contract/driver-suite.ts';
import { diskHeader } from '../helpers/disk-header.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { HOST, IMAGE } from './scripted-qemu.ts';

const signal = new AbortController().signal;
const PROGRAM = resolve('test/helpers/qemu-program.cjs');

/** A machine with programs that stand in for those of QEMU, in a directory that may already have a state. */
function scene(directory = temporaryDirectory()) {
  const places = qemuPlaces(directory, join(directory, 'runtime'));
  const frozen = join(directory, 'frozen');
  const orderFile = join(directory, 'orders');
  const programs = join(directory, 'programs');
  mkdirSync(programs, { recursive: true });
  // Without a shell in between, which would be taken for QEMU while it execs.
  const text = readFileSync(PROGRAM, 'utf8').replace(/^#!.*/, `#!${process.execPath}`);
  writeFileSync(join(programs, 'qemu-system-x86_64'), text, { mode: 0o755 });
  const environment: Record<string, string> = {
    PATH: programs,
    SCRIPTED_ORDERS: orderFile,
  };
  const logged: { message: string; why?: unknown }[] = [];
  const world = {
    giveBack: 0,
    answers: true,
    version: 'QEMU emulator version 7.2.0',
    /** What waking a guest reports when it does not get its data disk. */
    noData: '',
    /** What it reports while it settles. */
    settles: '',
    /** It never ends. */
    endless: false,
    /** The limit of the last connection. */
    connectMs: 0,
    /** Milliseconds that have passed in an instant. */
    passed: 0,
  };
  const note = (word: string) => writeFileSync(orderFile, `${word}\n`, { flag: 'a' });
  const run: Run = async ([program = '', ...args]) => {
    const said = (stdout = '') => ({ exitCode: 0, stdout, stderr: '' });
    if (program === 'qemu-system-x86_64') return said(`${world.version}\n`);
    if (program === 'ssh-keygen') {
      const path = args.at(-1) ?? '';
      if (args.includes('-y')) return said(readFileSync(`${path}.pub`, 'utf8'));
      writeFileSync(path, 'secret');
      writeFileSync(`${path}.pub`, `ssh-ed25519 ${Math.random()} x\n`);
      return said();
    }
    if (args[0] === 'info')
      return said(
        JSON.stringify({ 'virtual-size': MACHINE.diskBytes, 'backing-filename': join(IMAGE.directory, 'disk.qcow2') }),
      );
    if (args[0] === 'create')
      writeFileSync(
        args.findLast((word) => word.startsWith('/') && /\.qcow2(?:\.new)?$/.test(word)) ?? '',
        diskHeader({ bytes: MACHINE.diskBytes }),
      );
    return said();
  };
  const monitor = qemuMonitor(places.monitor);
  const guest: Connection = {
    async run(argv, { input = '' } = {}) {
      const text = `${argv.join(' ')} ${typeof input === 'string' ? input : ''}`;
      if (text.includes('/proc/mounts')) {
        note('give back');
        return { exitCode: world.giveBack, stdout: '', stderr: 'busy' };
      }
      if (text.includes('xargs')) note('end sessions');
      if (text.includes('iptables-restore')) note('filter');
      if (text.includes('urandom')) {
        note('wake');
        if (world.endless) {
          world.passed += 480_000;
          throw new RdError('ERR_DRIVER_FAILED', 'ssh did not finish within 480 s and was stopped');
        }
        if (world.noData !== '') return { exitCode: NO_DATA, stdout: '', stderr: world.noData };
      }
      return { exitCode: 0, stdout: text.includes('resize2fs') ? world.settles : '', stderr: '' };
    },
    async *stream() {},
    converse: () => Promise.reject(new RdError('ERR_DRIVER_FAILED', 'nothing converses')),
    forward: async () => '',
    async connect(limitMs, isAlive) {
      world.connectMs = limitMs;
      while ((await monitor.status(signal)) !== 'running') {
        if (!(await isAlive())) throw new RdError('ERR_DRIVER_FAILED', 'QEMU ended');
        await steadyClock.sleep(5);
      }
      note('connect');
      if (!world.answers) {
        world.answers = true;
        throw new RdError('ERR_DRIVER_FAILED', 'the guest did not respond within 45 s');
      }
    },
    isConnected: async () => true,
    sessions: () => 0,
    onReconnect: () => undefined,
    close: async () => undefined,
  };
  const parts = {
    places,
    logFile: join(directory, 'qemu.log'),
    images: {
      list: async () => [IMAGE],
      selected: async () => undefined,
      verify: async () => undefined,
      verifyDisk: async () => undefined,
    },
    host: HOST,
    run,
    environment,
    guest,
    monitor,
    ports: { watch: () => undefined, switchTo: async () => undefined, forget: async () => undefined },
    hostPorts: hostPortFilter({ guest, hostSockets: async () => undefined, published: () => [], log: () => undefined }),
    confine: UNCONFINED,
    mounts: {
      opened: async () => [],
      observe: async () => ({ shared: { missing: 'it is not wanted', mounts: [] }, asked: {} }),
      change: async () => undefined,
      begin: async () => [],
      mount: async () => undefined,
      unmount: async () => note('unmount'),
      connections: async () => [],
      blocksMigration: async () => undefined,
      end: async () => undefined,
    },
    accelerator: async () => ({ accelerator: 'tcg' as const, emulatedBecause: 'no KVM' }),
    freezes: true,
    pause: () => undefined,
    clock: { now: () => steadyClock.now() + world.passed, sleep: steadyClock.sleep },
    log: (_level: string, message: string, values: Record<string, unknown> = {}) =>
      void logged.push({ message, ...values }),
  };
  const machine = qemuMachine(parts);
  onTestFinished(async () => void (await stopDaemon(places.qemuRecord, { graceMs: 1_000, clock: steadyClock })));
  return {
    directory,
    places,
    frozen,
    world,
    environment,
    logged,
    machine,
    start: (spec = MACHINE) => machine.perform({ do: 'start', spec }, signal),
    stop: () => machine.perform({ do: 'stop' }, signal),
    /** Without the earlier ones. */
    orders() {
      const text = existsSync(orderFile) ? readFileSync(orderFile, 'utf8') : '';
      rmSync(orderFile, { force: true });
      return text.split('\n').filter(Boolean);
    },
    manifest: () => readFileSync(join(frozen, 'frozen.json'), 'utf8'),
    async started() {
      const record = await readQemuRecord(places.record);
      return record === undefined || record === 'damaged' ? undefined : record.started;
    },
  };
}

const BOOT = ['qemu', 'connect', 'filter'];
/** Until the guest has got its data disk, or not; then its packet filter. */
const WAKE = ['qemu', 'cont', 'connect', 'wake'];
const RESUME = [...WAKE, 'filter'];
const LEAVE = ['unmount', 'give back', 'end sessions'];

/** A frozen machine that is off. */
async function frozenScene() {
  const made = scene();
  await made.start();
  await made.stop();
  made.orders();
  return made;
}

test('a machine is frozen when it stops, and resumed from then on', async () => {
  const { start, stop, orders, started, manifest, frozen, directory, places, logged } = scene();
  await start();
  expect(orders()).toEqual(BOOT);
  expect(await started()).toMatchObject({ how: 'boot' });
  await stop();
  expect(orders()).toEqual([...LEAVE, 'stop', 'migrate-set-parameters', 'migrate', 'quit']);
  const first = manifest();
  expect(first).not.toContain(directory);
  expect(statSync(frozen).mode & 0o777).toBe(0o700);
  for (const name of ['state', 'root.qcow2', 'frozen.json'])
    expect(statSync(join(frozen, name)).mode & 0o777).toBe(0o600);
  for (const again of [1, 2]) {
    await start();
    // The data disk is not looked at before the guest is awake.
    expect(orders(), `start ${again}, ${JSON.stringify(logged)}`).toEqual(RESUME);
    const start2 = await started();
    expect(start2?.how).toBe('resume');
    expect(start2?.phases.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['preparation', 'state', 'connection', 'data disk and network']),
    );
    await stop();
    expect(orders(), `stop ${again}`).toEqual([...LEAVE, 'quit']);
    expect(manifest()).toBe(first);
    expect(existsSync(join(directory, 'layer.qcow2'))).toBe(false);
  }
  expect(existsSync(places.run)).toBe(false);
});

test('a file system that did not grow, or still grows, is reported after a boot and a resume, and delays nothing', async () => {
  const { start, stop, world, logged, places } = scene();
  const record = () => readQemuRecord(places.record);
  world.settles = `failed ${MACHINE.diskBytes / 2}\nresize2fs 1.47\nresize2fs: no space\ncpus 2\n`;
  const flaw =
    'the file system of the data disk has 5 GiB and not 10 GiB, because it did not grow (resize2fs: no space); each start retries';
  for (const times of [1, 2]) {
    await start();
    expect(logged.filter(({ why }) => why === flaw)).toHaveLength(times);
    expect(await record()).toMatchObject({ flaw, spec: MACHINE });
    expect(await record()).not.toHaveProperty('growing');
    await stop();
  }
  world.settles = 'cpus 2\n';
  await start();
  expect(await record()).not.toHaveProperty('flaw');
  expect(await record()).toMatchObject({ possibleCpus: 2 });
  await stop();
  world.settles = `going ${MACHINE.diskBytes / 2}\n`;
  await start();
  expect(await record()).toMatchObject({
    flaw: 'the file system of the data disk has 5 GiB of 10 GiB and is still growing in the background',
    growing: true,
  });
});

describe('an unusable state is removed, and the machine boots in the same step', () => {
  const state = (frozen: string) => join(frozen, 'state');
  const flip = (path: string) => {
    const bytes = readFileSync(path);
    const middle = Math.floor(bytes.length / 2);
    bytes[middle] = (bytes[middle] ?? 0) ^ 0xff;
    writeFileSync(path, bytes);
  };
  test.each<[string, (made: ReturnType<typeof scene>) => void, string, string[]]>([
    [
      'memory with other bits',
      ({ frozen }) => flip(state(frozen)),
      'the memory of the frozen state is damaged',
      ['qemu'],
    ],
    [
      'a root disk with other bits',
      ({ frozen }) => flip(join(frozen, 'root.qcow2')),
      'the root disk of the frozen state is damaged',
      ['qemu'],
    ],
    ['memory that is cut off', ({ frozen }) => truncateSync(state(frozen), 1_000), 'state has 1000 bytes', []],
    ['no memory', ({ frozen }) => rmSync(state(frozen)), 'state is missing', []],
    ['no root disk', ({ frozen }) => rmSync(join(frozen, 'root.qcow2')), 'root.qcow2 is missing', []],
    [
      'a manifest that is none',
      ({ frozen }) => writeFileSync(join(frozen, 'frozen.json'), '{"key": 1}'),
      'cannot be parsed',
      [],
    ],
    [
      'another QEMU',
      ({ world }) => {
        world.version = 'QEMU emulator version 8.0.0';
      },
      'another machine',
      [],
    ],
    ['other keys', ({ places }) => rmSync(places.key), 'another machine', []],
    [
      'a QEMU that refuses it',
      ({ environment }) => {
        environment.SCRIPTED_QEMU = 'refuse';
      },
      'error while loading state',
      ['qemu'],
    ],
    [
      'a guest that does not respond',
      ({ world }) => {
        world.answers = false;
      },
      'did not respond',
      ['qemu', 'cont', 'connect'],
    ],
  ])('%s', async (_what, spoil, why, before) => {
    const made = await frozenScene();
    spoil(made);
    await made.start();
    expect(made.orders()).toEqual([...before, ...BOOT]);
    expect(await made.started()).toMatchObject({ how: 'boot' });
    expect(made.logged.map(({ why: said }) => String(said)).join('\n')).toContain(why);
    expect(existsSync(made.frozen)).toBe(false);
    delete made.environment.SCRIPTED_QEMU;
    await made.stop();
    // And there is a new one.
    made.orders();
    await made.start();
    expect(made.orders()).toEqual(RESUME);
  });

  test('so does that of a machine of another size', async () => {
    const { start, stop, orders, started } = await frozenScene();
    await start({ ...MACHINE, memoryGiB: MACHINE.memoryGiB + 1 });
    expect(orders()).toEqual(BOOT);
    await stop();
    await start({ ...MACHINE, memoryGiB: MACHINE.memoryGiB + 1 });
    expect(await started()).toMatchObject({ how: 'resume' });
  });
});

describe('a resume that fails for an unrelated reason keeps the state for the next one', () => {
  test('a port in use, or too little memory on this host', async () => {
    const made = await frozenScene();
    const before = made.manifest();
    made.environment.SCRIPTED_QEMU = 'taken';
    await expect(made.start()).rejects.toMatchObject({ message: expect.stringContaining('host forwarding rule') });
    expect(made.orders()).toEqual(['qemu', 'qemu']);
    expect(made.manifest()).toBe(before);
    delete made.environment.SCRIPTED_QEMU;
    await made.start();
    expect(made.orders()).toEqual(RESUME);
  });

  test('a data disk that the guest cannot mount: a boot tries it, and the next stop saves another state', async () => {
    const made = await frozenScene();
    const before = made.manifest();
    made.world.noData = 'rdctl-data: clean\n/dev/vdb is in use.\n';
    await made.start();
    expect(made.orders()).toEqual([...WAKE, ...BOOT]);
    expect(made.logged.map(({ why }) => why)).toContain('the guest cannot mount its data disk: /dev/vdb is in use.');
    expect(made.manifest()).toBe(before);
    made.world.noData = '';
    await made.stop();
    made.orders();
    await made.start();
    expect(made.orders()).toEqual(RESUME);
  });

  test('on a computer whose last start took long, the guest has more time to respond', async () => {
    const made = await frozenScene();
    await made.start();
    expect(made.world.connectMs).toBe(45_000);
    await made.stop();
    await change(made.places.record, { started: { how: 'boot', phases: [{ name: 'boot', ms: 40_000 }] } });
    await made.start();
    expect(await made.started()).toMatchObject({ how: 'resume' });
    expect(made.world.connectMs).toBe(90_000);
  });

  test('a file system that needs manual repair is reported at once in the words of the check', async () => {
    const made = await frozenScene();
    made.world.noData =
      'rdctl-data: UNEXPECTED INCONSISTENCY; RUN fsck MANUALLY.\n\t(i.e., without -a or -p options)\n';
    await expect(made.start()).rejects.toMatchObject({
      code: 'ERR_DRIVER_TERMINAL',
      message: expect.stringContaining(made.places.data),
      details: expect.arrayContaining([expect.stringContaining('UNEXPECTED INCONSISTENCY')]),
    });
    expect(made.orders()).toEqual(WAKE);
    expect(existsSync(made.frozen)).toBe(true);
    made.world.noData = '';
    expect(await made.machine.observe(signal)).toMatchObject({ state: 'broken', reason: 'StartUnfinished' });
    await made.start();
    expect(await made.started()).toMatchObject({ how: 'resume' });
  });

  test('a check that hangs is not repeated by a boot in the same start', async () => {
    const made = await frozenScene();
    made.world.endless = true;
    await expect(made.start()).rejects.toMatchObject({
      code: 'ERR_DRIVER_FAILED',
      message: 'the guest did not mount its data disk within 8 minutes',
    });
    expect(made.orders()).toEqual(WAKE);
    expect(existsSync(made.frozen)).toBe(true);
  });
});

describe('a machine that cannot be frozen shuts down as usual, and leaves nothing behind', () => {
  const WAYS: [string, (made: ReturnType<typeof scene>) => void | Promise<void>, string[]][] = [
    [
      'an image of an older recipe',
      ({ world }) => {
        world.giveBack = CANNOT;
      },
      ['unmount', 'give back', 'system_powerdown'],
    ],
    [
      'a directory of the host that stays',
      ({ world }) => {
        world.giveBack = SHARES;
      },
      ['unmount', 'give back', 'system_powerdown'],
    ],
    [
      'a data disk that is in use',
      ({ world }) => {
        world.giveBack = 1;
      },
      ['unmount', 'give back', 'system_powerdown'],
    ],
    ['memory that was plugged in', ({ places }) => change(places.record, { adjusted: true }), ['system_powerdown']],
  ];
  test.each(WAYS)('%s', async (_what, prepare, expected) => {
    const made = scene();
    await made.start();
    made.orders();
    await prepare(made);
    await made.stop();
    expect(made.orders().slice(0, expected.length)).toEqual(expected);
    expect(existsSync(made.frozen)).toBe(false);
    expect(existsSync(`${made.frozen}.new`)).toBe(false);
    await made.start();
    expect(await made.started()).toMatchObject({ how: 'boot' });
  });

  test('a disk with less room than its memory may need', async () => {
    const made = scene();
    await made.start({ ...MACHINE, memoryGiB: 2 ** 20 });
    made.orders();
    await made.stop();
    expect(made.orders().slice(0, LEAVE.length + 1)).toEqual([...LEAVE, 'system_powerdown']);
    expect(String(made.logged.at(-1)?.why)).toContain('less free space');
    expect(existsSync(made.frozen)).toBe(false);
  });

  test.each([
    ['block', ['system_powerdown']],
    ['break', ['stop', 'migrate-set-parameters', 'migrate', 'migrate_cancel', 'cont', 'system_powerdown']],
  ])('a QEMU that refuses (%s)', async (wrong, expected) => {
    const made = scene();
    made.environment.SCRIPTED_QEMU = wrong;
    await made.start();
    made.orders();
    await made.stop();
    expect(made.orders().slice(0, LEAVE.length + expected.length)).toEqual([...LEAVE, ...expected]);
    expect(made.logged.at(-1)?.message).toBe('the guest could not be frozen');
    expect(existsSync(made.frozen)).toBe(false);
    expect(existsSync(`${made.frozen}.new`)).toBe(false);
  });
});

async function change(path: string, members: Partial<QemuRecord>): Promise<void> {
  const record = await readQemuRecord(path);
  if (record === undefined || record === 'damaged') throw new Error('there is no record');
  await writeQemuRecord(path, { ...record, ...members });
}

test('what a kill leaves behind is never taken for a state', async () => {
  const { frozen, start, stop, orders, places, machine, started } = await frozenScene();
  renameSync(frozen, `${frozen}.new`);
  await start();
  expect(orders()).toEqual(BOOT);
  // It may still have its data disk, with unwritten data: nobody saw how far the stop came.
  await change(places.record, { booted: false });
  expect(await machine.observe(signal)).toMatchObject({ state: 'broken', reason: 'StartUnfinished' });
  await stop();
  expect(orders()).toEqual(['system_powerdown']);
  expect(existsSync(frozen)).toBe(false);
  await start();
  expect(await started()).toMatchObject({ how: 'boot' });
  await stop();
  expect(existsSync(frozen)).toBe(true);
  expect(existsSync(`${frozen}.new`)).toBe(false);
});

test('a copied state works for a machine elsewhere that has its keys', async () => {
  const first = await frozenScene();
  const directory = temporaryDirectory();
  cpSync(first.frozen, join(directory, 'frozen'), { recursive: true });
  for (const path of [first.places.key, first.places.hostKey]) {
    for (const end of ['', '.pub']) cpSync(`${path}${end}`, join(directory, `${path}${end}`.split('/').at(-1) ?? ''));
  }
  const other = scene(directory);
  await other.start();
  expect(other.orders()).toEqual(RESUME);
  expect(await other.started()).toMatchObject({ how: 'resume' });
});

describe('what a state matches', () => {
  const argv: QemuArguments = {
    image: IMAGE,
    host: HOST,
    places: qemuPlaces('/one', '/run'),
    accelerator: 'tcg',
    memoryGiB: 2,
    memoryCeilingGiB: 4,
    cpus: 2,
    cpuCeiling: 2,
    sshPort: 2222,
  };
  const facts: FrozenFacts = {
    image: IMAGE.digest,
    qemu: 'QEMU emulator version 7.2.0',
    processor: '',
    shape: machineShape(argv),
    dataBytes: 1,
    keys: ['a', 'b'],
  };

  test('is the same machine in every place', () => {
    const elsewhere = {
      ...argv,
      places: qemuPlaces('/two', '/tmp'),
      sshPort: 1,
      image: { ...IMAGE, directory: '/three' },
    };
    expect(machineShape(elsewhere)).toEqual(machineShape(argv));
  });

  test.each<[string, Partial<FrozenFacts>]>([
    ['image', { image: 'sha256:1' }],
    ['QEMU', { qemu: 'QEMU emulator version 7.2.1' }],
    ['processor', { processor: 'another' }],
    ['size of the data disk', { dataBytes: 2 }],
    ['keys', { keys: ['a', 'c'] }],
    ['accelerator', { shape: machineShape({ ...argv, accelerator: 'kvm' }) }],
    ['memory', { shape: machineShape({ ...argv, memoryGiB: 3 }) }],
    ['room for memory', { shape: machineShape({ ...argv, memoryCeilingGiB: 5 }) }],
    ['processors', { shape: machineShape({ ...argv, cpus: 1 }) }],
  ])('is not a machine with another %s', (_what, other) => {
    expect(frozenKey({ ...facts, ...other })).not.toBe(frozenKey(facts));
  });
});
