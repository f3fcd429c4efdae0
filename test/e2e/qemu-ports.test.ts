import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { processorTime } from '../../src/os/process-table.ts';
import { busyboxRoot } from '../helpers/busybox.ts';
import { ECHO_SERVER, echoed } from '../helpers/datagrams.ts';
import { callEngine, engineJson, startContainer } from '../helpers/engine-client.ts';
import { freePort } from '../helpers/free-port.ts';
import { linkImages, whyNoRealGuest } from '../helpers/guest-image.ts';
import { prepareMachine } from '../helpers/prepared-machine.ts';
import { toolHome } from '../helpers/tool-home.ts';

// One resume without KVM, next to other tests.
const LIMIT_MS = 1_800_000;
const POLL = { timeout: 600_000, interval: 1_000 };
const IMAGE = 'test/base:1';
const WAY = '--experimental.virtual-machine.ssh-port-forwarder';

const missing = await whyNoRealGuest();

/** What a program on this host reads there; empty where nothing answers. */
async function fetched(port: number, host = '127.0.0.1'): Promise<string> {
  try {
    const response = await fetch(`http://${host}:${port}/`, { signal: AbortSignal.timeout(10_000) });
    return (await response.text()).trim();
  } catch {
    return '';
  }
}

const HAS_IPV6 = Object.values(networkInterfaces()).some((each) => each?.some(({ address }) => address === '::1'));
const LOOPBACKS = HAS_IPV6 ? ['127.0.0.1', '::1'] : ['127.0.0.1'];
/** An address of this host that other computers would use; absent where there is only the loopback interface. */
const OUTSIDE = Object.values(networkInterfaces())
  .flatMap((each) => each ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;

/** `$1`: a node port, `$2`: the address of a container. As kube-proxy publishes a service, without the marks. */
const NODE_PORT_SCRIPT = `set -eu
nat() { iptables -w -t nat "$@"; }
nat -N KUBE-NODEPORTS
nat -N KUBE-EXT-WEB
nat -A KUBE-EXT-WEB -p tcp -j DNAT --to-destination "$2:80"
nat -A KUBE-NODEPORTS -p tcp -m comment --comment default/web:http -m tcp --dport "$1" -j KUBE-EXT-WEB
for chain in PREROUTING OUTPUT; do nat -A $chain -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS; done
`;

/** A command that sends a word on a port, `ADDRESS:PORT` or just a port. */
function saying(word: string, at: string): string[] {
  const script = `/bin/busybox mkdir -p /www && echo ${word} > /www/index.html && exec /bin/busybox httpd -f -p ${at} -h /www`;
  return ['/bin/busybox', 'sh', '-c', script];
}

describe.skipIf(missing !== undefined)('container ports in a guest', () => {
  test(
    'are forwarded from this host, whatever happens to containers, connection and service',
    async () => {
      const { home, rdctl, status, servicePid } = toolHome();
      linkImages(home);
      const directory = join(home, 'state', 'drivers', 'qemu');
      await prepareMachine(directory);
      const apply = async () =>
        expect(await rdctl('apply', '-f', 'examples/moby.yaml', '--driver', 'qemu')).toMatchObject({ exit: 0 });
      const [web, taken, own, datagrams] = [await freePort(), await freePort(), await freePort(), await freePort()];
      const [six, node] = [await freePort(), await freePort()];
      const reach = (port: number) => expect.poll(() => fetched(port), POLL);
      const told = (port: number) =>
        expect.poll(async () => (await status()).ports?.find((each) => each.port === port), POLL);
      const claimedBy = expect.stringMatching(/^container \w+$/);
      const forwarded = (port: number) => ({
        protocol: 'tcp',
        port,
        state: 'forwarded',
        claimedBy,
        addresses: LOOPBACKS,
      });
      const forwardedByQemu = (port: number) => ({ ...forwarded(port), addresses: ['127.0.0.1'] });

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
      await told(web).toEqual(forwarded(web));
      expect(await fetched(web, '[::1]')).toBe(HAS_IPV6 ? 'one' : '');
      expect((await rdctl('status')).out).toMatch(
        new RegExp(`^Ports +.*${web}.* of the machine, at 127\\.0\\.0\\.1`, 'm'),
      );

      // Datagrams, to a container that answers them.
      const server = { image: IMAGE, command: ECHO_SERVER, binds: ['/:/guest:ro'] };
      const echo = await startContainer(endpoint, {
        ...server,
        ports: { '7/udp': [{ HostIp: '', HostPort: String(datagrams) }] },
      });
      await expect.poll(() => echoed(datagrams), POLL).toBe('hello');
      await told(datagrams).toEqual({ ...forwardedByQemu(datagrams), protocol: 'udp' });
      await remove(echo);
      await told(datagrams).toBeUndefined();

      // A port in use on this host is reported, is no failure of the service, and clears when the other program exits.
      const other = createServer((_request, response) => void response.end('other'));
      await new Promise<void>((resolve) => other.listen(taken, '127.0.0.1', resolve));
      onTestFinished(() => void other.close());
      const two = await publish('two', taken);
      const why = ` (process ${process.pid}) is listening on 127.0.0.1:${taken}`;
      const reason = expect.stringContaining(why);
      await told(taken).toEqual({ protocol: 'tcp', port: taken, state: 'failed', claimedBy, reason });
      expect(await fetched(taken)).toBe('other');
      expect(await rdctl('status')).toMatchObject({ exit: 0, out: expect.stringContaining(why) });
      other.closeAllConnections();
      await new Promise((resolve) => other.close(resolve));
      await reach(taken).toBe('two');
      await told(taken).toEqual(forwarded(taken));

      await remove(one);
      await reach(web).toBe('');
      await told(web).toBeUndefined();

      // Published on IPv6, and by rules without a socket.
      await startContainer(endpoint, {
        image: IMAGE,
        command: saying('six', '80'),
        ports: { '80/tcp': [{ HostIp: '::1', HostPort: String(six) }] },
      });
      await reach(six).toBe('six');
      const { NetworkSettings } = await engineJson(endpoint, 'GET', `/containers/${two}/json`);
      const [network] = Object.values(
        (NetworkSettings as { Networks: Record<string, { IPAddress: string }> }).Networks,
      );
      const rules = await rdctl('shell', 'sh', '-c', NODE_PORT_SCRIPT, 'rules', String(node), network?.IPAddress ?? '');
      expect(rules).toMatchObject({ exit: 0 });
      await reach(node).toBe('two');
      await told(node).toEqual({ ...forwarded(node), claimedBy: 'default/web:http' });

      // All addresses of this host, and back.
      const outside = (port: number) => expect.poll(() => fetched(port, OUTSIDE), POLL);
      const ADMIN = '--application.admin-access';
      expect(await rdctl('set', `${ADMIN}=true`)).toMatchObject({ exit: 0 });
      if (OUTSIDE !== undefined) {
        await outside(taken).toBe('two');
        await outside(node).toBe('two');
        expect(await fetched(six, OUTSIDE)).toBe('');
      }
      expect(await fetched(taken)).toBe('two');
      await told(node).toMatchObject({ addresses: HAS_IPV6 ? ['0.0.0.0', '::'] : ['0.0.0.0'] });
      await told(six).toEqual(forwarded(six));
      expect(await rdctl('set', `${ADMIN}=false`)).toMatchObject({ exit: 0 });
      await told(node).toMatchObject({ addresses: LOOPBACKS });
      if (OUTSIDE !== undefined) expect(await fetched(taken, OUTSIDE)).toBe('');
      expect(await rdctl('shell', 'iptables', '-w', '-t', 'nat', '-F', 'KUBE-NODEPORTS')).toMatchObject({ exit: 0 });
      await told(node).toBeUndefined();

      // The other method, while containers run; it does not reach ports that only the guest can reach.
      await startContainer(endpoint, { image: IMAGE, command: saying('own', `127.0.0.1:${own}`), network: 'host' });
      await reach(own).toBe('own');
      const running = (await status()).counters;
      expect(await rdctl('set', `${WAY}=false`)).toMatchObject({ exit: 0 });
      await expect.poll(async () => (await status()).phases.map(({ name }) => name), POLL).toEqual(['machine adjust']);
      await told(own).toMatchObject({ state: 'failed', reason: expect.stringContaining('SSH port forwarding') });
      await told(taken).toEqual(forwardedByQemu(taken));
      await reach(taken).toBe('two');
      expect(await fetched(own)).toBe('');
      const forwards = () => JSON.parse(readFileSync(join(directory, 'run', 'ports.json'), 'utf8'));
      expect(forwards()).toMatchObject([{ port: taken, way: 'qemu' }]);
      expect((await status()).counters.restarts).toBe(running.restarts);

      // They survive a kill of the service, and the next one knows which to remove.
      process.kill(servicePid(), 'SIGKILL');
      expect(await fetched(taken)).toBe('two');
      await remove(two);
      const three = await publish('three', web);
      await apply();
      await reach(web).toBe('three');
      await reach(taken).toBe('');
      await told(taken).toBeUndefined();
      expect(await rdctl('set', `${WAY}=true`)).toMatchObject({ exit: 0 });
      await reach(own).toBe('own');
      await reach(web).toBe('three');
      await told(web).toEqual(forwarded(web));
      expect(new Set(forwards().map(({ way }: { way: string }) => way))).toEqual(new Set(['ssh']));
      process.kill(servicePid(), 'SIGKILL');
      expect(await fetched(web)).toBe('three');
      await apply();
      await told(web).toEqual(forwarded(web));
      expect(await fetched(web)).toBe('three');

      // The connection dies with all forwards, and is reopened.
      const master: { pid: number } = JSON.parse(readFileSync(join(directory, 'ssh.pid.json'), 'utf8'));
      process.kill(master.pid, 'SIGKILL');
      await reach(web).toBe('three');
      await reach(own).toBe('own');
      // The socket of the engine is restored by the next observation.
      await expect.poll(async () => (await callEngine(endpoint, 'GET', '/_ping')).status, POLL).toBe(200);

      // A machine that nobody uses is paused, and woken by the first connection. Its containers notice nothing.
      const profile = join(home, 'paused.yaml');
      const text = readFileSync('examples/moby.yaml', 'utf8');
      writeFileSync(profile, `${text}machine:\n  pauseAfterMinutes: 1\n`);
      const state = async () => (await engineJson(endpoint, 'GET', `/containers/${three}/json`)).State;
      const before = await state();
      expect(await rdctl('apply', '-f', profile)).toMatchObject({ exit: 0 });
      const isPaused = async () => (await status()).machine.paused !== undefined;
      // On a busy computer an idle guest looks like one that works for some minutes.
      await expect.poll(isPaused, { ...POLL, timeout: 600_000 }).toBe(true);
      const qemu: { pid: number } = JSON.parse(readFileSync(join(directory, 'qemu.pid.json'), 'utf8'));
      const used = await processorTime(qemu.pid);
      expect(await rdctl('plan', '-f', profile, '--detailed-exitcode')).toMatchObject({ exit: 0 });
      expect((await rdctl('status')).out).toMatch(/^Machine .* paused after 1 min without use; the next connection/m);
      expect(await isPaused()).toBe(true);
      // Less than its emulated guest takes for a single check of the service.
      expect(Number(await processorTime(qemu.pid)) - Number(used)).toBeLessThan(100);
      expect(await Promise.all([fetched(web), state()])).toEqual(['three', before]);
      await expect.poll(isPaused, POLL).toBe(false);

      expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
      expect(await fetched(web)).toBe('');
      expect(existsSync(join(directory, 'run'))).toBe(false);
    },
    LIMIT_MS,
  );
});
