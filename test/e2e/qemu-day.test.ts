import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { arm64Program } from '../helpers/arm64-program.ts';
import { ECHO_SERVER, echoed } from '../helpers/datagrams.ts';
import { distantRegistry } from '../helpers/distant-registry.ts';
import { freePort } from '../helpers/free-port.ts';
import { linkImages, whyNoRealGuest } from '../helpers/guest-image.ts';
import { prepareMachine } from '../helpers/prepared-machine.ts';
import { putImage } from '../helpers/registry-image.ts';
import { toolHome } from '../helpers/tool-home.ts';

// One resume without KVM, next to other tests.
const LIMIT_MS = 1_800_000;
const POLL = { timeout: 600_000, interval: 1_000 };
const INDEX = 'application/vnd.oci.image.index.v1+json';
const HAS_IPV6 = Object.values(networkInterfaces()).some((each) => each?.some(({ address }) => address === '::1'));

const reason = await whyNoRealGuest();

/** `examples/working-day.yaml` with the registry and the server of the test. */
function profileOf(registry: string, hostPort: number, engine: 'moby' | 'containerd'): string {
  const profile = parse(readFileSync('examples/working-day.yaml', 'utf8'));
  const { containerEngine } = profile.settings;
  containerEngine.name = engine;
  containerEngine.allowedImages.patterns = [`${registry}/team/base`, `${registry}/team/multi`];
  profile.machine.hostPorts = [hostPort];
  return stringify(profile);
}

/** A server over UDP beside the example: busybox has none. */
const UDP_COMPOSE = (image: string, port: number) =>
  stringify({
    services: {
      echo: {
        image,
        command: ECHO_SERVER.map((word) => word.replaceAll('$', '$$$$')),
        ports: [`${port}:7/udp`],
        volumes: ['/:/guest:ro'],
      },
    },
  });

/** A day's work with docker and compose in the guest, on files of this computer: what docs/get-started.md shows. */
describe.skipIf(reason !== undefined)('a working day in a guest', () => {
  test(
    'runs a stack, makes an image for two platforms, obeys the allowed images, and serves containerd by digest',
    async () => {
      const registry = await distantRegistry();
      onTestFinished(() => registry.close());
      const { secure } = registry;
      const base = await putImage(registry.host, { name: 'team/base:1', content: 'busybox' });
      await putImage(registry.host, { name: 'team/other:1', content: 'busybox' });
      const user = realpathSync(mkdtempSync(join(tmpdir(), 'rd-day-')));
      onTestFinished(() => rmSync(user, { recursive: true, force: true }));
      const [port, datagrams] = [await freePort(), await freePort()];
      cpSync('examples/working-day', user, { recursive: true });
      const files = {
        'udp.yaml': UDP_COMPOSE(`${secure}/team/base:1`, datagrams),
        '.env': `BASE=${secure}/team/base:1\nWEB_PORT=${port}\nCOMPOSE_FILE=compose.yaml:udp.yaml\n`,
        'other/Dockerfile': `FROM ${secure}/team/other:1\n`,
        'multi/Dockerfile':
          'FROM scratch\nARG TARGETARCH\nCOPY $TARGETARCH /\nRUN ["/busybox", "true"]\nCMD ["/busybox", "uname", "-m"]\n',
        'multi/amd64/busybox': readFileSync('/bin/busybox'),
        'multi/arm64/busybox': arm64Program('aarch64\n'),
      };
      for (const [name, content] of Object.entries(files)) {
        mkdirSync(join(user, name, '..'), { recursive: true });
        writeFileSync(join(user, name), content, { mode: 0o755 });
      }
      const desk = createServer((_, response) => response.end('a service of this computer'));
      await new Promise<void>((resolve) => desk.listen(0, '127.0.0.1', resolve));
      onTestFinished(() => void desk.close());
      const deskPort = (desk.address() as AddressInfo).port;
      const { home, rdctl, rdctlWith, status } = toolHome({ ...registry.env, HOME: user });
      linkImages(home);
      await prepareMachine(join(home, 'state', 'drivers', 'qemu'));
      const inGuest = (script: string) => rdctl('shell', 'sh', '-c', `cd ${user} && ${script}`);
      const apply = (engine: 'moby' | 'containerd') =>
        rdctlWith({ stdin: profileOf(secure, deskPort, engine) }, 'apply', '-f', '-', '--driver', 'qemu');

      const applied = await apply('moby');
      expect(applied, applied.err).toMatchObject({ exit: 0 });
      const first = await status();
      expect(first).toMatchObject({ converged: true, engine: { name: 'moby' } });

      const up = await inGuest('docker compose up --build --detach 2>&1');
      expect(up, up.out).toMatchObject({ exit: 0 });
      const page = (host: string) => async () =>
        (await fetch(`http://${host}:${port}/index.html`).catch(() => undefined))?.text();
      for (const host of HAS_IPV6 ? ['127.0.0.1', '[::1]'] : ['127.0.0.1']) {
        await expect.poll(page(host), POLL).toBe('from this computer\n');
      }
      await expect.poll(() => echoed(datagrams), POLL).toBe('hello');
      const stored = async () => (await inGuest('docker compose exec reader busybox cat /state/page /built')).out;
      await expect.poll(stored, POLL).toBe('from this computer\nbuilt on this computer\n');
      writeFileSync(join(user, 'www', 'index.html'), 'edited');
      await expect.poll(page('127.0.0.1'), POLL).toBe('edited');
      const url = `http://host.docker.internal:${deskPort}/`;
      const called = () => inGuest(`docker compose exec reader busybox wget -qO- ${url}`);
      await expect.poll(called, POLL).toMatchObject({ exit: 0, out: 'a service of this computer' });

      // Containers of the user are no drift.
      const again = await apply('moby');
      expect(again).toMatchObject({ exit: 0, out: expect.stringContaining('Nothing to change.') });
      // On a busy computer an observation may fail, which changes nothing.
      expect((await status()).counters).toEqual({ ...first.counters, failures: expect.any(Number) });

      const other = await inGuest('docker build other 2>&1');
      expect(other).toMatchObject({ exit: 1, out: expect.stringContaining(`${secure}/team/other:1 is not among the`) });
      const pulled = await inGuest(`docker pull ${secure}/team/other:1 2>&1`);
      expect(pulled).toMatchObject({
        exit: 1,
        out: expect.stringContaining(`${secure}/team/other:1 is not among the`),
      });

      const platforms = 'linux/amd64,linux/arm64';
      const built = await inGuest(
        `docker buildx build --platform ${platforms} --push -t ${secure}/team/multi:1 multi 2>&1`,
      );
      expect(built, built.out).toMatchObject({ exit: 0 });
      const answer = await fetch(`http://${registry.host}/v2/team/multi/manifests/1`, { headers: { accept: INDEX } });
      const index = (await answer.json()) as { manifests: { platform: { architecture: string } }[] };
      expect(index.manifests.map(({ platform }) => platform.architecture)).toEqual(
        expect.arrayContaining(['amd64', 'arm64']),
      );
      const multi = `${secure}/team/multi@${answer.headers.get('docker-content-digest')}`;
      const ran = await inGuest(`docker run --rm --platform linux/arm64 ${multi}`);
      expect(ran).toMatchObject({ exit: 0, out: 'aarch64\n' });

      const switched = await apply('containerd');
      expect(switched, switched.err).toMatchObject({ exit: 0 });
      expect(await status()).toMatchObject({ converged: true, engine: { name: 'containerd' } });
      const pull = (image: string) =>
        inGuest(`ctr images pull --all-platforms --hosts-dir /run/rdctl/containerd/hosts.d ${image} 2>&1`);
      const same = `${secure}/team/base@${base}`;
      for (const image of [multi, same]) {
        const got = await pull(image);
        expect(got, got.out).toMatchObject({ exit: 0 });
      }
      expect(await pull(`${secure}/team/other:1`)).toMatchObject({
        exit: 1,
        out: expect.stringContaining('not among'),
      });
      const run = (...words: string[]) => inGuest(`ctr run --rm ${words.join(' ')} 2>&1`);
      expect(await run(multi, 'own')).toMatchObject({ exit: 0, out: 'x86_64\n' });
      expect(await run('--platform', 'linux/arm64', multi, 'arm')).toMatchObject({ exit: 0, out: 'aarch64\n' });
      expect(await run(same, 'base', 'busybox', 'echo', 'base')).toMatchObject({ exit: 0, out: 'base\n' });
    },
    LIMIT_MS,
  );
});
