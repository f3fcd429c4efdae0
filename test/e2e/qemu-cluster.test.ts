import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { get as httpGet } from 'node:http';
import { get as httpsGet } from 'node:https';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { readProcesses } from '../../src/os/process-table.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { freePort } from '../helpers/free-port.ts';
import { linkImages, whyNoRealGuest } from '../helpers/guest-image.ts';
import { POD, publishForGuest } from '../helpers/k3s-in-guest.ts';
import { releaseServer } from '../helpers/k3s-release-server.ts';
import { prepareMachine } from '../helpers/prepared-machine.ts';
import { userHome } from '../helpers/user-home.ts';

// One resume without KVM, next to other tests.
const LIMIT_MS = 1_800_000;
const POLL = { timeout: 600_000, interval: 1_000 };
const OLD = 'v1.32.9+k3s1';
const NEW = 'v1.33.6+k3s1';
const WORK = { name: 'work', cluster: { server: 'https://work.example' } };

const { entry } = builtTool();
const reason = await whyNoRealGuest();

/** A user with a kubeconfig, a release server, and the built tool: k3s is a stand-in, everything around it is real. */
describe.skipIf(reason !== undefined)('a cluster in the guest', () => {
  test(
    'is created by a profile, follows every change, and leaves nothing behind',
    async () => {
      const server = await releaseServer();
      onTestFinished(() => server.close());
      for (const release of [OLD, NEW]) publishForGuest(server, release);
      server.channels.set('stable', NEW).set('v1.32', OLD);
      const { at, rdctl } = userHome(entry(), {
        RDCTL_K3S_CHANNELS_URL: server.channelsUrl,
        RDCTL_K3S_RELEASES_URL: server.releasesUrl,
      });
      mkdirSync(at('.local', 'share', 'rdctl'), { recursive: true });
      linkImages(at('.local', 'share', 'rdctl'));
      await prepareMachine(at('.local', 'state', 'rdctl', 'drivers', 'qemu'));
      mkdirSync(at('.kube'));
      const foreign = { apiVersion: 'v1', kind: 'Config', clusters: [WORK], contexts: [], users: [] };
      writeFileSync(at('.kube', 'config'), stringify({ ...foreign, 'current-context': 'work' }));

      let port = await freePort();
      const kubernetes = { enabled: true, version: '1.32.9', port };
      const apply = async (change: object, ...more: string[]) => {
        Object.assign(kubernetes, change);
        const settings = { version: 19, containerEngine: { name: engine }, kubernetes };
        const profile = {
          apiVersion: 'rdctl/v1',
          kind: 'Profile',
          metadata: { name: 'k' },
          settings,
          state: 'started',
        };
        writeFileSync(at('profile.json'), JSON.stringify(profile));
        return rdctl('apply', '-f', at('profile.json'), '--driver', 'qemu', ...more);
      };
      let engine = 'moby';
      const status = async () => JSON.parse((await rdctl('status', '-o', 'json')).out);
      const guest = async (...words: string[]) => {
        const { exit, out, err } = await rdctl('shell', ...words);
        return exit === 0 ? out.trim() : `exit ${exit}: ${err}`;
      };
      const k3s = '/var/lib/rdctl/data/k3s';
      const starts = async () => (await guest('cat', `${k3s}/state/server/db/starts`)).split('\n');
      const kubeconfig = () => parse(readFileSync(at('.kube', 'config'), 'utf8'));
      // The kubeconfig follows the cluster a moment later.
      const reachedAs = async (release: string) => {
        const there = () => kubeconfig().clusters[1]?.cluster.server;
        await expect.poll(there, POLL).toBe(`https://127.0.0.1:${port}`);
        expect(JSON.parse(await ask(kubeconfig(), '/version'))).toEqual({ gitVersion: release });
      };

      // From nothing to a cluster that answers to the credentials in the user's kubeconfig.
      expect(await apply({})).toMatchObject({ exit: 0 });
      expect(await status()).toMatchObject({
        converged: true,
        cluster: { state: 'running', ready: true, installedVersion: '1.32.9' },
      });
      await reachedAs(OLD);
      expect(kubeconfig()).toMatchObject({ clusters: [WORK, { name: 'rdctl' }], 'current-context': 'work' });
      await expect(ask(kubeconfig(), '/version', false)).rejects.toThrow();
      expect(JSON.parse((await rdctl('list-settings')).out).kubernetes).toMatchObject({
        ...{ enabled: true, version: '1.32.9', port },
      });
      expect(await guest('docker', 'images', '--format', '{{.Repository}}:{{.Tag}}')).toBe('test/pod:1');
      const config = JSON.parse(await guest('cat', `${k3s}/state/server/db/config`));
      expect(config).toMatchObject({ docker: true, 'https-listen-port': port, 'node-name': 'rdctl' });

      // A port of this computer is forwarded to the pod, at its address in the guest.
      const body = { namespace: 'default', service: 'web', k8sPort: 'http', hostPort: 0 };
      const forwarded = await rdctl('api', 'port_forwarding', '-X', 'POST', '-b', JSON.stringify(body));
      expect(forwarded).toMatchObject({ exit: 0 });
      const page = () => textOf(Number(forwarded.out.trim())).catch(String);
      await expect.poll(page, POLL).toBe(`made by ${OLD}\n`);

      // Another port: the cluster restarts with its data; the machine and the engine run on.
      const before = await status();
      const left = port;
      port = await freePort();
      expect(await apply({ port })).toMatchObject({ exit: 0 });
      await reachedAs(OLD);
      expect(await starts()).toEqual([`${OLD} ${left}`, `${OLD} ${port}`]);
      expect((await status()).counters.steps - before.counters.steps).toBe(2);
      expect(await isOpen(left)).toBe(false);
      await expect.poll(page, POLL).toBe(`made by ${OLD}\n`);

      // A later version is installed in place; workloads run on.
      expect(await apply({ version: '1.33.6' })).toMatchObject({ exit: 0 });
      await reachedAs(NEW);
      await expect.poll(page, POLL).toBe(`made by ${OLD}\n`);
      expect(await guest('ls', `${k3s}/programs`)).toBe(NEW);

      // The service exits; the cluster runs on.
      const connection = JSON.parse(readFileSync(at('.local', 'share', 'rdctl', 'app-engine.json'), 'utf8'));
      process.kill(connection.pid, 'SIGKILL');
      expect(await apply({})).toMatchObject({ exit: 0 });
      expect((await status()).counters.steps).toBe(0);
      expect(await ask(kubeconfig(), '/readyz')).toBe('ok');

      // Off: nothing of it runs on either side, and the user's file is restored.
      expect(await apply({ enabled: false })).toMatchObject({ exit: 0 });
      await expect.poll(kubeconfig, POLL).toEqual({ ...foreign, 'current-context': 'work' });
      expect(await guest('docker', 'ps', '--all', '--format', '{{.Names}} {{.State}}')).toBe(`${POD} exited`);
      expect(await guest('systemctl', 'list-units', '--plain', '--no-legend', 'rdctl-k3s*')).toBe('');
      expect(await isOpen(port)).toBe(false);

      // An earlier version deletes the data, even while the cluster is off, and requires consent.
      engine = 'containerd';
      const refused = await apply({ enabled: true, version: '1.32.9' });
      expect(refused).toMatchObject({ exit: 5 });
      expect(refused.err).toContain('--allow-reset');
      expect((await starts()).length).toBe(3);
      // On the other engine: with its own images, in the namespace of pods.
      expect(await apply({}, '--allow-reset')).toMatchObject({ exit: 0 });
      expect(await status()).toMatchObject({ converged: true, engine: { name: 'containerd' } });
      expect(await starts()).toEqual([`${OLD} ${port}`]);
      expect(await guest('ctr', '--namespace', 'k8s.io', 'tasks', 'ls', '-q')).toBe(POD);
      await expect.poll(page, POLL).toBe(`made by ${OLD}\n`);

      // A reset: the same release, with nothing in it.
      const { resets } = (await status()).counters;
      // On a busy computer a probe of the cluster may be late, and a reset is refused meanwhile.
      await expect.poll(async () => (await status()).converged, POLL).toBe(true);
      expect(await rdctl('reset', '--k8s')).toMatchObject({ exit: 0 });
      expect(await status()).toMatchObject({ converged: true, counters: { resets: resets + 1 } });
      expect(await starts()).toEqual([`${OLD} ${port}`]);
      await expect.poll(page, POLL).toBe(`made by ${OLD}\n`);

      expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
      const directory = at('.local', 'state', 'rdctl', 'drivers', 'qemu');
      const traces = (await readProcesses()).filter(({ argv }) => argv.join(' ').includes(directory));
      expect(traces).toEqual([]);
      expect(readFileSync(join(directory, 'k3s-release'), 'utf8')).toBe(`${OLD}\n`);
    },
    LIMIT_MS,
  );
});

interface Kubeconfig {
  clusters: { name: string; cluster: Record<string, string> }[];
  users: { name: string; user: Record<string, string> }[];
}

/** As kubectl would with the entries of that name. */
function ask({ clusters, users }: Kubeconfig, path: string, known = true): Promise<string> {
  const cluster = clusters.find(({ name }) => name === 'rdctl')?.cluster ?? {};
  const user = users.find(({ name }) => name === 'rdctl')?.user ?? {};
  const data = (text = '') => Buffer.from(text, 'base64');
  const own = { cert: data(user['client-certificate-data']), key: data(user['client-key-data']) };
  const options = { ca: data(cluster['certificate-authority-data']), agent: false, ...(known ? own : {}) };
  return new Promise((resolve, reject) => {
    httpsGet(`${cluster.server}${path}`, options, (answer) => collect(answer).then(resolve, reject)).once(
      'error',
      reject,
    );
  });
}

function textOf(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, agent: false };
    httpGet(options, (answer) => collect(answer).then(resolve, reject)).once('error', reject);
  });
}

async function collect(parts: AsyncIterable<Buffer>): Promise<string> {
  let text = '';
  for await (const part of parts) text += part.toString();
  return text;
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: '127.0.0.1', port });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
