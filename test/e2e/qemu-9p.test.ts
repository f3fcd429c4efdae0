import { mkdtempSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { busyboxRoot } from '../helpers/busybox.ts';
import { engineJson, runContainer } from '../helpers/engine-client.ts';
import { linkImages, whyNoRealGuest } from '../helpers/guest-image.ts';
import { toolHome } from '../helpers/tool-home.ts';

// Two boots and a resume without KVM, next to other tests.
const LIMIT_MS = 1_800_000;
const IMAGE = 'test/base:1';
/** An owner of files in the guest; no such user exists on this host. */
const OWNER = 12_345;

const reason = await whyNoRealGuest('9p');

/** No option has its default. */
function profile(securityModel: string): string {
  const options = { securityModel, protocolVersion: '9p2000.u', msizeInKib: 256, cacheMode: 'none' };
  return JSON.stringify({
    apiVersion: 'rdctl/v1',
    kind: 'Profile',
    settings: {
      version: 19,
      containerEngine: { name: 'moby' },
      kubernetes: { enabled: false },
      virtualMachine: { mount: { type: '9p' } },
      experimental: { virtualMachine: { mount: { '9p': options } } },
    },
    state: 'started',
  });
}

describe.skipIf(reason !== undefined)('the home directory in a guest over 9p', () => {
  test(
    'has the options of the profile, follows a change, and is mounted again after a resume',
    async () => {
      const user = realpathSync(mkdtempSync(join(tmpdir(), 'rd home,')));
      onTestFinished(() => rmSync(user, { recursive: true, force: true }));
      const { home, rdctl, status } = toolHome({ HOME: user });
      // The machine uses the image that has it.
      linkImages(home, '9p');
      const file = join(home, 'profile.json');
      const apply = async (securityModel: string) => {
        writeFileSync(file, profile(securityModel));
        const { exit, out, err } = await rdctl('apply', '-f', file, '--driver', 'qemu');
        expect(exit, `${out}${err}`).toBe(0);
        expect((await status()).machine.shared).toMatchObject({ path: user, by: '9p' });
      };
      const guest = async (...words: string[]) => {
        const { exit, out, err } = await rdctl('shell', ...words);
        expect(exit, `${words.join(' ')}: ${err}`).toBe(0);
        return out;
      };
      const owner = async (name: string) => Number(await guest('stat', '-c', '%u', join(user, name)));
      const container = async (script: string) => {
        const { engine } = await status();
        const command = ['/bin/busybox', 'sh', '-c', script];
        return runContainer(engine.endpoint ?? '', { image: IMAGE, command, binds: [`${user}:/home`] });
      };
      writeFileSync(join(user, 'from-host'), 'hello\n');

      await apply('mapped-file');
      const mount = (await guest('cat', '/proc/mounts')).split('\n').find((line) => line.includes(' 9p ')) ?? '';
      const options = mount.split(' ')[3]?.split(',');
      expect(options, mount).toEqual(expect.arrayContaining(['version=9p2000.u', 'msize=262144']));
      const { engine } = await status();
      await engineJson(engine.endpoint ?? '', 'POST', `/images/create?fromSrc=-&repo=test/base&tag=1`, busyboxRoot());
      expect(await container(`cat /home/from-host; echo back > /home/kept; chown ${OWNER} /home/kept`)).toEqual({
        status: 0,
        output: 'hello\n',
      });
      // The owner is stored as an attribute.
      expect(readFileSync(join(user, 'kept'), 'utf8')).toBe('back\n');
      expect(statSync(join(user, 'kept')).uid).toBe(process.getuid?.());
      expect(await owner('kept')).toBe(OWNER);

      await apply('none');
      expect(await owner('kept')).toBe(process.getuid?.());
      expect(await container('cat /home/kept')).toEqual({ status: 0, output: 'back\n' });

      expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
      writeFileSync(join(user, 'from-host'), 'meanwhile\n');
      await apply('none');
      expect((await status()).machine.started).toMatchObject({ how: 'resume' });
      expect(await container('cat /home/from-host; echo again > /home/kept')).toEqual({
        status: 0,
        output: 'meanwhile\n',
      });
      expect(readFileSync(join(user, 'kept'), 'utf8')).toBe('again\n');
    },
    LIMIT_MS,
  );
});
