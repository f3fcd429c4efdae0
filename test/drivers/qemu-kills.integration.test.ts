import { cpSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { MachineStep } from '../../src/drivers/driver.ts';
import type { GuestImage } from '../../src/drivers/guest-images/image.ts';
import { UNCONFINED } from '../../src/drivers/machines/qemu/confine/confinement.ts';
import type { Connection } from '../../src/drivers/machines/qemu/guest.ts';
import { hostPortFilter } from '../../src/drivers/machines/qemu/host-ports/filter.ts';
import { type QemuMachineParts, qemuMachine } from '../../src/drivers/machines/qemu/machine.ts';
import { type Monitor, qemuMonitor } from '../../src/drivers/machines/qemu/monitor.ts';
import { guestPause } from '../../src/drivers/machines/qemu/pause/guest-pause.ts';
import { qemuPlaces } from '../../src/drivers/machines/qemu/places.ts';
import { readQemuRecord } from '../../src/drivers/machines/qemu/record.ts';
import type { Run } from '../../src/drivers/shell.ts';
import { RdError } from '../../src/errors.ts';
import type { JsonValue } from '../../src/json.ts';
import { steadyClock } from '../../src/os/clock.ts';
import { stopDaemon } from '../../src/os/daemon.ts';
import { processTable, readProcesses, signalProcess } from '../../src/os/process-table.ts';
import { readRecord } from '../../src/os/record.ts';
import { MACHINE } from '../contract/driver-suite.ts';
import { diskHeader } from '../helpers/disk-header.ts';
import { rounds } from '../helpers/rounds.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { GIB, HOST, IMAGE } from './scripted-qemu.ts';

const signal = new AbortController().signal;
const PROGRAM = resolve('test/helpers/qemu-program.cjs');
/** Machines at the same time. */
const AT_ONCE = 4;
const LIMIT_MS = 300_000;

/** What its QEMU would report about such a machine. */
const FACTS: Readonly<Record<string, JsonValue>> = {
  'query-balloon': { actual: MACHINE.memoryGiB * GIB },
  'query-memory-size-summary': { 'base-memory': MACHINE.memoryGiB * GIB },
  'query-memory-devices': [],
  'query-hotpluggable-cpus': Array.from({ length: MACHINE.cpus }, () => ({ 'qom-path': '/machine/cpu' })),
  'query-block': [{ device: 'data', inserted: { image: { 'virtual-size': MACHINE.diskBytes } } }],
};

/** Everything a service does outside its own memory, until it is killed: from then on nothing returns, and none of its work continues. */
interface Life {
  calls: string[];
  /** Everything that leaves the service passes through here first. */
  call<T>(what: string, work: () => Promise<T>): Promise<T>;
  killed: Promise<'killed'>;
}

/** @param most calls it may make. */
function life(most = Number.POSITIVE_INFINITY): Life {
  const calls: string[] = [];
  let die: (how: 'killed') => void = () => undefined;
  const killed = new Promise<'killed'>((resolve) => {
    die = resolve;
  });
  return {
    calls,
    killed,
    call(what, work) {
      if (calls.length >= most) {
        die('killed');
        return new Promise(() => undefined);
      }
      calls.push(what);
      return work();
    },
  };
}

/**
 * A living service whose QEMU is killed before the call `at` in `known`: identified by what it is, because the number of sleeps
 * before it varies. `killed` is called before the first QEMU. `spare`: from then on none is killed.
 */
function lifeWithoutQemu(at: number, known: readonly string[], directory: string, killed: string[]) {
  const whole = life();
  let spared = false;
  let killing: Promise<number> | undefined;
  const point = known[at];
  const count = (calls: readonly string[]) => calls.filter((call) => call === point).length;
  const before = count(known.slice(0, at));
  const call: Life['call'] = async (what, work) => {
    const here = !spared && what === point && count(whole.calls) === before;
    if (here) {
      killing = killQemu(directory);
      if ((await killing) > 0) killed.push(what);
    }
    return whole.call(what, work);
  };
  const spare = async () => {
    spared = true;
    // The operation may have ended beside the call that kills, and what starts next must not be hit.
    await killing;
  };
  return { life: { ...whole, call }, spare };
}

const FAST = { timeout: 10_000, interval: 5 };

/** Whether the QEMU that was started last lives. */
async function isRecorded(directory: string): Promise<boolean> {
  const record = await readRecord(qemuPlaces(directory, join(directory, 'runtime')).qemuRecord);
  if (record === undefined || record === 'damaged' || typeof record.pid !== 'number') return false;
  return processTable.isAlive({
    pid: record.pid,
    ...(typeof record.started === 'string' ? { started: record.started } : {}),
  });
}

/** As the kernel does when it is out of memory. */
async function killQemu(directory: string): Promise<number> {
  // A process that was just started has no arguments for a moment.
  await expect
    .poll(async () => (await qemusOf(directory)).length > 0 || !(await isRecorded(directory)), FAST)
    .toBe(true);
  const found = await qemusOf(directory);
  // One that is about to exit by itself cannot be killed.
  const killed = await Promise.all(found.map((qemu) => signalProcess(qemu, 'SIGKILL')));
  // Its arguments are gone before it is, and a dying one neither answers nor counts as ended.
  const alive = () => Promise.all(found.map((qemu) => processTable.isAlive(qemu)));
  await expect.poll(alive, FAST).not.toContain(true);
  return killed.filter(Boolean).length;
}

/** The machine of a directory as one service has it. Its QEMU is a stand-in; its disks are text files. */
function machineOf(directory: string, { call }: Life = life(), changes: Partial<QemuMachineParts> = {}) {
  const places = qemuPlaces(directory, join(directory, 'runtime'));
  // Whether the guest has its data disk: a boot mounts it, a freeze returns it, and waking a guest mounts it.
  const mounted = join(directory, 'mounted');
  const programs = join(directory, 'programs');
  mkdirSync(programs, { recursive: true });
  if (!existsSync(join(programs, 'qemu-system-x86_64'))) symlinkSync(PROGRAM, join(programs, 'qemu-system-x86_64'));
  const run: Run = ([program = '', ...args]) =>
    call(`${program} ${args[0]}`, async () => {
      const said = (stdout = '') => ({ exitCode: 0, stdout, stderr: '' });
      const last = args.at(-1) ?? '';
      if (program === 'qemu-system-x86_64') return said('QEMU emulator version 7.2.0\n');
      if (program === 'ssh-keygen' && args.includes('-y')) return said(readFileSync(`${last}.pub`, 'utf8'));
      if (program === 'ssh-keygen') {
        writeFileSync(last, 'secret');
        writeFileSync(`${last}.pub`, `ssh-ed25519 ${Math.random()} x\n`);
      } else if (args[0] === 'info') {
        const backing = join(IMAGE.directory, 'disk.qcow2');
        return said(JSON.stringify({ 'virtual-size': MACHINE.diskBytes, 'backing-filename': backing }));
      } else if (args[0] === 'create') {
        writeFileSync(
          args.findLast((word) => word.startsWith(directory) && /\.qcow2(?:\.new)?$/.test(word)) ?? '',
          diskHeader({ bytes: MACHINE.diskBytes }),
        );
      }
      return said();
    });
  const qemu = qemuMonitor(places.monitor);
  const guest: Connection = {
    run: (argv, { input = '' } = {}) =>
      call(`guest ${argv[0]}`, async () => {
        if ((await qemusOf(directory)).length === 0) throw new RdError('ERR_DRIVER_FAILED', 'ssh: the guest is gone');
        const text = `${argv.join(' ')} ${typeof input === 'string' ? input : ''}`;
        if (text.includes('/proc/mounts')) writeFileSync(mounted, 'no');
        if (text.includes('urandom')) writeFileSync(mounted, 'yes');
        if (argv[0] === 'date') return { exitCode: 0, stdout: `${Math.floor(Date.now() / 1000)}\n`, stderr: '' };
        return { exitCode: text.includes('MemTotal') ? 1 : 0, stdout: '', stderr: '' };
      }),
    async *stream() {},
    converse: () => Promise.reject(new RdError('ERR_DRIVER_FAILED', 'nothing converses')),
    forward: async () => '',
    connect: (_limit, isAlive) =>
      call('connect', async () => {
        // The guest belongs to a QEMU.
        while ((await qemu.status(signal)) !== 'running') {
          if (!(await isAlive())) throw new RdError('ERR_DRIVER_FAILED', 'QEMU exited while the guest was starting');
          await steadyClock.sleep(20);
        }
        if (!readFileSync(places.qemuRecord, 'utf8').includes('-incoming')) writeFileSync(mounted, 'yes');
      }),
    isConnected: async () => (await qemusOf(directory)).length > 0,
    sessions: () => 0,
    onReconnect: () => undefined,
    close: () => call('close', async () => undefined),
  };
  const monitor: Monitor = {
    status: (abort) => call('status', () => qemu.status(abort)),
    use: (work, abort) =>
      qemu.use(
        (qmp) =>
          work({
            ...qmp,
            execute: (word, args, rest) => call(word, async () => FACTS[word] ?? qmp.execute(word, args, rest)),
          }),
        abort,
      ),
  };
  const nothing = (what: string) => () => call(what, async () => undefined);
  const parts: QemuMachineParts = {
    places,
    logFile: join(directory, 'qemu.log'),
    images: {
      list: () => call('images', async () => [IMAGE]),
      selected: async () => undefined,
      verify: nothing('verify'),
      verifyDisk: nothing('disk of the image'),
    },
    host: HOST,
    run,
    environment: {
      PATH: `${programs}:${dirname(process.execPath)}:${process.env.PATH}`,
      SCRIPTED_ORDERS: join(directory, 'orders'),
    },
    guest,
    monitor,
    ports: { watch: () => undefined, switchTo: nothing('ports'), forget: nothing('no ports') },
    hostPorts: hostPortFilter({ guest, hostSockets: async () => undefined, published: () => [], log: () => undefined }),
    confine: UNCONFINED,
    mounts: {
      opened: async () => [],
      observe: async () => ({ shared: { missing: 'it is not wanted', mounts: [] }, asked: {} }),
      begin: () => call('home', async () => []),
      mount: nothing('mount'),
      change: nothing('change'),
      unmount: nothing('unmount'),
      connections: async () => [],
      blocksMigration: nothing('blocks'),
      end: nothing('end of home'),
    },
    accelerator: () => call('accelerator', async () => ({ accelerator: 'tcg' as const, emulatedBecause: 'no KVM' })),
    freezes: true,
    pause: () => undefined,
    clock: { now: steadyClock.now, sleep: (ms, abort) => call('sleep', () => steadyClock.sleep(ms, abort)) },
    log: () => undefined,
    ...changes,
  };
  const machine = qemuMachine(parts);
  const pauses = guestPause({
    ...parts,
    ports: { published: () => [] },
    lines: { held: () => 0 },
    port: async () => 1,
    isUp: machine.isUp,
    emulatedStart: machine.emulatedStart,
  });
  /** As a service begins: it wakes what an earlier one left paused. */
  const perform = async (step: MachineStep) => {
    await pauses.wakeAbandoned(signal).catch(() => undefined);
    await machine.perform(step, signal);
  };
  return {
    places,
    mounted,
    machine,
    start: () => perform({ do: 'start', spec: MACHINE }),
    stop: () => perform({ do: 'stop' }),
    pause: () => pauses.pause(signal),
    wake: () => pauses.wake(signal),
    adjust: () =>
      machine.perform({ do: 'adjust', spec: { ...MACHINE, sshPortForwarder: !MACHINE.sshPortForwarder } }, signal),
  };
}

const DATA = diskHeader({ bytes: MACHINE.diskBytes });

/** A directory with data, which no operation may change; what runs in it is ended. */
function place(): string {
  const directory = temporaryDirectory();
  const { data, qemuRecord } = qemuPlaces(directory, join(directory, 'runtime'));
  writeFileSync(data, DATA);
  onTestFinished(async () => void (await stopDaemon(qemuRecord, { graceMs: 1_000, clock: steadyClock })));
  return directory;
}

async function qemusOf(directory: string) {
  const { monitor } = qemuPlaces(directory, join(directory, 'runtime'));
  return (await readProcesses()).filter(({ argv }) => argv.some((word) => word.includes(monitor)));
}

/** What must hold for a machine after a kill, once a service (another one by default) has done its work. */
async function expectWhole(
  directory: string,
  wanted: 'on' | 'off',
  after: string,
  { machine, places, mounted, start, stop } = machineOf(directory),
): Promise<void> {
  const before = statSync(places.data).ino;
  await (wanted === 'on' ? start() : stop());
  const found = await machine.observe(signal);
  if (wanted === 'on')
    expect(found, `${after}: ${JSON.stringify(found)}`).toMatchObject({ state: 'on', spec: MACHINE });
  else expect(['off', 'absent'], after).toContain(found.state);
  expect(await qemusOf(directory), after).toHaveLength(wanted === 'on' ? 1 : 0);
  expect(readFileSync(places.data), after).toEqual(DATA);
  expect(statSync(places.data).ino, after).toBe(before);
  if (wanted === 'off') return;
  expect(readFileSync(mounted, 'utf8'), after).toBe('yes');
  await stop();
}

type Work = 'start' | 'stop' | 'adjust' | 'pause' | 'wake';
type Kill = (work: Work, at: number, directory: string, calls: readonly string[]) => Promise<void>;

/** Whole again: every second time by a service that wants it off. At full length also the other way round. */
async function expectBack(at: number, directory: string, after: string, scene = machineOf(directory)): Promise<void> {
  await expectWhole(directory, at % 2 === 0 ? 'on' : 'off', after, scene);
  if (rounds(0, 1) === 1) await expectWhole(directory, at % 2 === 0 ? 'off' : 'on', after);
}

const killService: Kill = async (work, at, directory, calls) => {
  const short = life(at);
  const done = machineOf(directory, short)
    [work]()
    .then(() => 'done');
  const how = await Promise.race([short.killed, done]);
  await expectBack(at, directory, `${work}, ${how} before call ${at} (${calls[at]})`);
};

/** The service lives on: its operation succeeds or fails with a proper error. */
const killQemuOf =
  (killed: string[]): Kill =>
  async (work, at, directory, calls) => {
    const { life: victim, spare } = lifeWithoutQemu(at, calls, directory, killed);
    const scene = machineOf(directory, victim);
    const how = await scene[work]().then(
      () => 'done',
      (error: unknown) => error,
    );
    await spare();
    const after = `${work}, QEMU killed before call ${at} (${calls[at]}): ${String(how)}`;
    if (how !== 'done') expect(how, after).toBeInstanceOf(RdError);
    await expectBack(at, directory, after, scene);
  };

/** Kills at every call that the operation makes, or at one of each kind in a short search, and checks the result. */
async function killEverywhere(
  work: Work,
  prepare: (directory: string) => Promise<void>,
  kill: Kill = killService,
): Promise<string[]> {
  const whole = life();
  const first = place();
  await prepare(first);
  await machineOf(first, whole)[work]();
  const { calls } = whole;
  await machineOf(first).stop();
  const most = rounds(1, Number.POSITIVE_INFINITY);
  const points = calls.flatMap((call, index) =>
    calls.slice(0, index).filter((earlier) => earlier === call).length < most ? [index] : [],
  );
  const worker = async () => {
    for (let at = points.shift(); at !== undefined; at = points.shift()) {
      const directory = place();
      await prepare(directory);
      await kill(work, at, directory, calls);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return calls;
}

describe('a service killed at any call to the outside', () => {
  test(
    'while it boots the machine',
    async () => {
      const calls = await killEverywhere('start', async () => undefined);
      expect(calls).toEqual(expect.arrayContaining(['images', 'home', 'qemu-img check', 'connect', 'mount']));
    },
    LIMIT_MS,
  );

  test(
    'while it freezes the machine',
    async () => {
      const calls = await killEverywhere('stop', (directory) => machineOf(directory).start());
      expect(calls).toEqual(expect.arrayContaining(['unmount', 'stop', 'migrate', 'query-migrate', 'quit', 'close']));
    },
    LIMIT_MS,
  );

  test(
    'while it resumes the machine',
    async () => {
      const frozen = place();
      const { start, stop } = machineOf(frozen);
      await start();
      await stop();
      const calls = await killEverywhere('start', async (directory) => cpSync(frozen, directory, { recursive: true }));
      expect(calls).toEqual(expect.arrayContaining(['cont', 'connect', 'guest sh']));
    },
    LIMIT_MS,
  );
});

describe('a service killed at any call to the outside, of a machine that nobody uses,', () => {
  test.each([
    ['pauses', 'pause', ['status', 'stop']],
    ['wakes', 'wake', ['cont', 'guest date']],
  ] as const)(
    'while it %s it, leaves one that the next service wakes',
    async (_, work, some) => {
      const calls = await killEverywhere(work, async (directory) => {
        const { start, pause } = machineOf(directory);
        await start();
        if (work === 'wake') await pause();
      });
      expect(calls).toEqual(expect.arrayContaining([...some]));
    },
    LIMIT_MS,
  );
});

describe('a QEMU killed at any call of the service', () => {
  const frozen = async () => {
    const directory = place();
    const { start, stop } = machineOf(directory);
    await start();
    await stop();
    return directory;
  };
  const nothing = async () => async () => undefined;
  const running = async () => async (directory: string) => machineOf(directory).start();
  const paused = async () => async (directory: string) => {
    const { start, pause } = machineOf(directory);
    await start();
    await pause();
  };
  const copies = async () => {
    const original = await frozen();
    return async (directory: string) => cpSync(original, directory, { recursive: true });
  };
  test.each([
    ['boots', 'start', nothing, ['connect', 'guest sh', 'mount']],
    ['is frozen', 'stop', running, ['unmount', 'stop', 'migrate', 'query-migrate', 'quit']],
    ['is resumed', 'start', copies, ['cont', 'connect', 'guest sh']],
    ['is adjusted', 'adjust', running, ['status', 'guest date', 'ports']],
    ['is paused', 'pause', running, ['status', 'stop']],
    ['is woken', 'wake', paused, ['cont', 'guest date']],
  ] as const)(
    'while it %s',
    async (_phase, work, prepare, points) => {
      const killed: string[] = [];
      await killEverywhere(work, await prepare(), killQemuOf(killed));
      expect(killed).toEqual(expect.arrayContaining([...points]));
    },
    LIMIT_MS,
  );
});

/** A QEMU that prints this and exits. */
function refusing(directory: string, words: string): { environment: Record<string, string> } {
  const programs = join(directory, 'refusing');
  mkdirSync(programs);
  writeFileSync(join(programs, 'qemu-system-x86_64'), `#!/bin/sh\necho '${words}' >&2\nexit 1\n`, { mode: 0o755 });
  return { environment: { PATH: `${programs}:${process.env.PATH}` } };
}

describe('a failed start', () => {
  const TAKEN = 'qemu-system-x86_64: -netdev user,id=net0: Could not set up host forwarding rule';

  test('because of a port in use is reported in the words of QEMU, and the next start takes another port', async () => {
    const directory = place();
    const failing = machineOf(directory, life(), refusing(directory, TAKEN));
    await expect(failing.start()).rejects.toMatchObject({
      code: 'ERR_DRIVER_FAILED',
      message: `QEMU ended: ${TAKEN}`,
      advice: expect.stringContaining('qemu.log'),
    });
    const before = await readQemuRecord(failing.places.record);
    await expectWhole(directory, 'on', 'the port is taken');
    expect(await readQemuRecord(failing.places.record)).not.toMatchObject({ sshPort: portOf(before) });
  });

  test('because of a damaged image names its file, and the data stays', async () => {
    const directory = place();
    const damaged = new RdError('ERR_DRIVER_TERMINAL', 'vmlinuz of the image is damaged');
    const { start } = machineOf(directory, life(), {
      ...refusing(directory, 'qemu-system-x86_64: could not load kernel'),
      images: {
        list: async () => [IMAGE],
        selected: async () => undefined,
        verify: () => Promise.reject(damaged),
        verifyDisk: async () => undefined,
      },
    });
    await expect(start()).rejects.toBe(damaged);
    await expectWhole(directory, 'on', 'the image is damaged');
  });
});

function portOf(record: Awaited<ReturnType<typeof readQemuRecord>>): number {
  return record === undefined || record === 'damaged' ? 0 : record.sshPort;
}

test(
  'a service that is killed while it switches images never leaves a root disk of the first image',
  async () => {
    const other: GuestImage = { ...IMAGE, digest: 'sha256:1', directory: '/images/sha256-1' };
    const images = (image: GuestImage) => ({
      images: {
        list: async () => [image],
        selected: async () => undefined,
        verify: async () => undefined,
        verifyDisk: async () => undefined,
      },
    });
    /** The text of the disk is the image it is based on. */
    const run: Run = async ([program = '', ...args]) => {
      const last = args.at(-1) ?? '';
      const backing = args[args.indexOf('-b') + 1];
      let stdout = '';
      if (program === 'ssh-keygen' && args.includes('-y')) stdout = readFileSync(`${last}.pub`, 'utf8');
      else if (program === 'ssh-keygen')
        for (const end of ['', '.pub']) writeFileSync(`${last}${end}`, 'ssh-ed25519 x\n');
      else if (args[0] === 'info') {
        stdout = JSON.stringify({
          'virtual-size': MACHINE.diskBytes,
          'backing-filename': last.endsWith('disk.qcow2') ? readFileSync(last, 'utf8').split(' ').at(-1) : undefined,
        });
      } else if (args[0] === 'create') writeFileSync(last, `made of ${backing}`);
      else if (args[0] === 'rebase') writeFileSync(last, `${readFileSync(last, 'utf8')} and then ${backing}`);
      return { exitCode: 0, stdout, stderr: '' };
    };
    const count = life();
    for (let at = 0; at === 0 || at < count.calls.length; at += 1) {
      const directory = place();
      const first = machineOf(directory, life(), { ...images(IMAGE), run, freezes: false });
      await first.start();
      await first.stop();
      expect(readFileSync(first.places.disk, 'utf8')).toBe('made of /images/sha256-0/disk.qcow2');
      const short = at === 0 ? count : life(at);
      const counted: Run = (argv, options) => short.call(`${argv[0]} ${argv[1]}`, () => run(argv, options));
      const killed = machineOf(directory, short, { ...images(other), run: counted, freezes: false });
      await Promise.race([short.killed, killed.start()]);
      const next = machineOf(directory, life(), { ...images(other), run, freezes: false });
      await next.start();
      expect(readFileSync(next.places.disk, 'utf8'), `killed before call ${at} (${count.calls[at]})`).toBe(
        'made of /images/sha256-1/disk.qcow2',
      );
      await next.stop();
    }
    expect(count.calls).toContain('qemu-img create');
  },
  LIMIT_MS,
);

describe('a truncated file of a machine that is off', () => {
  const NAMES = ['machine.json', 'qemu.pid.json', 'ssh.pid.json', 'home.json', 'hostname', 'known-hosts', 'disk.qcow2'];
  test.each([...NAMES, 'frozen/frozen.json'])('%s', async (name) => {
    const directory = place();
    const { start, stop } = machineOf(directory);
    await start();
    await stop();
    for (const [index, part] of [0, 0.5].entries()) {
      const path = join(directory, name);
      const text = existsSync(path) ? readFileSync(path) : Buffer.from('{"argv": ["a"]}');
      writeFileSync(path, text.subarray(0, Math.floor(text.length * part)));
      const found = await machineOf(directory).machine.observe(signal);
      expect(found.state).not.toBe('on');
      await expectWhole(directory, 'on', `${name} is cut off (${index})`);
    }
  });
});

test('a QEMU whose record is truncated while it runs is ended by the next start, or reported', async () => {
  const directory = place();
  const { places, start, machine } = machineOf(directory);
  await start();
  writeFileSync(places.record, '{"power": "on", ');
  expect(await machine.observe(signal)).toMatchObject({ state: 'broken', reason: 'RecordDamaged' });
  await expectWhole(directory, 'on', 'the record is cut off');
});
