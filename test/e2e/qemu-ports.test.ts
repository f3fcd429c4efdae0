import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { busyboxRoot } from '../helpers/busybox.ts';
import { callEngine, engineJson, startContainer } from '../helpers/engine-client.ts';
import { freePort } from '../helpers/free-port.ts';
import { linkImages, whyNoRealGuest } from '../helpers/guest-image.ts';
import { prepareMachine } from '../helpers/prepared-machine.ts';
import { toolHome } from '../helpers/tool-home.ts';

// One resume without KVM, next to other tests.
const LIMIT_MS = 900_000;
const POLL = { timeout: 120_000, interval: 1_000 };
const IMAGE = 'test/base:1';
const WAY = '--experimental.virtual-machine.ssh-port-forwarder';

const reason = await whyNoRealGuest();

/** What a program on this host reads there; empty where nothing answers. */
async function fetched(port: number): Promise<string> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/`, { signal: AbortSignal.timeout(10_000) });
    return (await response.text()).trim();
  } catch {
    return '';
  }
}

/** A command that sends a word on a port, `ADDRESS:PORT` or just a port. */
function saying(word: string, at: string): string[] {
  const script = `/bin/busybox mkdir -p /www && echo ${word} > /www/index.html && exec /bin/busybox httpd -f -p ${at} -h /www`;
  return ['/bin/busybox', 'sh', '-c', script];
}

describe.skipIf(reason !== undefined)('container ports in a guest', () => {
  test(
    'are forwarded from this host, whatever happens to containers, connection and service',
    async () => {
      const { home, rdctl, status, servicePid } = toolHome();
      linkImages(home);
      const directory = join(home, 'state', 'drivers', 'qemu');
      await prepareMachine(directory);
      const apply = async () =>
        expect(await rdctl('apply', '-f', 'examples/moby.yaml', '--driver', 'qemu')).toMatchObject({ exit: 0 });
      const [web, taken, own] = [await freePort(), await freePort(), await freePort()];
      const reach = (port: number) => expect.poll(() => fetched(port), POLL);
      const told = (port: number) =>
        expect.poll(async () => (await status()).ports?.find((each) => each.port === port), POLL);

      await apply();
      const first = await status();
      const endpoint = first.engine.endpoint ?? '';
      const publish = (word: string, port: number) =>
        startContainer(endpoint, {
          image: IMAGE,
          command: saying(word, '80'),
          ports: { '80/tcp': [{ HostIp: '', HostPort: String(port) }] },
        });
      const remove = (id: string) => engineJson(endpoint, 'DELETE', `/containers/${id}?force=1`);
      await engineJson(endpoint, 'POST', `/images/create?fromSrc=-&repo=test/base&tag=1`, busyboxRoot());
      expect(await fetched(web)).toBe('');

      const one = await publish('one', web);
      await reach(web).toBe('one');
      await told(web).toEqual({ port: web, state: 'forwarded' });
      expect((await rdctl('status')).out).toMatch(
        new RegExp(`^Ports +.*${web}.* of the machine, at 127\\.0\\.0\\.1$`, 'm'),
      );

      // A port in use on this host is reported, is no failure of the service, and clears when the other program exits.
      const other = createServer((_request, response) => void response.end('other'));
      await new Promise<void>((resolve) => other.listen(taken, '127.0.0.1', resolve));
      onTestFinished(() => void other.close());
      const two = await publish('two', taken);
      const why = `another program is listening on 127.0.0.1:${taken}`;
      await told(taken).toEqual({ port: taken, state: 'failed', reason: why });
      expect(await fetched(taken)).toBe('other');
      expect(await rdctl('status')).toMatchObject({ exit: 0, out: expect.stringContaining(why) });
      other.closeAllConnections();
      await new Promise((resolve) => other.close(resolve));
      await reach(taken).toBe('two');
      await told(taken).toEqual({ port: taken, state: 'forwarded' });

      await remove(one);
      await reach(web).toBe('');
      await told(web).toBeUndefined();

      // The other method, while containers run; it does not reach ports that only the guest can reach.
      await startContainer(endpoint, { image: IMAGE, command: saying('own', `127.0.0.1:${own}`), network: 'host' });
      await reach(own).toBe('own');
      const running = (await status()).counters;
      expect(await rdctl('set', `${WAY}=false`)).toMatchObject({ exit: 0 });
      await expect.poll(async () => (await status()).phases.map(({ name }) => name), POLL).toEqual(['machine adjust']);
      await told(own).toMatchObject({ state: 'failed', reason: expect.stringContaining('SSH port forwarding') });
      await told(taken).toEqual({ port: taken, state: 'forwarded' });
      await reach(taken).toBe('two');
      expect(await fetched(own)).toBe('');
      const forwards = () => JSON.parse(readFileSync(join(directory, 'run', 'ports.json'), 'utf8'));
      expect(forwards()).toMatchObject([{ port: taken, way: 'qemu' }]);
      expect((await status()).counters.restarts).toBe(running.restarts);

      // They survive a kill of the service, and the next one knows which to remove.
      process.kill(servicePid(), 'SIGKILL');
      expect(await fetched(taken)).toBe('two');
      await remove(two);
      await publish('three', web);
      await apply();
      await reach(web).toBe('three');
      await reach(taken).toBe('');
      await told(taken).toBeUndefined();
      expect(await rdctl('set', `${WAY}=true`)).toMatchObject({ exit: 0 });
      await reach(own).toBe('own');
      await reach(web).toBe('three');
      await told(web).toEqual({ port: web, state: 'forwarded' });
      expect(new Set(forwards().map(({ way }: { way: string }) => way))).toEqual(new Set(['ssh']));
      process.kill(servicePid(), 'SIGKILL');
      expect(await fetched(web)).toBe('three');
      await apply();
      await told(web).toEqual({ port: web, state: 'forwarded' });
      expect(await fetched(web)).toBe('three');

      // The connection dies with all forwards, and is reopened.
      const master: { pid: number } = JSON.parse(readFileSync(join(directory, 'ssh.pid.json'), 'utf8'));
      process.kill(master.pid, 'SIGKILL');
      await reach(web).toBe('three');
      await reach(own).toBe('own');
      // The socket of the engine is restored by the next observation.
      await expect.poll(async () => (await callEngine(endpoint, 'GET', '/_ping')).status, POLL).toBe(200);

      expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
      expect(await fetched(web)).toBe('');
      expect(existsSync(join(directory, 'run'))).toBe(false);
    },
    LIMIT_MS,
  );
});
