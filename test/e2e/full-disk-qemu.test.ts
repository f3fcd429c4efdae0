import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { isObject } from '../../src/json.ts';
import { readProcesses } from '../../src/os/process-table.ts';
import { busyboxRoot } from '../helpers/busybox.ts';
import { engineJson, runContainer } from '../helpers/engine-client.ts';
import { fillDisk, mountSmallDisk } from '../helpers/full-disk.ts';
import { linkImages, whyNoRealGuest } from '../helpers/guest-image.ts';
import { rounds } from '../helpers/rounds.ts';
import { toolHome } from '../helpers/tool-home.ts';

// Several boots without KVM, next to other tests.
const LIMIT_MS = 1_800_000;
const POLL = { timeout: 600_000, interval: 500 };
const IMAGE = 'test/base:1';
const busybox = (script: string) => ({
  image: IMAGE,
  command: ['/bin/busybox', 'sh', '-c', script],
  binds: ['kept:/data'],
});
const WRITE = busybox('echo here > /data/kept; sync');
const READ = busybox('cat /data/kept');
const MUCH = busybox('dd if=/dev/urandom of=/data/much bs=1M count=96 2> /dev/null; sync; rm /data/much');

const reason = (await whyNoRealGuest()) ?? (process.getuid?.() === 0 ? undefined : 'a small disk is for root');

/** The whole home is on its own file system, so that none of our files has room when it is full. */
function scene() {
  const tool = toolHome();
  const { home, rdctl, status } = tool;
  const unmount = mountSmallDisk(home, '2g');
  onTestFinished(async () => {
    await rdctl('shutdown');
    unmount();
  });
  linkImages(home);
  const engine = async () => (await status()).engine.endpoint ?? '';
  const qemus = async () => (await readProcesses()).filter(({ argv }) => argv.some((arg) => arg.includes(home)));
  return {
    ...tool,
    engine,
    started: async () =>
      expect(await rdctl('apply', '-f', 'examples/moby.yaml', '--driver', 'qemu')).toMatchObject({ exit: 0 }),
    said: async () => JSON.stringify(await status()),
    /** Programs with the home among their arguments; the service has no such argument. */
    programs: async () => (await qemus()).map(({ argv }) => argv[0]),
    async mark() {
      await engineJson(await engine(), 'POST', '/images/create?fromSrc=-&repo=test/base&tag=1', busyboxRoot());
      await engineJson(await engine(), 'POST', '/volumes/create', { Name: 'kept' });
      expect(await runContainer(await engine(), WRITE)).toEqual({ status: 0, output: '' });
    },
    kept: async () => expect(await runContainer(await engine(), READ)).toEqual({ status: 0, output: 'here\n' }),
    locks: () => readdirSync(join(home, 'state', 'service.lock')),
    pid(): number {
      const value: unknown = JSON.parse(readFileSync(join(home, 'state', 'drivers', 'qemu', 'qemu.pid.json'), 'utf8'));
      return isObject(value) ? Number(value.pid) : Number.NaN;
    },
  };
}

describe.skipIf(reason !== undefined)('a machine on a host with a full disk', () => {
  test(
    'stops with its service, halted or not, also after a kill of the service, and keeps its data',
    async () => {
      const { home, rdctl, status, servicePid, engine, started, programs, locks, said, mark, kept, pid } = scene();
      await started();
      await mark();

      // A guest with nothing to write.
      const roomAgain = await fillDisk(home);
      expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
      expect(await programs()).toEqual([]);
      expect(locks()).toEqual([]);
      // What the machine freed is filled as well. Nothing can be started there, and the attempt leaves nothing behind.
      await fillDisk(home);
      const refused = await rdctl('start');
      expect(refused.exit).toBe(1);
      expect(refused.err).toContain('no space left on the device');
      expect(await programs()).toEqual([]);
      expect(locks()).toEqual([]);
      expect(await rdctl('plan', '-f', 'examples/moby.yaml')).toMatchObject({ exit: 0 });
      roomAgain();

      // Halted, and stopped while halted.
      await started();
      await kept();
      const third = await fillDisk(home);
      runContainer(await engine(), MUCH).catch(() => undefined);
      await expect.poll(said, POLL).toContain('the disk of this host is full');
      expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
      expect(await programs()).toEqual([]);
      expect(locks()).toEqual([]);
      third();
      await started();
      await kept();

      // Each takes a few more boots.
      if (rounds(0, 1) === 0) return;

      // A guest that is halted during a write; it continues when there is room.
      const same = pid();
      const more = await fillDisk(home);
      const writing = runContainer(await engine(), MUCH);
      writing.catch(() => undefined);
      await expect.poll(said, POLL).toContain('the disk of this host is full');
      more();
      await expect.poll(async () => (await status()).converged, POLL).toBe(true);
      // The client may have timed out.
      await writing.catch(() => undefined);
      await kept();
      expect(pid()).toBe(same);

      // Halted, with its service killed.
      const fourth = await fillDisk(home);
      runContainer(await engine(), MUCH).catch(() => undefined);
      await expect.poll(said, POLL).toContain('the disk of this host is full');
      process.kill(servicePid(), 'SIGKILL');
      expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
      expect(await programs()).toEqual([]);
      expect(locks()).toEqual([]);
      fourth();
      await started();
      await kept();
    },
    LIMIT_MS,
  );
});
