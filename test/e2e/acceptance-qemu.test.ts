import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readProcesses } from '../../src/os/process-table.ts';
import { run } from '../../src/os/run.ts';
import { arm64Program } from '../helpers/arm64-program.ts';
import { busyboxRoot } from '../helpers/busybox.ts';
import { callEngine, engineJson, runContainer } from '../helpers/engine-client.ts';
import { linkImages, whyNoRealGuest } from '../helpers/guest-image.ts';
import { tarOf } from '../helpers/tar.ts';
import { toolHome } from '../helpers/tool-home.ts';

// Two boots without KVM, next to other tests.
const LIMIT_MS = 1_800_000;
const POLL = { timeout: 600_000, interval: 2_000 };
const IMAGE = 'test/base:1';
const FETCH = ['/bin/busybox', 'wget', '-q', '-O', '-'];
const HOST_NAMES = {
  default: 'host.docker.internal',
  own: 'host.rancher-desktop.internal',
  host: 'host.lima.internal',
};
const READ = { image: IMAGE, command: ['/bin/busybox', 'cat', '/data/kept'], binds: ['kept:/data'] };
const WRITE = { ...READ, command: ['/bin/busybox', 'sh', '-c', 'echo here > /data/kept'] };

const reason = await whyNoRealGuest();

/** Sends a word on a free port of this address. */
async function serve(address: string, word: string): Promise<number> {
  const server = createServer((_request, response) => void response.end(word));
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** From a profile to an engine in a guest, with the built tool and what a new user has: a home and an image. */
describe.skipIf(reason !== undefined)('the qemu driver', () => {
  test(
    'turns a profile into an engine in a guest, which survives the service, changes, and recovers from a crash',
    async () => {
      const { home, rdctl, status, servicePid } = toolHome();
      linkImages(home);
      const directory = join(home, 'state', 'drivers', 'qemu');
      const traces = async () => (await readProcesses()).filter(({ argv }) => argv.join(' ').includes(directory));
      const apply = async (example: string) =>
        expect(await rdctl('apply', '-f', `examples/${example}.yaml`, '--driver', 'qemu')).toMatchObject({ exit: 0 });

      await apply('moby');
      const first = await status();
      expect(first).toMatchObject({ converged: true, driver: { name: 'qemu' }, engine: { name: 'moby' } });
      const endpoint = first.engine.endpoint ?? '';
      const { KernelVersion } = await engineJson(endpoint, 'GET', '/version');

      // Arguments, streams and exit status pass unchanged into the guest.
      expect(await rdctl('shell', 'uname', '-r')).toEqual({ exit: 0, out: `${String(KernelVersion)}\n`, err: '' });
      expect(KernelVersion).not.toBe(readFileSync('/proc/sys/kernel/osrelease', 'utf8').trim());
      const words = await rdctl('shell', 'printf', '[%s]', 'a  b', "'$HOME'", '', '*');
      expect(words).toEqual({ exit: 0, out: "[a  b]['$HOME'][][*]", err: '' });
      expect(await rdctl('shell', 'sh', '-c', 'echo wrong >&2; exit 7')).toEqual({ exit: 7, out: '', err: 'wrong\n' });
      const inside = await rdctl('shell', 'docker', 'version', '--format', '{{.Server.KernelVersion}}');
      expect(inside).toMatchObject({ exit: 0, out: `${String(KernelVersion)}\n` });
      expect(await rdctl('info', '--field', 'ip-address')).toMatchObject({ exit: 0, out: '127.0.0.1\n' });
      const { accelerator = '', emulatedBecause = '' } = first.machine;
      expect(accelerator).toMatch(/^(?:kvm|tcg)$/);
      expect(emulatedBecause !== '').toBe(accelerator === 'tcg');
      expect(await rdctl('info', '--field', 'accelerator')).toMatchObject({ exit: 0, out: `${accelerator}\n` });

      // Files and logins, without the service.
      const file = join(home, 'ssh.conf');
      writeFileSync(file, (await rdctl('ssh-config')).out);
      expect((await run(['ssh', '-F', file, 'rdctl', 'uname', '-r'])).stdout).toBe(`${String(KernelVersion)}\n`);
      expect(await rdctl('cp', 'examples', 'machine:/srv')).toEqual({ exit: 0, out: '', err: '' });
      expect(await rdctl('cp', 'machine:/srv/examples/moby.yaml', home)).toEqual({ exit: 0, out: '', err: '' });
      expect(readFileSync(join(home, 'moby.yaml'))).toEqual(readFileSync('examples/moby.yaml'));
      expect(await rdctl('cp', 'machine:/srv/examples', home)).toEqual({ exit: 0, out: '', err: '' });
      expect(readdirSync(join(home, 'examples'))).toEqual(readdirSync('examples'));

      await engineJson(endpoint, 'POST', `/images/create?fromSrc=-&repo=test/base&tag=1`, busyboxRoot());
      await engineJson(endpoint, 'POST', '/volumes/create', { Name: 'kept' });
      expect(await runContainer(endpoint, WRITE)).toEqual({ status: 0, output: '' });

      // This computer has a name in the guest, and in containers on any network.
      const open = await serve('0.0.0.0', 'for everyone');
      await engineJson(endpoint, 'POST', '/networks/create', { Name: 'own' });
      const fetched = async (port: number, network = 'default', name = HOST_NAMES.default) => {
        const command = [...FETCH, `http://${name}:${port}/`];
        const fetch = async () => (await runContainer(endpoint, { image: IMAGE, command, network })).output;
        const output = await fetch();
        // It gives up a query that takes long; beside other guests some do.
        return output.includes('bad address') ? fetch() : output;
      };
      await expect.poll(() => fetched(open), POLL).toBe('for everyone');
      for (const [network, name] of Object.entries(HOST_NAMES)) {
        expect(await fetched(open, network, name), network).toBe('for everyone');
        const inGuest = async () => (await rdctl('shell', 'getent', 'ahostsv4', name)).out;
        // As above.
        await expect.poll(inGuest, POLL).toMatch(/^10\.0\.2\.2 /);
      }

      // What listens on its loopback interface only is refused, unless the profile allows it.
      const closed = await serve('127.0.0.1', 'for this computer');
      const allow = async (hostPorts: number[]) => {
        const file = join(home, 'ports.yaml');
        writeFileSync(file, `${readFileSync('examples/moby.yaml', 'utf8')}machine: ${JSON.stringify({ hostPorts })}\n`);
        expect(await rdctl('apply', '-f', file)).toMatchObject({ exit: 0 });
      };
      const refused = 'Connection refused';
      expect(await fetched(closed)).toContain(refused);
      expect(await fetched(closed, 'host')).toContain(refused);
      await allow([closed]);
      expect(await fetched(closed)).toBe('for this computer');
      expect((await status()).machine).toMatchObject({
        openHostPorts: { udp: expect.arrayContaining([String(closed)]) },
      });
      await allow([]);
      expect(await fetched(closed)).toContain(refused);
      expect(await fetched(open)).toBe('for everyone');

      // Programs of another architecture run, in containers that know nothing of it.
      const foreign = tarOf([{ path: 'hello', content: arm64Program('hello\n') }]);
      await engineJson(endpoint, 'POST', '/images/create?fromSrc=-&repo=test/arm&tag=1&platform=linux/arm64', foreign);
      const hello = await runContainer(endpoint, { image: 'test/arm:1', command: ['/hello'] });
      expect(hello).toEqual({ status: 0, output: 'hello\n' });

      // The service exits; the guest keeps running.
      process.kill(servicePid(), 'SIGKILL');
      await apply('moby');
      expect(await status()).toMatchObject({ converged: true, counters: { steps: 0, settingsPuts: 0 } });

      // The connection to the guest dies too, and the engine does not notice.
      const master: { pid: number } = JSON.parse(readFileSync(join(directory, 'ssh.pid.json'), 'utf8'));
      process.kill(master.pid, 'SIGKILL');
      await expect.poll(async () => (await callEngine(endpoint, 'GET', '/_ping')).status, POLL).toBe(200);
      expect((await status()).counters.steps).toBe(0);

      await apply('containerd');
      const other = await status();
      expect(other).toMatchObject({ converged: true, engine: { name: 'containerd' } });
      expect(await rdctl('shell', 'ctr', 'version')).toMatchObject({ exit: 0 });
      await apply('moby');
      expect(await runContainer(endpoint, READ)).toEqual({ status: 0, output: 'here\n' });

      // QEMU dies: the guest is restarted with its data.
      const qemu: { pid: number } = JSON.parse(readFileSync(join(directory, 'qemu.pid.json'), 'utf8'));
      process.kill(qemu.pid, 'SIGKILL');
      await expect.poll(async () => (await status()).counters.steps, POLL).toBeGreaterThan(4);
      await expect.poll(async () => (await status()).converged, POLL).toBe(true);
      expect(await runContainer(endpoint, READ)).toEqual({ status: 0, output: 'here\n' });

      expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
      expect(await traces()).toEqual([]);
      expect(existsSync(join(directory, 'run'))).toBe(false);
      expect((await rdctl('shell', 'true')).exit).toBe(1);
    },
    LIMIT_MS,
  );
});
