import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { isObject } from '../../src/json.ts';
import { busyboxRoot } from '../helpers/busybox.ts';
import { callEngine, engineJson, runContainer } from '../helpers/engine-client.ts';
import { fillDisk, mountSmallDisk } from '../helpers/full-disk.ts';
import { linkImages, whyNoRealGuest } from '../helpers/guest-image.ts';
import { prepareMachine } from '../helpers/prepared-machine.ts';
import { LONG } from '../helpers/rounds.ts';
import { toolHome } from '../helpers/tool-home.ts';

// Boots and several resumes without KVM, next to other tests.
const LIMIT_MS = 1_800_000;
// Each look starts the tool, which the guest would feel.
const POLL = { timeout: 600_000, interval: 2_000 };
const SOON = { timeout: 600_000, interval: 20 };
const IMAGE = 'test/base:1';
const READ = { image: IMAGE, command: ['/bin/busybox', 'cat', '/data/kept'], binds: ['kept:/data'] };
const WRITE = { ...READ, command: ['/bin/busybox', 'sh', '-c', 'echo here > /data/kept; sync'] };
const FILL = {
  ...READ,
  command: [
    '/bin/busybox',
    'sh',
    '-c',
    'dd if=/dev/urandom of=/data/much bs=1M count=96 2> /dev/null; sync; echo done',
  ],
};

const reason = (await whyNoRealGuest()) ?? (process.getuid?.() === 0 ? undefined : 'a small disk is for root');

function numberIn(file: string, member: string): number {
  const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
  return isObject(value) ? Number(value[member]) : Number.NaN;
}

/** The record of a machine, if there is one. */
function recordIn(directory: string): string {
  try {
    return readFileSync(join(directory, 'machine.json'), 'utf8');
  } catch {
    return '';
  }
}

function runs(pidFile: string): boolean {
  try {
    return Number.isInteger(numberIn(pidFile, 'pid'));
  } catch {
    return false;
  }
}

/** A file system for the files of the machine, so that it can be full. Unmounted after the test, once it is unused. */
function smallDisk(directory: string, end: () => Promise<unknown>): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const unmount = mountSmallDisk(directory, '2g');
  onTestFinished(async () => {
    await end();
    unmount();
  });
}

/** The tool on a home of its own with the images; the machine does not exist yet. */
function scene() {
  const tool = toolHome();
  const { home, rdctl, status } = tool;
  const directory = join(home, 'state', 'drivers', 'qemu');
  linkImages(home);
  const files = (name: string) => join(directory, name);
  const engine = async () => (await status()).engine.endpoint ?? '';
  const apply = () => rdctl('apply', '-f', 'examples/moby.yaml', '--driver', 'qemu');
  const ping = async () => callEngine(await engine(), 'GET', '/_ping').then((answer) => answer.status, String);
  return {
    ...tool,
    directory,
    files,
    engine,
    apply,
    applied: async () => expect(await apply()).toMatchObject({ exit: 0 }),
    qemu: () => numberIn(files('qemu.pid.json'), 'pid'),
    recorded: () => recordIn(directory),
    said: async () => JSON.stringify(await status()),
    /** Writes to a volume. */
    async mark() {
      await engineJson(await engine(), 'POST', `/images/create?fromSrc=-&repo=test/base&tag=1`, busyboxRoot());
      await engineJson(await engine(), 'POST', '/volumes/create', { Name: 'kept' });
      expect(await runContainer(await engine(), WRITE)).toEqual({ status: 0, output: '' });
    },
    /** Waits for the desired state of the machine, and checks that its data is still there. */
    async kept() {
      await expect.poll(async () => (await status()).converged, POLL).toBe(true);
      await expect.poll(ping, POLL).toBe(200);
      expect(await runContainer(await engine(), READ)).toEqual({ status: 0, output: 'here\n' });
    },
  };
}

/** What can fail during a start and while the machine runs, one after the other in one home; the data must survive each. */
describe.skipIf(reason !== undefined)('a machine that fails', () => {
  test(
    "in its engine, its host's disk or QEMU recovers with its data",
    async () => {
      const { home, directory, files, rdctl, status, engine, qemu, applied, said, mark, kept } = scene();
      smallDisk(directory, () => rdctl('shutdown'));
      await prepareMachine(directory);
      await applied();
      await mark();

      // The engine in the guest.
      const engineId = async () => (await rdctl('shell', 'pidof', 'dockerd')).out.trim();
      const first = await engineId();
      expect(first).toMatch(/^\d+$/);
      expect(await rdctl('shell', 'kill', '-KILL', first)).toMatchObject({ exit: 0 });
      await expect.poll(engineId, POLL).toMatch(/^\d+$/);
      await kept();
      expect(await engineId()).not.toBe(first);

      // The disk of this host. The guest halts, which is reported; then it continues by itself.
      const same = qemu();
      const giveBack = await fillDisk(directory);
      onTestFinished(giveBack);
      const filling = runContainer(await engine(), FILL);
      filling.catch(() => undefined);
      await expect.poll(said, POLL).toContain('the disk of this host is full');
      // The attempts are used up: it says what to do.
      await expect.poll(async () => (await status()).backendState, POLL).toBe('ERROR');
      expect(await said()).toContain('Free up space on the disk that');
      giveBack();
      await expect.poll(async () => (await status()).converged, POLL).toBe(true);
      await filling.catch(() => undefined);
      await kept();
      expect(qemu()).toBe(same);
      expect((await rdctl('shell', 'dmesg')).out).not.toMatch(/I\/O error|Remounting filesystem read-only/);

      // QEMU, while its engine runs.
      process.kill(qemu(), 'SIGKILL');
      await expect.poll(async () => runs(files('qemu.pid.json')) && qemu() !== same, POLL).toBe(true);
      await kept();
      expect(readFileSync(join(home, 'logs', 'service.log'), 'utf8')).toContain('the machine had ended by itself');
      expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
    },
    LIMIT_MS,
  );

  // It boots a guest three times. In every run the service of a scripted machine is killed at each of its calls.
  if (!LONG) return;
  test(
    'with its service during a start, or in its SSH access, recovers with its data',
    async () => {
      const { rdctl, servicePid, files, recorded, qemu, apply, applied, said, mark, kept } = scene();

      // The service, as soon as QEMU runs, and again as soon as the guest does.
      for (const reached of [() => runs(files('qemu.pid.json')), () => recorded().includes('"booted": true')]) {
        const starting = apply();
        await expect.poll(reached, SOON).toBe(true);
        process.kill(servicePid(), 'SIGKILL');
        expect((await starting).exit).not.toBe(0);
      }
      await applied();
      await mark();
      await kept();

      // SSH access: nothing listens there any more, and the connection is gone.
      const before = qemu();
      await rdctl('shell', 'systemctl', 'stop', 'ssh.socket', 'ssh.service');
      process.kill(numberIn(files('ssh.pid.json'), 'pid'), 'SIGKILL');
      await expect.poll(said, POLL).toContain('the guest does not respond');
      await expect.poll(() => runs(files('qemu.pid.json')) && qemu() !== before, POLL).toBe(true);
      await kept();
      expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
    },
    LIMIT_MS,
  );
});
