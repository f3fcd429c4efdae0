import { describe, expect, test } from 'vitest';
import { busyboxRoot } from '../helpers/busybox.ts';
import { engineJson, runContainer } from '../helpers/engine-client.ts';
import { linkSuite, whyNoRealGuest } from '../helpers/guest-image.ts';
import { toolHome } from '../helpers/tool-home.ts';

// Three boots without KVM, next to other tests.
const LIMIT_MS = 1_800_000;
const IMAGE = 'test/base:1';
const command = (script: string) => ({
  image: IMAGE,
  command: ['/bin/busybox', 'sh', '-c', script],
  binds: ['kept:/data'],
});

const reason = await whyNoRealGuest();

describe.skipIf(reason !== undefined)('a machine with another image', () => {
  test(
    'has its images, containers and volumes after an upgrade of Debian and after the way back',
    async () => {
      const { home, rdctl, status } = toolHome();
      const images = { 20: linkSuite(home, 'bookworm'), 26: linkSuite(home, 'trixie') };
      const boot = async (version: 20 | 26) => {
        expect(await rdctl('image', 'use', images[version])).toMatchObject({ exit: 0 });
        const applied = await rdctl('apply', '-f', 'examples/moby.yaml', '--driver', 'qemu');
        expect(applied, applied.err).toMatchObject({ exit: 0 });
        const endpoint = (await status()).engine.endpoint ?? '';
        const { Version } = await engineJson(endpoint, 'GET', '/version');
        expect(String(Version)).toMatch(new RegExp(`^${version}\\.`));
        return endpoint;
      };
      const stop = async () => expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });

      let endpoint = await boot(20);
      await engineJson(endpoint, 'POST', '/images/create?fromSrc=-&repo=test/base&tag=1', busyboxRoot());
      expect(await runContainer(endpoint, command('echo first > /data/kept'))).toEqual({ status: 0, output: '' });
      await stop();

      endpoint = await boot(26);
      expect(await runContainer(endpoint, command('cat /data/kept; echo second >> /data/kept'))).toEqual({
        status: 0,
        output: 'first\n',
      });
      for (const plugin of ['buildx', 'compose']) {
        expect(await rdctl('shell', 'docker', plugin, 'version')).toMatchObject({ exit: 0 });
      }
      const listed: { digest: string }[] = JSON.parse((await rdctl('image', 'list', '-o', 'json')).out);
      expect(listed).toEqual(
        expect.arrayContaining([
          expect.objectContaining({ digest: images[26], current: true, next: true }),
          expect.objectContaining({ digest: images[20], current: false, next: false }),
        ]),
      );
      await stop();

      endpoint = await boot(20);
      expect(await runContainer(endpoint, command('cat /data/kept'))).toEqual({ status: 0, output: 'first\nsecond\n' });
      await stop();
    },
    LIMIT_MS,
  );
});
