import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { distantRegistry } from '../helpers/distant-registry.ts';
import { freePort } from '../helpers/free-port.ts';
import { linkImages, whyNoRealGuest } from '../helpers/guest-image.ts';
import { prepareMachine } from '../helpers/prepared-machine.ts';
import { putImage } from '../helpers/registry-image.ts';
import { toolHome } from '../helpers/tool-home.ts';

// One resume without KVM, next to other tests.
const LIMIT_MS = 600_000;
const POLL = { timeout: 120_000, interval: 1_000 };
const INDEX = 'application/vnd.oci.image.index.v1+json';

const reason = await whyNoRealGuest();

const PROFILE = (registry: string) => `
apiVersion: rdctl/v1
kind: Profile
state: started
settings:
  version: 19
  containerEngine:
    name: moby
    mobyStorageDriver: snapshotter
    allowedImages: { enabled: true, patterns: ['${registry}/team/base:1', '${registry}/team/multi'] }
  kubernetes: { enabled: false }
`;

const COMPOSE = (port: number) => `
services:
  web:
    build: ./image
    command: [busybox, httpd, -f, -p, '8080', -h, /www]
    ports: ['${port}:8080']
    volumes: ['./www:/www:ro']
  client:
    build: ./image
    command: [sh, -c, 'until busybox wget -qO /state/page http://web:8080/page; do busybox sleep 1; done; busybox sleep 3600']
    volumes: ['state:/state']
volumes:
  state: {}
`;

/** A day's work with docker and compose in the guest, on files of this computer. */
describe.skipIf(reason !== undefined)('builds in a guest', () => {
  test(
    'run a stack, make an image for two platforms, obey the allowed images, and serve containerd by digest',
    async () => {
      const registry = await distantRegistry();
      onTestFinished(() => registry.close());
      const { secure } = registry;
      for (const name of ['team/base:1', 'team/other:1']) await putImage(registry.host, { name, content: 'busybox' });
      const user = realpathSync(mkdtempSync(join(tmpdir(), 'rd-builds-')));
      onTestFinished(() => rmSync(user, { recursive: true, force: true }));
      const port = await freePort();
      const files = {
        'compose.yaml': COMPOSE(port),
        'www/page': 'from this computer',
        'image/Dockerfile': `FROM ${secure}/team/base:1\nCOPY note /note\nRUN ["busybox", "cp", "/note", "/built"]\n`,
        'image/note': 'a note',
        'other/Dockerfile': `FROM ${secure}/team/other:1\n`,
        'multi/Dockerfile': 'FROM scratch\nCOPY Dockerfile /\n',
      };
      for (const [name, text] of Object.entries(files)) {
        mkdirSync(join(user, name, '..'), { recursive: true });
        writeFileSync(join(user, name), text);
      }
      const { home, rdctl, rdctlWith, status } = toolHome({ ...registry.env, HOME: user });
      linkImages(home);
      await prepareMachine(join(home, 'state', 'drivers', 'qemu'));
      const inGuest = (script: string) => rdctl('shell', 'sh', '-c', `cd ${user} && ${script}`);

      const applied = await rdctlWith({ stdin: PROFILE(secure) }, 'apply', '-f', '-', '--driver', 'qemu');
      expect(applied, applied.err).toMatchObject({ exit: 0 });
      expect(await status()).toMatchObject({ converged: true, engine: { name: 'moby' } });

      const up = await inGuest('docker compose up --build --detach 2>&1');
      expect(up, up.out).toMatchObject({ exit: 0 });
      const page = async () => (await fetch(`http://127.0.0.1:${port}/page`).catch(() => undefined))?.text();
      await expect.poll(page, POLL).toBe('from this computer');
      const stored = async () => (await inGuest('docker compose exec client busybox cat /state/page /built')).out;
      await expect.poll(stored, POLL).toBe('from this computera note');

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

      expect(await rdctl('set', '--container-engine.name=containerd')).toMatchObject({ exit: 0 });
      await expect
        .poll(async () => (await status()).converged && (await status()).engine.name, POLL)
        .toBe('containerd');
      const multi = `${secure}/team/multi@${answer.headers.get('docker-content-digest')}`;
      const pull = (image: string) =>
        inGuest(`ctr images pull --all-platforms --hosts-dir /run/rdctl/containerd/hosts.d ${image} 2>&1`);
      const got = await pull(multi);
      expect(got, got.out).toMatchObject({ exit: 0 });
      expect(await pull(`${secure}/team/other:1`)).toMatchObject({
        exit: 1,
        out: expect.stringContaining('not among'),
      });
    },
    LIMIT_MS,
  );
});
