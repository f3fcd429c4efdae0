import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EngineDriver, EngineStatus } from '../../src/drivers/driver.ts';
import { qemuArguments } from '../../src/drivers/machines/qemu/arguments.ts';
import { engineInGuest, type GuestState } from '../../src/drivers/machines/qemu/engine-in-guest.ts';
import { LONGEST_SOCKET, makeRuntime, qemuPlaces } from '../../src/drivers/machines/qemu/places.ts';
import { type QemuRecord, readQemuRecord, writeQemuRecord } from '../../src/drivers/machines/qemu/record.ts';
import {
  CLEAR_SCRIPT,
  END,
  LEFTOVERS_SCRIPT,
  LINK_SCRIPT,
  MISSING,
  PLACE_SCRIPT,
} from '../../src/drivers/machines/qemu/scripts.ts';
import { socketName } from '../../src/drivers/machines/qemu/shell.ts';
import { guestAccess, sshOptions } from '../../src/drivers/machines/qemu/ssh.ts';
import { qemuVerdict } from '../../src/drivers/machines/qemu/support.ts';
import { RdError } from '../../src/errors.ts';
import { shellLine } from '../../src/os/program.ts';
import { runtimeDirectory } from '../../src/os/user-directories.ts';
import { MACHINE } from '../contract/driver-suite.ts';
import { runs } from '../helpers/rounds.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { HOST } from './scripted-qemu.ts';

const FILE = { bytes: 1, sha256: '0'.repeat(64) };
const IMAGE = {
  directory: '/images/sha256-1',
  files: {
    kernel: { ...FILE, name: 'vmlinuz' },
    initrd: { ...FILE, name: 'initrd' },
    disk: { ...FILE, name: 'disk.qcow2' },
  },
};
const never = new AbortController().signal;

describe('arguments for the shell of the guest', () => {
  test('arrive unchanged, whatever they contain', () => {
    const words = fc.array(
      fc.string({ unit: 'binary' }).map((word) => word.replaceAll('\0', '')),
      { maxLength: 5 },
    );
    fc.assert(
      fc.property(words, (argv) => {
        const line = shellLine(['printf', '%s\\0', ...argv]);
        const out = execFileSync('sh', ['-c', line], { encoding: 'utf8' });
        expect(out).toBe(argv.length === 0 ? '\0' : argv.map((word) => `${word}\0`).join(''));
      }),
      { numRuns: runs(60) },
    );
  });

  test('cannot start anything', () => {
    const hostile = ['$(id)', '`id`', "'; id; '", '"', '\\', '*', '~', '-n', '', 'a\nb', '&& id', '$HOME', '#'];
    const out = execFileSync('sh', ['-c', shellLine(['printf', '[%s]', ...hostile])], { encoding: 'utf8' });
    expect(out).toBe(hostile.map((word) => `[${word}]`).join(''));
  });
});

describe('the command line of QEMU', () => {
  const input = {
    image: IMAGE,
    host: HOST,
    accelerator: 'tcg',
    memoryGiB: 2,
    memoryCeilingGiB: 2,
    cpus: 2,
    cpuCeiling: 2,
  } as const;

  test.each([
    ['', HOST, 'tcg'],
    ['-arm64', { platform: 'linux', architecture: 'aarch64' }, 'tcg'],
    ['-arm64-kvm', { platform: 'linux', architecture: 'aarch64' }, 'kvm'],
    ['-macos', { platform: 'darwin', architecture: 'aarch64' }, 'hvf'],
  ] as const)('looks like this%s', async (name, host, accelerator) => {
    const places = qemuPlaces('/home/u/d', '/run/user/1/rdctl');
    const argv = qemuArguments({ ...input, host, accelerator, places, sshPort: 2222 });
    await expect(`${argv.join('\n')}\n`).toMatchFileSnapshot(`../golden/qemu-arguments${name}.txt`);
  });

  test('doubles commas in paths and leaves blanks alone', () => {
    const places = qemuPlaces('/home/a,b c', '/run/user/1/rdctl');
    const argv = qemuArguments({ ...input, places, sshPort: 1 });
    expect(argv).toContain('file:/home/a,b c/serial.log');
    expect(argv).toContain('unix:/home/a,,b c/run/qmp,server=on,wait=off');
    expect(argv.find((word) => word.includes('node-name=data0'))).toMatch(
      /^file=json:\{.*"filename":"\/home\/a,,b c\/data\.qcow2"\},,"backing":null\},if=none,/,
    );
  });

  test('leaves room to grow only where a maximum is higher', () => {
    const places = qemuPlaces('/d', '/r');
    const argv = qemuArguments({
      ...input,
      places,
      sshPort: 1,
      memoryCeilingGiB: 8,
      cpuCeiling: 4,
      accelerator: 'kvm',
    });
    expect(argv).toEqual(expect.arrayContaining(['2G,slots=8,maxmem=8G', '2,maxcpus=4', 'kvm', 'host']));
  });
});

describe('places', () => {
  test('are inside the directory unless that is too long for a socket', () => {
    expect(qemuPlaces('/home/u/d', '/run/user/1/rdctl')).toMatchObject({ run: '/home/u/d/run', runElsewhere: false });
    const long = qemuPlaces(`/home/${'x'.repeat(80)}`, '/run/user/1/rdctl');
    expect(long).toMatchObject({ runElsewhere: true, run: `/run/user/1/rdctl/${long.id}` });
  });

  test('of sockets are short enough for macOS', () => {
    const home = '/Users/alice/Library/Application Support/rdctl/state/drivers/qemu';
    const { run, runElsewhere } = qemuPlaces(
      home,
      runtimeDirectory(501, () => true, 'darwin'),
      'darwin',
    );
    expect({ run: run.slice(0, 15), runElsewhere }).toEqual({ run: '/tmp/rdctl-501/', runElsewhere: true });
    const suffix = '.0123456789abcdef';
    expect(join(run, LONGEST_SOCKET).length + suffix.length).toBeLessThan(104);
  });

  test('of sockets do not depend on the environment', () => {
    expect(runtimeDirectory(0)).toBe('/run/rdctl');
    expect(runtimeDirectory(7, () => true)).toBe('/run/user/7/rdctl');
    expect(runtimeDirectory(7, () => false)).toMatch(/rdctl-7$/);
  });

  test('that others can write to are refused', async () => {
    const run = join(temporaryDirectory(), 'run');
    await makeRuntime({ run, runElsewhere: false });
    await makeRuntime({ run, runElsewhere: false });
    chmodSync(run, 0o777);
    await expect(makeRuntime({ run, runElsewhere: false })).rejects.toMatchObject({ code: 'ERR_DRIVER_TERMINAL' });
    const link = join(temporaryDirectory(), 'link');
    symlinkSync(temporaryDirectory(), link);
    await expect(makeRuntime({ run: link, runElsewhere: false })).rejects.toMatchObject({
      code: 'ERR_DRIVER_TERMINAL',
    });
  });

  test('of sockets with the same base name differ', () => {
    const paths = [
      '/run/rdctl/moby/docker.sock',
      '/run/rdctl/moby/c/containerd.sock',
      '/run/rdctl/containerd/containerd.sock',
      '/run/other/containerd.sock',
      `/run/rdctl/${'x'.repeat(90)}.sock`,
      '/run/rdctl/../etc/x',
    ];
    const names = paths.map(socketName);
    expect(new Set(names).size).toBe(paths.length);
    for (const name of names) expect(name).toMatch(/^\w[\w.-]{0,25}$/);
    expect(names[0]).toBe('moby-docker.sock');
  });
});

describe('ssh', () => {
  test("ignores the user's configuration and knows one key", () => {
    const options = sshOptions({ key: '/a b/key%', knownHosts: '/k' }, 22);
    expect(options.slice(0, 2)).toEqual(['-F', 'none']);
    expect(options).toEqual(expect.arrayContaining(['StrictHostKeyChecking=yes', 'IdentityAgent=none', 'Port=22']));
    expect(options).toContain('IdentityFile="/a b/key%%"');
  });

  test('takes a user in through the existing connection, without key and port', () => {
    const { ssh, target, before } = guestAccess({ control: '/r/ssh' }, ['env', 'PATH=/bin']);
    expect({ target, before }).toEqual({ target: '127.0.0.1', before: ['env', 'PATH=/bin'] });
    expect(ssh).toEqual(expect.arrayContaining(['-S', '/r/ssh', 'ProxyCommand=false', 'ControlMaster=no']));
    expect(ssh.join(' ')).not.toMatch(/IdentityFile|Port=/);
  });
});

describe('the machine record', () => {
  const record: QemuRecord = {
    power: 'on',
    spec: MACHINE,
    image: 'sha256:1',
    sshPort: 2222,
    accelerator: 'tcg',
    emulatedBecause: 'there is no KVM',
    booted: true,
  };

  test('is read as it was written', async () => {
    const file = join(temporaryDirectory(), 'machine.json');
    expect(await readQemuRecord(file)).toBeUndefined();
    await writeQemuRecord(file, record);
    expect(await readQemuRecord(file)).toEqual(record);
  });

  test.each(['', 'null', '[]', '{}', '{"power":"on"}', JSON.stringify({ ...record, accelerator: 'whpx' }), '{"power'])(
    'is damaged when it is %s',
    async (text) => {
      const file = join(temporaryDirectory(), 'machine.json');
      writeFileSync(file, text);
      expect(await readQemuRecord(file)).toBe('damaged');
    },
  );
});

describe('the probe', () => {
  const facts = {
    platform: 'linux',
    arch: 'x64',
    root: false,
    missingPrograms: [],
    missingBuilders: [],
    images: ['x86_64'],
  } as const;
  const mac = { ...facts, platform: 'darwin', arch: 'arm64', images: ['aarch64'] } as const;

  test.each([
    ['Linux on x86_64', facts, { usable: true, detail: 'QEMU and a guest image' }],
    ['Linux on arm64', { ...facts, arch: 'arm64', images: ['x86_64', 'aarch64'] }, { usable: true }],
    ['macOS on arm64', mac, { usable: true }],
    [
      'a computer without images',
      { ...facts, images: [] },
      {
        usable: false,
        reason: 'there is no guest image',
        fix: 'rdctl image build',
        copyable: true,
      },
    ],
    [
      'a Mac with images of another architecture',
      { ...mac, images: ['x86_64', 'x86_64'] },
      {
        usable: false,
        reason: 'there is no guest image for aarch64, only for x86_64',
        fix: 'rdctl image fetch URL --sha256 SUM',
      },
    ],
    [
      'a computer without programs',
      { ...facts, missingPrograms: ['ssh', 'qemu-img'], missingBuilders: ['mmdebstrap'], images: [] },
      {
        usable: false,
        reason: 'not installed: ssh, qemu-img',
        fix: 'sudo apt-get update && sudo apt-get install --no-install-recommends qemu-system-x86 qemu-utils openssh-client openssh-sftp-server bubblewrap mmdebstrap uidmap e2fsprogs ca-certificates && rdctl image build',
        copyable: true,
      },
    ],
    [
      'root on a computer without what builds images',
      { ...facts, root: true, missingBuilders: ['mmdebstrap'], images: [] },
      { fix: expect.stringMatching(/^apt-get update && apt-get install \S+ mmdebstrap .* && rdctl image build$/) },
    ],
    [
      'a computer that has an image and no QEMU',
      { ...facts, missingPrograms: ['qemu-img'], missingBuilders: ['mmdebstrap'] },
      { fix: expect.stringMatching(/ openssh-sftp-server bubblewrap$/) },
    ],
    [
      'arm64 without programs',
      { ...facts, arch: 'arm64', missingPrograms: ['qemu-system-aarch64'] },
      {
        usable: false,
        reason: 'not installed: qemu-system-aarch64',
        fix: expect.stringContaining(' qemu-system-arm '),
      },
    ],
    [
      'a Mac without QEMU',
      { ...mac, missingPrograms: ['qemu-img'] },
      { usable: false, reason: 'not installed: qemu-img', fix: 'brew install qemu' },
    ],
    [
      'Windows',
      { ...facts, platform: 'win32' },
      {
        usable: false,
        reason: 'needs Linux or macOS on x86_64 or arm64, and this is Windows on x64',
        fix: 'run rdctl on Linux or macOS',
      },
    ],
    ['another processor', { ...facts, arch: 'riscv64' }, { usable: false, reason: expect.stringContaining('riscv64') }],
  ] as const)('of %s says whether it is usable, and what to do', (_, given, verdict) => {
    expect(qemuVerdict(given)).toMatchObject(verdict);
  });
});

describe('scripts for the guest', () => {
  const sh = (script: string, words: string[], input = '') =>
    execFileSync('sh', ['-c', script, 'script', ...words], { input, encoding: 'utf8', stdio: 'pipe' });

  test('create private files and directories, whatever their names and contents', () => {
    const root = temporaryDirectory();
    const [old, directory] = [join(root, 'old'), join(root, 'a', 'b')];
    mkdirSync(join(old, 'in it'), { recursive: true });
    const first = join(root, "a b'$(id)", '-n');
    const second = join(root, 'second');
    writeFileSync(second, 'before', { mode: 0o644 });
    const texts = ['text with ü\nwithout an end', '', 'third\n'];
    const words = [
      ...['absent', old, 'absent', join(root, 'never there'), 'directory', directory],
      ...[first, join(root, 'empty'), second].flatMap((path, index) => [
        'file',
        path,
        String(Buffer.byteLength(texts[index] ?? '')),
      ]),
    ];
    const whole = `${texts.join('')}${END}\n`;
    // A connection that breaks, or a service that is killed.
    for (const length of [0, 5, texts.join('').length, whole.length - 2]) {
      expect(() => sh(PLACE_SCRIPT, words, whole.slice(0, length))).toThrow('broke off');
      expect(readFileSync(second, 'utf8')).toBe('before');
      expect(existsSync(first)).toBe(false);
    }
    sh(PLACE_SCRIPT, words, whole);
    expect(existsSync(old)).toBe(false);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    expect([first, join(root, 'empty'), second].map((path) => readFileSync(path, 'utf8'))).toEqual(texts);
    for (const path of [first, second]) expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(existsSync(`${first}.new`)).toBe(false);
  });

  describe('start programs', () => {
    const ODD = ['true', '-x', "a b'$(id)", '', 'two\nlines', '--', 'program'];

    /** A service manager that records its calls, and does for a unit what the test says. */
    function manager(units: Record<string, string> = {}) {
      const root = temporaryDirectory();
      const cases = Object.entries(units).map(([unit, line]) => `--unit=${unit}) ${line} ;;`);
      writeFileSync(
        join(root, 'systemd-run'),
        `#!/bin/sh\nfor each; do case $each in --unit=*) unit=$each ;; esac; done\n` +
          `printf '%s\\0' "$@" > "${root}/$unit"\ncase $unit in ${cases.join(' ')} *) ;; esac\n`,
        { mode: 0o755 },
      );
      const program = (unit: string, ready: number, argv: readonly string[]) => {
        const facts = [join(root, unit, 'environment'), join(root, 'logs', `${unit}.log`), ready, argv.length];
        return ['program', unit, ...facts.map(String), ...argv];
      };
      // Into a file: a pipe would wait for a program that `timeout`, ended at the very moment of its fork, leaves behind.
      const errors = join(root, 'errors');
      const start = (words: readonly string[], input = `${END}\n`) => {
        const file = openSync(errors, 'w');
        const { status } = spawnSync('sh', ['-c', PLACE_SCRIPT, 'script', ...words], {
          input,
          stdio: ['pipe', 'ignore', file],
          env: { ...process.env, PATH: `${root}:${process.env.PATH}` },
        });
        closeSync(file);
        return { status, stderr: readFileSync(errors, 'utf8') };
      };
      const asked = (unit: string) =>
        readFileSync(join(root, `--unit=${unit}`), 'utf8')
          .split('\0')
          .slice(0, -1);
      return { root, program, start, asked };
    }

    test('all at once, with their own arguments and after the files', () => {
      const { root, program, start, asked } = manager();
      const text = join(root, 'first', 'environment');
      const words = ['file', text, '2', ...program('first', 60, ODD), ...program('second', 0, ['sleep', 'x'])];
      expect(start(words, `A=${END}\n`)).toMatchObject({ status: 0, stderr: '' });
      const [first, second] = [asked('first'), asked('second')];
      expect(first.slice(first.indexOf('--') + 1)).toEqual(ODD);
      expect(second.slice(second.indexOf('--') + 1)).toEqual(['sleep', 'x']);
      expect(first).toEqual(expect.arrayContaining(['--service-type=notify', `--property=EnvironmentFile=${text}`]));
      expect(second).toContain('--service-type=exec');
      expect(readFileSync(text, 'utf8')).toBe('A=');
    });

    test('each only with its own environment', () => {
      const { root, program, start } = manager();
      const words = ['file', join(root, 'environment'), '6', ...program('first', 60, ['true'])];
      for (const input of ['', 'A="b"\n']) {
        expect(start(words, input)).toMatchObject({ status: 1, stderr: expect.stringContaining('broke off') });
      }
      expect(readdirSync(root).filter((name) => name.startsWith('--unit'))).toEqual([]);
    });

    test('without waiting for others when one fails to start, and report why', () => {
      const { program, start } = manager({ second: 'exec sleep 600', first: 'echo no such program >&2; exit 1' });
      const words = [...program('first', 60, ['true']), ...program('second', 60, ['true'])];
      expect(start(words)).toMatchObject({ status: 1, stderr: expect.stringContaining('no such program') });
    });

    test('and report which one is missing', () => {
      const { program, start } = manager({ second: 'exec sleep 600' });
      const words = [...program('first', 60, ['no-such-program', 'x']), ...program('second', 60, ['true'])];
      expect(start(words)).toMatchObject({ status: MISSING, stderr: 'no-such-program' });
    });

    test('and wait no longer than a program may take to become ready', () => {
      const { program, start } = manager({ first: 'exec sleep 600' });
      expect(start(program('first', 1, ['true']))).toMatchObject({ status: 124 });
    });
  });

  test('link a socket where clients look for it, replacing an older link', () => {
    const root = temporaryDirectory();
    const link = join(root, 'run', 'docker.sock');
    for (const target of ['/first', '/second']) sh(LINK_SCRIPT, [target, link]);
    expect(readlinkSync(link)).toBe('/second');
  });

  test('find nothing after a clean stop, and remove only the state', () => {
    const root = temporaryDirectory();
    const state = join(root, 'state');
    const data = join(root, 'data');
    for (const path of [state, data]) mkdirSync(path);
    const words = [join(root, 'containerd.sock'), state, '', data];
    expect(sh(LEFTOVERS_SCRIPT, words)).toBe('');
    sh(CLEAR_SCRIPT, words);
    expect([existsSync(state), existsSync(data)]).toEqual([false, true]);
  });
});

describe('an engine in a guest', () => {
  const running: EngineStatus = {
    state: 'running',
    spec: {
      name: 'moby',
      storageDriver: 'auto',
      webAssembly: false,
      allowedImages: { enabled: false, patterns: [] },
    },
    endpoint: 'unix:///x',
    version: '1',
    workload: {},
  };
  const state: GuestState = {
    isUp: async () => true,
    isConnected: async () => true,
    started: async () => undefined,
    unlessHalted: (signal, work) => work(signal),
    onReconnect: () => undefined,
  };
  const clock = { now: () => 0 };

  function engine(observe: () => Promise<EngineStatus>) {
    const calls: string[] = [];
    const driver: EngineDriver = {
      observe,
      perform: async ({ do: step }) => void calls.push(step),
      release: async () => void calls.push('release'),
    };
    return { calls, driver };
  }

  test('reports its state while the guest answers', async () => {
    const { driver, calls } = engine(async () => running);
    const inside = engineInGuest(driver, state, clock);
    expect(await inside.observe(never)).toEqual(running);
    await inside.perform({ do: 'stop' }, never);
    expect(calls).toEqual(['stop']);
  });

  test('is stopped while the machine is off, and then only closes what it serves', async () => {
    const { driver, calls } = engine(async () => running);
    const inside = engineInGuest(driver, { ...state, isUp: async () => false }, clock);
    expect(await inside.observe(never)).toEqual({ state: 'stopped' });
    await inside.perform({ do: 'stop' }, never);
    expect(calls).toEqual(['release']);
  });

  test('is not queried when the guest cannot be reached', async () => {
    const { driver } = engine(() => Promise.reject(new Error('asked')));
    const inside = engineInGuest(driver, { ...state, isConnected: async () => false }, clock);
    expect(await inside.observe(never)).toMatchObject({ state: 'unresponsive' });
  });

  test('is unknown while it is silent, and counts as hung after a minute, or longer in a slow guest', async () => {
    const hung: EngineStatus = { state: 'unresponsive', message: 'it is silent', silent: true };
    const slow = { how: 'boot' as const, phases: [{ name: 'boot', ms: 40_000 }] };
    for (const [started, limit] of [
      [undefined, 60_000],
      [slow, 120_000],
    ] as const) {
      let now = 1_000;
      const statuses = [hung, running];
      const { driver } = engine(async () => statuses.shift() ?? hung);
      const inside = engineInGuest(driver, { ...state, started: async () => started }, { now: () => now });
      await expect(inside.observe(never)).rejects.toMatchObject({ code: 'ERR_DRIVER_FAILED', message: 'it is silent' });
      now += limit;
      expect(await inside.observe(never)).toEqual(running);
      await expect(inside.observe(never)).rejects.toThrow('it is silent');
      now += limit;
      await expect(inside.observe(never)).rejects.toMatchObject({
        message: `it is silent (for ${limit / 1000} s now)`,
        advice: expect.stringContaining(`The engine is restarted if this lasts longer than ${limit / 1000} seconds`),
      });
      now += 1;
      expect(await inside.observe(never)).toEqual(hung);
      await inside.perform({ do: 'stop' }, never);
      await expect(inside.observe(never)).rejects.toThrow('it is silent');
    }
  });

  test('is queried again with the guest after a failed query', async () => {
    const failure = new RdError('ERR_DRIVER_FAILED', 'the guest cannot be reached');
    const { driver } = engine(() => Promise.reject(failure));
    await expect(engineInGuest(driver, state, clock).observe(never)).rejects.toBe(failure);
    const answers = [true, false];
    const gone = engineInGuest(driver, { ...state, isConnected: async () => answers.shift() ?? false }, clock);
    expect(await gone.observe(never)).toMatchObject({ state: 'unresponsive' });
    const up = [true, false];
    const ended = engineInGuest(driver, { ...state, isUp: async () => up.shift() ?? false }, clock);
    expect(await ended.observe(never)).toEqual({ state: 'stopped' });
  });
});
