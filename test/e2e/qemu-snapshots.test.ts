import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { guestFreeze } from '../../src/drivers/machines/qemu/live-copy.ts';
import { readProcesses } from '../../src/os/process-table.ts';
import { type RunOptions, run } from '../../src/os/run.ts';
import { busyboxRoot } from '../helpers/busybox.ts';
import { callEngine, engineJson, startContainer } from '../helpers/engine-client.ts';
import { linkImages, whyNoRealGuest } from '../helpers/guest-image.ts';
import { prepareMachine } from '../helpers/prepared-machine.ts';
import { toolHome } from '../helpers/tool-home.ts';

// Several resumes without KVM, next to other tests.
const LIMIT_MS = 1_800_000;
const POLL = { timeout: 600_000, interval: 50 };
const IMAGE = 'test/base:1';
const WRITER = {
  image: IMAGE,
  command: ['/bin/busybox', 'sh', '-c', 'i=0; while :; do i=$((i+1)); echo $i > /data/count; sleep 1; done'],
  binds: ['kept:/data'],
};
const DONE = { exit: 0, out: '', err: '' };
/** Where stderr names what was stopped for it. */
const STOPPED = { exit: 0, out: '' };
const KEPT = /^0-data\.qcow2$/;

const reason = await whyNoRealGuest();

describe.skipIf(reason !== undefined)('snapshots of a QEMU machine', () => {
  test(
    'are created while it runs, survive a kill halfway, restore what was broken, and free their space',
    async () => {
      const { home, rdctl, rdctlWith, status, servicePid } = toolHome();
      linkImages(home);
      const directory = join(home, 'state', 'drivers', 'qemu');
      await prepareMachine(directory);
      const snapshots = join(home, 'snapshots');
      const apply = async () =>
        expect(await rdctl('apply', '-f', 'examples/moby.yaml', '--driver', 'qemu')).toMatchObject({ exit: 0 });
      const names = async () =>
        (await rdctl('snapshot', 'list', '--json')).out
          .split('\n')
          .filter(Boolean)
          .map((line) => JSON.parse(line).name);
      const images = async () => {
        const { body } = await callEngine(endpoint, 'GET', '/images/json');
        const found: { RepoTags: string[] }[] = JSON.parse(body.toString());
        return found.flatMap(({ RepoTags }) => RepoTags).sort();
      };

      await apply();
      const endpoint = (await status()).engine.endpoint ?? '';
      await engineJson(endpoint, 'POST', '/images/create?fromSrc=-&repo=test/base&tag=1', busyboxRoot());
      const { Mountpoint: volume } = await engineJson(endpoint, 'POST', '/volumes/create', { Name: 'kept' });
      const inVolume = async (script: string) => (await rdctl('shell', 'sh', '-c', `cd '${volume}' && ${script}`)).out;
      await inVolume('echo then > file');
      const writer = await startContainer(endpoint, WRITER);
      const state = async () => (await engineJson(endpoint, 'GET', `/containers/${writer}/json`)).State;
      const count = async () => Number(await inVolume('cat count'));
      const before = await state();

      // While a container writes: it runs on, and only the lock shows the copy.
      const { counters, generation } = await status();
      expect(await rdctl('snapshot', 'create', 'before', '--description', 'as it runs')).toEqual(DONE);
      expect(await status()).toMatchObject({ converged: true, backendState: 'DISABLED', generation, counters });
      expect(await state()).toEqual(before);
      expect(before).toMatchObject({ Running: true });
      const [id = ''] = readdirSync(snapshots);
      const saved = readdirSync(join(snapshots, id)).find((name) => KEPT.test(name)) ?? '';
      await run(['qemu-img', 'check', '-q', '-f', 'qcow2', join(snapshots, id, saved)]);
      expect(JSON.parse(readFileSync(join(snapshots, id, 'manifest.json'), 'utf8'))).toMatchObject({ live: true });
      expect(existsSync(join(directory, 'live-copy'))).toBe(false);

      // Killed halfway: the guest runs on, QEMU cancels its copy, and no half snapshot is left.
      const killed = rdctl('snapshot', 'create', 'never');
      await expect.poll(() => existsSync(join(directory, 'live-copy')), POLL).toBe(true);
      process.kill(servicePid(), 'SIGKILL');
      expect(await killed).toMatchObject({ exit: 1, err: expect.stringContaining('the service exited') });
      await apply();
      expect(await status()).toMatchObject({ converged: true, counters: { steps: 0 } });
      await expect.poll(() => existsSync(join(directory, 'live-copy')), POLL).toBe(false);
      expect(await names()).toEqual(['before']);
      expect(readdirSync(snapshots)).toEqual([id]);
      expect(await state()).toEqual(before);
      const since = await count();
      await expect.poll(count, { ...POLL, interval: 1_000 }).toBeGreaterThan(since);

      // A freeze that nobody ends is ended by the guest itself, and is distinguished from one that lasted.
      const guest = {
        async run(argv: readonly string[], { input = '', accept = [0] }: Omit<RunOptions, 'env' | 'cwd'> = {}) {
          const { exit, out, err } = await rdctlWith({ stdin: String(input) }, 'shell', ...argv);
          if (!accept.includes(exit)) throw new Error(`${argv.join(' ')}: ${err}`);
          return { exitCode: exit, stdout: out, stderr: err };
        },
      };
      const writes = () => guest.run(['touch', join(String(volume), 'late')]);
      await expect(guestFreeze(guest).whileFrozen(writes, new AbortController().signal)).rejects.toMatchObject({
        message: 'the data disk did not stay frozen for long enough',
      });

      // Broken data is restored; later data is gone.
      await inVolume('echo broken > file; rm -f count');
      await engineJson(endpoint, 'POST', '/images/create?fromSrc=-&repo=test/later&tag=1', busyboxRoot());
      expect(await rdctl('snapshot', 'restore', 'before', '--yes')).toMatchObject(STOPPED);
      expect(await status()).toMatchObject({ converged: true });
      expect(await images()).toEqual([IMAGE]);
      expect(await inVolume('cat file')).toBe('then\n');
      expect(await state()).toMatchObject({ Running: false });
      expect(readdirSync(directory).filter((name) => name.startsWith('data.'))).toEqual(['data.qcow2']);

      // Stopped while it runs, on request: it comes back with its data.
      const made = new Set(readdirSync(snapshots));
      expect(await rdctl('snapshot', 'create', 'stopped', '--stop')).toMatchObject(STOPPED);
      expect(await status()).toMatchObject({ converged: true, machine: { state: 'on' }, engine: { state: 'running' } });
      const [stopped = ''] = readdirSync(snapshots).filter((name) => !made.has(name));
      const manifest = JSON.parse(readFileSync(join(snapshots, stopped, 'manifest.json'), 'utf8'));
      expect(manifest).toMatchObject({ driver: 'qemu' });
      expect(manifest).not.toHaveProperty('live');
      expect(await images()).toEqual([IMAGE]);
      expect(await inVolume('cat file')).toBe('then\n');

      // A wipe of the running machine: its disk is empty, and the snapshots stay.
      expect(await rdctl('reset', '--vm')).toMatchObject({ exit: 0 });
      expect(await status()).toMatchObject({ converged: true, machine: { state: 'on' }, engine: { state: 'running' } });
      expect(await images()).toEqual([]);
      expect(await inVolume('ls')).toBe('');
      const [, , covering = ''] = await names();
      expect(await names()).toEqual(['before', 'stopped', expect.stringMatching(/^before-generation-\d+$/)]);
      expect(await rdctl('snapshot', 'restore', covering, '--yes')).toMatchObject(STOPPED);
      expect(await images()).toEqual([IMAGE]);
      expect(await rdctl('snapshot', 'delete', covering)).toEqual(DONE);
      expect(await rdctl('snapshot', 'restore', 'stopped', '--yes')).toMatchObject(STOPPED);
      expect(await images()).toEqual([IMAGE]);
      expect(await inVolume('cat file')).toBe('then\n');

      // Off, as with every driver.
      expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
      expect(await rdctl('snapshot', 'create', 'off', '--stop')).toEqual(DONE);
      expect(await names()).toEqual(['before', 'stopped', 'off']);

      const taken = () => space(snapshots);
      const all = taken();
      const one = space(join(snapshots, id));
      expect(one).toBeGreaterThan(1024 ** 2);
      expect(await rdctl('snapshot', 'delete', 'before')).toEqual(DONE);
      expect(taken()).toBeLessThanOrEqual(all - one);
      expect((await readProcesses()).filter(({ argv }) => argv.join(' ').includes(directory))).toEqual([]);
    },
    LIMIT_MS,
  );
});

/** Bytes that a directory takes on disk. */
function space(path: string): number {
  const files = readdirSync(path, { recursive: true, encoding: 'utf8' });
  return files.reduce((sum, name) => sum + statSync(join(path, name)).blocks * 512, 0);
}
