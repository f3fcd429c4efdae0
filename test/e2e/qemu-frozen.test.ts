import { open, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { busyboxRoot } from '../helpers/busybox.ts';
import { engineJson, runContainer } from '../helpers/engine-client.ts';
import { linkImages, whyNoRealGuest } from '../helpers/guest-image.ts';
import { toolHome } from '../helpers/tool-home.ts';

// Two boots and two resumes without KVM, next to other tests.
const LIMIT_MS = 1_800_000;
const IMAGE = 'test/base:1';
const READ = { image: IMAGE, command: ['/bin/busybox', 'cat', '/data/kept'], binds: ['kept:/data'] };
const WRITE = { ...READ, command: ['/bin/busybox', 'sh', '-c', 'echo here > /data/kept'] };

const reason = await whyNoRealGuest();

/** What the second start of a machine does. */
describe.skipIf(reason !== undefined)('a frozen machine', () => {
  test(
    'is resumed with its data, boots when its state is damaged, and is frozen again',
    async () => {
      const { home, rdctl, status } = toolHome();
      linkImages(home);
      const frozen = join(home, 'state', 'drivers', 'qemu', 'frozen');
      const manifest = () => readFile(join(frozen, 'frozen.json'), 'utf8');
      const how = async () => (await status()).machine.started;
      const ok = async (...words: string[]) => {
        const { exit, out, err } = await rdctl(...words);
        expect(exit, `${words.join(' ')}: ${out}${err}`).toBe(0);
      };
      const apply = () => ok('apply', '-f', 'examples/moby.yaml', '--driver', 'qemu');
      const engine = async () => (await status()).engine.endpoint ?? '';
      const logged = async () => readFile(join(home, 'logs', 'service.log'), 'utf8').catch(() => '');

      await apply();
      const booted = await how();
      expect(booted).toMatchObject({ how: 'boot' });
      expect(booted?.phases.map(({ name }) => name)).toEqual(expect.arrayContaining(['boot', 'network']));
      await engineJson(await engine(), 'POST', `/images/create?fromSrc=-&repo=test/base&tag=1`, busyboxRoot());
      await engineJson(await engine(), 'POST', '/volumes/create', { Name: 'kept' });
      expect(await runContainer(await engine(), WRITE)).toEqual({ status: 0, output: '' });
      await ok('shutdown');
      const first = await manifest();
      // The memory of the guest contains keys.
      expect((await stat(frozen)).mode & 0o777).toBe(0o700);
      for (const file of ['state', 'root.qcow2']) expect((await stat(join(frozen, file))).mode & 0o777).toBe(0o600);

      await apply();
      expect(await how()).toMatchObject({ how: 'resume' });
      expect(await runContainer(await engine(), READ)).toEqual({ status: 0, output: 'here\n' });
      const clock = await rdctl('shell', 'date', '+%s');
      expect(Math.abs(Number(clock.out) - Date.now() / 1000)).toBeLessThan(30);
      await ok('shutdown');
      // It worked for one more start, and is unchanged.
      expect(await manifest()).toBe(first);

      // Flips bits in the middle.
      const file = await open(join(frozen, 'state'), 'r+');
      const middle = Math.floor((await file.stat()).size / 2);
      const { buffer } = await file.read(Buffer.alloc(64), 0, 64, middle);
      await file.write(
        buffer.map((byte) => byte ^ 0xff),
        0,
        64,
        middle,
      );
      await file.close();
      await apply();
      const after = await how();
      expect(after).toMatchObject({ how: 'boot' });
      expect(after?.phases.map(({ name }) => name)).toContain('failed resume');
      expect(await logged()).toContain('the machine cannot be resumed');
      expect(await runContainer(await engine(), READ)).toEqual({ status: 0, output: 'here\n' });
      await ok('shutdown');
      expect(await manifest()).not.toBe(first);
    },
    LIMIT_MS,
  );
});
