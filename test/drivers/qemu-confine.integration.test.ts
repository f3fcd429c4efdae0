import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { wholeDisk } from '../../src/drivers/machines/qemu/arguments.ts';
import type { Access } from '../../src/drivers/machines/qemu/confine/access.ts';
import { type Confine, confine } from '../../src/drivers/machines/qemu/confine/confinement.ts';
import { runningConfinement } from '../../src/drivers/machines/qemu/confine/running.ts';
import { launchQemu } from '../../src/drivers/machines/qemu/launch.ts';
import { qemuPlaces } from '../../src/drivers/machines/qemu/places.ts';
import { steadyClock } from '../../src/os/clock.ts';
import { findDaemon, startDaemon, stopDaemon } from '../../src/os/daemon.ts';
import { readProcess, readProcesses } from '../../src/os/process-table.ts';
import { programPath } from '../../src/os/program.ts';
import { tailOf } from '../../src/os/program-log.ts';
import { run } from '../../src/os/run.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { HOST, IMAGE } from './scripted-qemu.ts';

const env = { PATH: programPath(process.env.PATH), LC_ALL: 'C' };
const isRoot = process.getuid?.() === 0;
const method = await confined().method();
const { by } = method;

/** Where programs cannot be confined, as in some containers, they run as they are, and the reason is known. */
function whereConfined(name: string, work: () => Promise<void>, how: readonly string[] = ['bubblewrap', 'landlock']) {
  test(name, async () => {
    if (how.includes(by)) return work();
    if (by === 'landlock') return;
    expect(method).toMatchObject({ because: expect.stringMatching(/^bwrap .* and setpriv /) });
    expect(await confined().wrap(['true'], {}, 'daemon')).toEqual({ within: [] });
  });
}

function confined(path = process.env.PATH, root = isRoot): Confine {
  return confine({
    platform: process.platform,
    isRoot: root,
    run: (argv, options) => run(argv, { ...options, env }),
    env: { PATH: path },
    log: () => undefined,
  });
}

/** A home directory with a secret, and a machine in it. */
function scene() {
  const home = realpathSync(temporaryDirectory('/tmp'));
  const places = qemuPlaces(join(home, 'machine'), '/nowhere');
  mkdirSync(places.run, { recursive: true });
  const secret = join(home, 'secret');
  writeFileSync(secret, 'a secret\n');
  return { home, places, secret };
}

async function runConfined(argv: readonly string[], access: Access, by = confined()) {
  const { within } = await by.wrap(argv, access, 'run');
  return run(argv, { within, env, accept: Array.from({ length: 128 }, (_, status) => status) });
}

/** A program at a place of its own that does what the script says. */
function program(folder: string, name: string, script: string): string {
  const bin = join(folder, 'bin');
  mkdirSync(bin, { recursive: true });
  const file = join(bin, name);
  writeFileSync(file, `#!/bin/sh\n${script}`);
  chmodSync(file, 0o755);
  return bin;
}

test('which method works is found out by trying it, and why none does is said', async () => {
  expect(await confined('').method()).toEqual(await confined().method());
  const logged: unknown[] = [];
  const parts = { platform: 'linux', run, env: {}, log: () => undefined } as const;
  const nowhere = confine({
    ...parts,
    run: async () => {
      throw new Error('no name spaces');
    },
    log: (...words) => void logged.push(words),
  });
  expect(await nowhere.method()).toMatchObject({
    by: 'nothing',
    because: expect.stringMatching(/bwrap .* and setpriv/),
  });
  expect(await nowhere.wrap(['true'], {}, 'run')).toEqual({ within: [] });
  expect(logged).toEqual([['warn', 'QEMU runs unconfined', { why: expect.stringContaining('no name spaces') }]]);
  const mac = confine({ ...parts, platform: 'darwin' });
  expect(await mac.method()).toEqual({ by: 'nothing', because: 'only Linux has what it takes' });
  const off = confine({ ...parts, env: { RDCTL_QEMU_CONFINE: '0' } });
  // A missing program gives the error that it gives everywhere.
  expect(await confined().wrap(['no-such-program'], {}, 'run')).toEqual({ within: [] });
  expect(await off.method()).toMatchObject({ by: 'nothing', because: expect.stringContaining('RDCTL_QEMU_CONFINE=0') });
});

whereConfined('a program sees the files that it is to read and write, and no others', async () => {
  const { home, places, secret } = scene();
  const [read, written] = [join(home, 'read'), places.data];
  writeFileSync(read, 'to be read\n');
  const script = `cat "$1"; cat "$2"; echo no >"$2"; echo no >"$1"; echo yes >"$3"; kill -0 ${process.pid} || echo alone`;
  const { stdout, stderr } = await runConfined(['sh', '-c', script, 'sh', secret, read, written], {
    reads: [read],
    writes: [written],
  });
  expect(stdout).toContain('to be read\n');
  expect(stdout).not.toContain('a secret');
  expect(stderr).toMatch(/secret: (No such file|Permission denied)/);
  expect([secret, read, written].map((file) => readFileSync(file, 'utf8'))).toEqual([
    'a secret\n',
    'to be read\n',
    'yes\n',
  ]);
  if (by === 'bubblewrap') expect(stdout).toContain('alone');
});

whereConfined('so it is for users other than root, in a name space of their own', async () => {
  const { home, places, secret } = scene();
  writeFileSync(places.data, 'data\n');
  const { stdout } = await runConfined(
    ['sh', '-c', 'cat "$1" "$2"; readlink /proc/self/ns/user', 'sh', secret, places.data],
    { reads: [places.data] },
    confined(undefined, false),
  );
  expect(stdout).toMatch(/^data\nuser:/);
  expect(stdout).not.toContain(readlinkSync('/proc/self/ns/user'));
  expect(existsSync(home)).toBe(true);
}, ['bubblewrap']);

whereConfined('the server of a directory sees nothing else, and nothing of what is hidden in it', async () => {
  const { home, secret } = scene();
  const real = join(home, 'shared');
  mkdirSync(join(real, 'own'), { recursive: true });
  writeFileSync(join(real, 'own', 'key'), 'a key\n');
  writeFileSync(join(real, 'file'), 'shared\n');
  symlinkSync(secret, join(real, 'link'));
  const script = 'cat "$1"/file "$1"/link "$1"/own/key; echo new >"$1/new"';
  const look = async (mode: 'writable' | 'read-only') =>
    (await runConfined(['sh', '-c', script, 'sh', real], { shares: [{ real, mode, hidden: [join(real, 'own')] }] }))
      .stdout;
  expect(await look('read-only')).toBe('shared\n');
  expect(existsSync(join(real, 'new'))).toBe(false);
  expect(await look('writable')).toBe('shared\n');
  expect(readFileSync(join(real, 'new'), 'utf8')).toBe('new\n');
}, ['bubblewrap']);

whereConfined('qemu-img opens no other file, whatever a header names', async () => {
  const { home, secret } = scene();
  const disk = join(home, 'disk.qcow2');
  await run(['qemu-img', 'create', '-q', '-u', '-f', 'qcow2', '-b', secret, '-F', 'raw', disk, '1M'], { env });
  // Without our own list of files it follows the header.
  const info = ['qemu-img', 'info', '--backing-chain', disk];
  expect((await run(info, { env })).stdout).toContain(`image: ${secret}`);
  const { exitCode, stderr } = await runConfined(info, { reads: [disk] });
  expect(exitCode).not.toBe(0);
  expect(stderr).toMatch(/Could not open .*(No such file|Permission denied)/);
  expect((await runConfined(['qemu-img', 'check', '-q', wholeDisk([disk])], { reads: [disk] })).exitCode).toBe(0);
});

whereConfined('QEMU is confined, recorded itself, and outlives its wrapper', async () => {
  const { home, places, secret } = scene();
  for (const file of [places.key, places.hostKey, places.hostname, `${places.key}.pub`]) writeFileSync(file, '');
  for (const file of [places.disk, places.data]) writeFileSync(file, 'a disk\n');
  const image = { directory: join(home, 'images'), files: IMAGE.files };
  mkdirSync(image.directory);
  for (const { name } of Object.values(image.files)) writeFileSync(join(image.directory, name), '');
  const bin = program(
    join(home, 'opt'),
    'qemu-system-x86_64',
    `trap 'echo ending; exit 0' TERM
cat '${secret}' '${places.data}'
echo more >>'${places.data}'
echo up
while :; do sleep 1 & wait $!; done
`,
  );
  const path = `${bin}:${env.PATH}`;
  const logFile = join(home, 'log');
  const parts = {
    ...{ places, logFile, environment: { ...env, PATH: path }, confine: confined(path) },
    mounts: { opened: async () => [] },
  };
  await launchQemu(parts, {
    ...{ image, places, host: HOST, accelerator: 'tcg', memoryGiB: 1, memoryCeilingGiB: 1, cpus: 1, cpuCeiling: 1 },
    sshPort: 1,
  });
  onTestFinished(async () => void (await stopDaemon(places.qemuRecord, { graceMs: 100, clock: steadyClock })));
  await expect.poll(() => tailOf(logFile)).toContain('up');
  expect((await tailOf(logFile)).join('\n')).not.toContain('a secret');
  expect(readFileSync(places.data, 'utf8')).toBe('a disk\nmore\n');
  expect(await runningConfinement(places.qemuRecord)).toEqual({ running: true });

  const found = await findDaemon(places.qemuRecord);
  const pid = found.state === 'running' ? found.pid : 0;
  const entry = await readProcess(pid);
  expect(entry?.argv.slice(0, 2)).toEqual(['/bin/sh', join(bin, 'qemu-system-x86_64')]);
  // A service that was killed before it recorded the process finds it by its arguments.
  const { argv } = JSON.parse(readFileSync(places.qemuRecord, 'utf8')) as { argv: string[] };
  const record = join(home, 'machine', 'other.json');
  writeFileSync(record, JSON.stringify({ argv }));
  expect(await findDaemon(record)).toEqual(found);
  const wrapper = (await readProcesses()).find((each) => each.argv[0] === 'bwrap' && each.pid === entry?.parent);
  if (by === 'bubblewrap') {
    process.kill(wrapper?.pid ?? 0, 'SIGKILL');
    await expect.poll(() => readProcess(wrapper?.pid ?? 0)).toBeUndefined();
  }
  expect(await findDaemon(places.qemuRecord)).toEqual(found);
  expect(await stopDaemon(places.qemuRecord, { graceMs: 30_000, clock: steadyClock })).toBe('stopped');
  expect(await tailOf(logFile)).toContain('ending');
});

test('a machine that an earlier version started is seen to be unconfined', async () => {
  const { home, places } = scene();
  const argv = ['sh', '-c', 'sleep 60', join(home, 'own')];
  await startDaemon({ argv, recordFile: places.qemuRecord, logFile: join(home, 'log'), env });
  onTestFinished(async () => void (await stopDaemon(places.qemuRecord, { graceMs: 100, clock: steadyClock })));
  expect(await runningConfinement(places.qemuRecord)).toEqual(process.platform === 'linux' ? { running: false } : {});
  expect(await runningConfinement(join(home, 'none'))).toEqual({});
});
