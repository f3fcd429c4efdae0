import { createSocket } from 'node:dgram';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Qmp } from '../../src/drivers/machines/qemu/monitor.ts';
import { portConflicts } from '../../src/drivers/machines/qemu/ports/conflict.ts';
import { forwardRecord } from '../../src/drivers/machines/qemu/ports/forward-record.ts';
import { portForwarder } from '../../src/drivers/machines/qemu/ports/forwarder.ts';
import {
  type ForwardMethod,
  MAX_FORWARDS,
  type Port,
  RETRY_MS,
  type Target,
} from '../../src/drivers/machines/qemu/ports/forwards.ts';
import { qemuRoute, type Route, sshRoute } from '../../src/drivers/machines/qemu/ports/routes.ts';
import { RdError } from '../../src/errors.ts';
import type { PortHolder } from '../../src/os/port-holder.ts';
import { freePort } from '../helpers/free-port.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const signal = new AbortController().signal;
const OPEN = '00000000';
const LOOPBACK = '0100007F';
const SSH: ForwardMethod = { route: 'ssh', binding: 'loopback' };
const QEMU: ForwardMethod = { route: 'qemu', binding: 'loopback' };

const NODE_PORT = '-A KUBE-NODEPORTS -p tcp -m comment --comment "default/web:http" -m tcp --dport 30080 -j KUBE-EXT-X';

const numberOf = ({ protocol, port }: Port) => (protocol === 'udp' ? -port : port);
const forwarded = (port: number) => ({ protocol: 'tcp', port, state: 'forwarded', addresses: ['127.0.0.1'] });

/** A guest that reports its ports on request, and two routes that hold what they were given. */
function world(file = join(temporaryDirectory(), 'ports.json')) {
  /** UDP ports are negative. */
  const open = { ssh: new Set<number>(), qemu: new Set<number>() };
  const orders: string[] = [];
  const bindings = new Map<number, string>();
  const logged: string[] = [];
  const taken = new Set<number>();
  const state = { now: 0, watches: 0 };
  let tell: ((text: string | undefined) => void) | undefined;
  let reconnected: () => Promise<void> = async () => undefined;

  function way(name: 'ssh' | 'qemu'): Route {
    return {
      async open(at) {
        const port = numberOf(at);
        orders.push(`${name} +${port}`);
        if (taken.has(port) || open[name === 'ssh' ? 'qemu' : 'ssh'].has(port)) {
          throw new RdError('ERR_DRIVER_FAILED', 'refused');
        }
        open[name].add(port);
        bindings.set(port, at.binding);
        return ['127.0.0.1'];
      },
      async close(at) {
        const port = numberOf(at);
        orders.push(`${name} -${port}`);
        if (!open[name].delete(port)) throw new RdError('ERR_DRIVER_FAILED', 'there is none');
      },
    };
  }

  async function* stream(options: { signal?: AbortSignal } = {}): AsyncGenerator<Uint8Array, void> {
    state.watches += 1;
    const texts: (string | undefined)[] = [];
    let wake: () => void = () => undefined;
    tell = (text) => {
      texts.push(text);
      wake();
    };
    const ended = () => tell?.(undefined);
    options.signal?.addEventListener('abort', ended, { once: true });
    for (;;) {
      while (texts.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      const text = texts.shift();
      if (options.signal?.aborted) throw new RdError('ERR_CANCELLED', 'called off');
      if (text === undefined) throw new RdError('ERR_DRIVER_FAILED', 'the connection is gone');
      yield Buffer.from(text);
    }
  }

  const service = () =>
    portForwarder({
      guest: {
        stream: (_argv, options) => stream(options),
        onReconnect(listener) {
          reconnected = listener;
        },
      },
      routes: { ssh: way('ssh'), qemu: way('qemu') },
      record: forwardRecord(file),
      portConflict: async (at) => (taken.has(numberOf(at)) ? 'it is taken' : undefined),
      clock: { now: () => state.now },
      log: (_level, message) => void logged.push(message),
    });
  const socket = (port: number) =>
    ` ${port === 9000 ? LOOPBACK : OPEN}:${Math.abs(port).toString(16).toUpperCase().padStart(4, '0')} ${OPEN}:0000 ${port < 0 ? '07' : '0A'}`;
  const line = (...ports: number[]) => `ports${ports.map(socket).join('')}\n`;
  return {
    file,
    open,
    orders,
    bindings,
    logged,
    taken,
    state,
    service,
    say: (text: string) => tell?.(text),
    listens: (...ports: number[]) => tell?.(line(...ports)),
    line,
    breaks: () => tell?.(undefined),
    reconnects: () => reconnected(),
    recorded: () => JSON.parse(readFileSync(file, 'utf8')).map(({ port }: { port: number }) => port),
  };
}

type World = ReturnType<typeof world>;
const POLL = { interval: 5, timeout: 10_000 };
const opened = (at: World, way: 'ssh' | 'qemu' = 'ssh') => expect.poll(() => [...at.open[way]].sort(), POLL);

describe('a forwarder', () => {
  test('follows what listens in the guest', async () => {
    const at = world();
    const ports = at.service();
    expect(ports.published()).toEqual([]);
    ports.watch(SSH);
    ports.watch(SSH);
    expect(at.state.watches).toBe(1);
    at.listens(22, 80, 8080, 10250);
    await opened(at).toEqual([80, 8080]);
    await expect.poll(() => ports.published(), POLL).toEqual([forwarded(80), forwarded(8080)]);
    expect(at.recorded()).toEqual([80, 8080]);
    at.listens(8080);
    await opened(at).toEqual([8080]);
    await expect.poll(() => at.recorded(), POLL).toEqual([8080]);
    expect(at.orders).toEqual(['ssh +80', 'ssh +8080', 'ssh -80']);
    at.say('.\n');
    at.say('nonsense\n');
    at.say(at.line(8080, 8081).slice(0, 20));
    at.say(at.line(8080, 8081).slice(20));
    await opened(at).toEqual([8080, 8081]);
    expect(at.logged).toContain('the list of ports from the guest cannot be parsed');
    await ports.release();
  });

  test('reports a port in use once, and opens it when it becomes free', async () => {
    const at = world();
    at.taken.add(80);
    const ports = at.service();
    ports.watch(SSH);
    at.listens(80, 81);
    await opened(at).toEqual([81]);
    const failed = { protocol: 'tcp', port: 80, state: 'failed', reason: 'it is taken' };
    await expect.poll(() => ports.published(), POLL).toEqual([failed, forwarded(81)]);
    at.state.now += RETRY_MS;
    at.listens(80, 81, 84);
    await opened(at).toEqual([81, 84]);
    expect(at.orders.filter((order) => order === 'ssh +80')).toHaveLength(1);
    at.taken.delete(80);
    at.say('.\n');
    at.listens(80, 81, 82);
    await opened(at).toEqual([81, 82]);
    at.state.now += RETRY_MS;
    // With the next observation, not only with a report.
    ports.watch(SSH);
    await opened(at).toEqual([80, 81, 82]);
    const warnings = at.logged.filter((message) => message === 'a port of the guest cannot be forwarded');
    expect(warnings).toHaveLength(1);
    at.taken.add(83);
    at.listens(83);
    await opened(at).toEqual([]);
    at.listens();
    await expect.poll(() => ports.published(), POLL).toEqual([]);
    expect(at.orders).not.toContain('ssh -83');
    await ports.release();
  });

  test('forwards a UDP port that stays by QEMU, whatever the method for TCP is, and no port of a client', async () => {
    const at = world();
    const ports = at.service();
    ports.watch(SSH);
    at.listens(53, -54, -8472, -40000);
    await opened(at).toEqual([53]);
    at.listens(53, -54, -8472, -40001);
    await opened(at, 'qemu').toEqual([-54]);
    const udp = { protocol: 'udp', port: 54, state: 'forwarded', addresses: ['127.0.0.1'] };
    await expect.poll(() => ports.published(), POLL).toEqual([forwarded(53), udp]);
    await ports.switchTo(QEMU);
    expect(at.open).toEqual({ ssh: new Set(), qemu: new Set([-54, 53]) });
    at.say('.\n');
    at.listens(53, -54, -8472, -40001);
    await opened(at, 'qemu').toEqual([-40001, -54, 53].sort());
    at.listens(53);
    await opened(at, 'qemu').toEqual([53]);
    expect(at.orders.filter((order) => order.includes('-54') || order.includes('8472'))).toEqual([
      'qemu +-54',
      'qemu --54',
    ]);
    await ports.release();
  });

  test('forwards ports of packet filter rules, named after what published them', async () => {
    const at = world();
    const ports = at.service();
    ports.watch(SSH);
    at.say(`rules\t${NODE_PORT}\tCOMMIT\n`);
    at.say('.\n');
    at.listens(80);
    await opened(at).toEqual([30080, 80].sort());
    const rule = { ...forwarded(30080), claimedBy: 'default/web:http' };
    await expect.poll(() => ports.published(), POLL).toEqual([forwarded(80), rule]);
    at.say(`rules\t${NODE_PORT.replace('web', 'shop')}\tCOMMIT\n`);
    const renamed = { ...rule, claimedBy: 'default/shop:http' };
    await expect.poll(() => ports.published(), POLL).toEqual([forwarded(80), renamed]);
    expect(at.orders).toHaveLength(2);
    at.taken.add(30081);
    at.say(`rules\t${NODE_PORT.replace('30080', '30081')}\tCOMMIT\n`);
    const failed = {
      protocol: 'tcp',
      port: 30081,
      state: 'failed',
      claimedBy: 'default/web:http',
      reason: 'it is taken',
    };
    await expect.poll(() => ports.published(), POLL).toEqual([forwarded(80), failed]);
    at.say('rules\tCOMMIT\n');
    await expect.poll(() => ports.published(), POLL).toEqual([forwarded(80)]);
    await ports.release();
  });

  test('keeps the ports of rules that an earlier service opened, though the sockets are reported later', async () => {
    const at = world();
    const killed = at.service();
    killed.watch(SSH);
    at.say(`rules\t${NODE_PORT}\tCOMMIT\n`);
    at.listens();
    await opened(at).toEqual([30080]);
    at.orders.length = 0;
    const ports = at.service();
    ports.watch(SSH);
    at.say(`rules\t${NODE_PORT}\tCOMMIT\n`);
    at.listens(80);
    await opened(at).toEqual([30080, 80].sort());
    expect(at.orders).not.toContain('ssh -30080');
    await ports.release();
  });

  test('moves the ports to all addresses of this host and back, except those that only the guest itself may reach', async () => {
    const at = world();
    const ports = at.service();
    ports.watch(SSH);
    at.listens(80, 9000);
    await opened(at).toEqual([80, 9000]);
    at.orders.length = 0;
    await ports.switchTo({ ...SSH, binding: 'all' });
    expect(at.orders).toEqual(['ssh -80', 'ssh +80']);
    expect(at.bindings).toEqual(
      new Map([
        [80, 'all'],
        [9000, 'loopback'],
      ]),
    );
    await ports.switchTo(SSH);
    expect(at.bindings).toEqual(
      new Map([
        [80, 'loopback'],
        [9000, 'loopback'],
      ]),
    );
    await ports.release();
  });

  test('moves the ports to the other method while they are open', async () => {
    const at = world();
    const ports = at.service();
    ports.watch(SSH);
    at.listens(80, 81);
    await opened(at).toEqual([80, 81]);
    await ports.switchTo(QEMU);
    expect(at.open).toEqual({ ssh: new Set(), qemu: new Set([80, 81]) });
    await ports.switchTo(SSH);
    expect(at.open).toEqual({ ssh: new Set([80, 81]), qemu: new Set() });
    await ports.release();
  });

  test('adopts what a killed service left, and removes ports nothing listens on any more', async () => {
    const at = world();
    const killed = at.service();
    killed.watch(SSH);
    at.listens(80, 81);
    await opened(at).toEqual([80, 81]);
    at.orders.length = 0;
    const ports = at.service();
    ports.watch(SSH);
    at.listens(81, 82);
    await opened(at).toEqual([81, 82]);
    expect(at.orders).toEqual(['ssh -80', 'ssh +81', 'ssh +82']);
    await ports.release();
    const other = at.service();
    other.watch(QEMU);
    at.listens(81);
    await opened(at, 'qemu').toEqual([81]);
    await opened(at).toEqual([]);
    await other.release();
  });

  test.each(['{', '{}', '[1]', '[{"port": 0, "way": "ssh", "address": "::"}]', '[{"port": 80, "way": "x"}]'])(
    'ignores a record with %s',
    async (text) => {
      const at = world();
      writeFileSync(at.file, text);
      const ports = at.service();
      ports.watch(SSH);
      at.listens(81);
      await opened(at).toEqual([81]);
      expect(at.orders).toEqual(['ssh +81']);
      await ports.release();
    },
  );

  test('reopens them after the connection broke, and lists none in between', async () => {
    const at = world();
    const ports = at.service();
    ports.watch(SSH);
    at.listens(80);
    await opened(at).toEqual([80]);
    at.breaks();
    at.open.ssh.clear();
    await at.reconnects();
    expect(ports.published()).toEqual([]);
    await expect
      .poll(() => at.logged, POLL)
      .toContain('the ports of the guest are not watched until the next observation');
    ports.watch(SSH);
    expect(at.state.watches).toBe(2);
    at.listens(80);
    await opened(at).toEqual([80]);
    await ports.release();
  });

  test('reports what exceeds the limit', async () => {
    const at = world();
    const ports = at.service();
    ports.watch(SSH);
    const everywhere = Array.from({ length: MAX_FORWARDS + 40 }, (_, index) => 100 + index);
    at.listens(...everywhere);
    await expect.poll(() => at.open.ssh.size, POLL).toBe(MAX_FORWARDS);
    at.say('.\n');
    at.listens(80);
    await opened(at).toEqual([80]);
    expect(at.logged.filter((message) => message.includes('many ports'))).toHaveLength(1);
    await ports.release();
  });

  test('avoids a port that another forwarder needs, and opens it again afterwards', async () => {
    const at = world();
    const ports = at.service();
    ports.watch(SSH);
    at.listens(6443, 80);
    await opened(at).toEqual([6443, 80].sort());
    const giveBack = await ports.claim(6443);
    expect([...at.open.ssh]).toEqual([80]);
    at.listens(6443, 81);
    await opened(at).toEqual([81]);
    giveBack();
    at.say('.\n');
    await opened(at).toEqual([6443, 81]);
    await ports.release();
  });

  test('stops watching with the service but keeps the forwards; removes everything with the machine', async () => {
    const at = world();
    const ports = at.service();
    ports.watch(SSH);
    at.listens(80);
    await opened(at).toEqual([80]);
    await ports.release();
    at.listens(80, 81);
    await ports.release();
    expect([...at.open.ssh]).toEqual([80]);
    ports.watch(SSH);
    at.listens(80, 81);
    await opened(at).toEqual([80, 81]);
    await ports.forget();
    expect(ports.published()).toEqual([]);
    expect(() => at.recorded()).toThrow(/ENOENT/);
  });

  test('reports a record that cannot be written, and blocks no port', async () => {
    const file = join(temporaryDirectory(), 'ports.json');
    mkdirSync(join(file, 'a directory'), { recursive: true });
    const at = world(file);
    const ports = at.service();
    ports.watch(SSH);
    at.listens(80);
    await opened(at).toEqual([80]);
    expect(at.logged).toEqual(
      expect.arrayContaining([expect.stringContaining('cannot be read'), expect.stringContaining('not be recorded')]),
    );
    await ports.release();
  });
});

describe('the methods', () => {
  test('ssh is told where the program listens', async () => {
    const orders: string[] = [];
    const way = sshRoute({
      async forward(order, ...words) {
        orders.push(`${order} ${words.join(' ')}`);
        return '';
      },
    });
    const tcp = { protocol: 'tcp', way: 'ssh', binding: 'loopback' } as const;
    expect(await way.open({ ...tcp, port: 80, address: '0.0.0.0' }, signal)).toEqual(['127.0.0.1', '::1']);
    await way.open({ ...tcp, port: 81, address: '127.0.0.1' }, signal);
    await way.open({ ...tcp, port: 82, address: '::' }, signal);
    await way.close({ ...tcp, port: 83, address: '::1' }, signal);
    const all = { ...tcp, binding: 'all', port: 84, address: '10.0.2.15' } as const;
    expect(await way.open(all, signal)).toEqual(['0.0.0.0', '::']);
    await way.close(all, signal);
    expect(orders).toEqual([
      'forward -L 127.0.0.1:80:127.0.0.1:80',
      'forward -L [::1]:80:127.0.0.1:80',
      'forward -L 127.0.0.1:81:127.0.0.1:81',
      'forward -L [::1]:81:127.0.0.1:81',
      'forward -L 127.0.0.1:82:[::1]:82',
      'forward -L [::1]:82:[::1]:82',
      'cancel -L [::1]:83:[::1]:83',
      'cancel -L 127.0.0.1:83:[::1]:83',
      'forward -L 0.0.0.0:84:10.0.2.15:84',
      'forward -L [::]:84:10.0.2.15:84',
      'cancel -L [::]:84:10.0.2.15:84',
      'cancel -L 0.0.0.0:84:10.0.2.15:84',
    ]);
  });

  test('ssh does without IPv6 where this host has none', async () => {
    const way = sshRoute({
      async forward(_order, ...words) {
        if (words.join(' ').includes(' [::1]:')) throw new RdError('ERR_DRIVER_FAILED', 'refused');
        return '';
      },
    });
    const at = { protocol: 'tcp', port: 80, address: '0.0.0.0', way: 'ssh', binding: 'loopback' } as const;
    expect(await way.open(at, signal)).toEqual(['127.0.0.1']);
    await way.close(at, signal);
  });

  test('QEMU gets human monitor commands, and what it prints is the error', async () => {
    const lines: unknown[] = [];
    let answer = '';
    const qmp: Qmp = {
      async execute(command, args) {
        lines.push([command, args?.['command-line']]);
        return String(args?.['command-line']).startsWith('hostfwd_add') ? answer : 'not found\r\n';
      },
      close: () => undefined,
    };
    const way = qemuRoute({ use: (work) => work(qmp) }, 'net0');
    const human = 'human-monitor-command';
    const at: Target = { protocol: 'tcp', port: 80, address: '::', way: 'qemu', binding: 'loopback' };
    expect(await way.open(at, signal)).toEqual(['127.0.0.1']);
    await way.close({ ...at, port: 81 }, signal);
    await way.open({ ...at, protocol: 'udp', port: 53 }, signal);
    expect(lines).toEqual([
      [human, 'hostfwd_remove net0 tcp:127.0.0.1:80'],
      [human, 'hostfwd_add net0 tcp:127.0.0.1:80-:80'],
      [human, 'hostfwd_remove net0 tcp:127.0.0.1:81'],
      [human, 'hostfwd_remove net0 udp:127.0.0.1:53'],
      [human, 'hostfwd_add net0 udp:127.0.0.1:53-:53'],
    ]);
    lines.length = 0;
    expect(await way.open({ ...at, binding: 'all' }, signal)).toEqual(['0.0.0.0']);
    expect(lines).toEqual([
      [human, 'hostfwd_remove net0 tcp:0.0.0.0:80'],
      [human, 'hostfwd_add net0 tcp:0.0.0.0:80-:80'],
    ]);
    answer = 'could not set up host forwarding rule\r\n';
    await expect(way.open(at, signal)).rejects.toThrow('QEMU refused: could not set up host forwarding rule');
    lines.length = 0;
    const local = { ...at, address: '127.0.0.1' } as const;
    await expect(way.open(local, signal)).rejects.toThrow('it listens only on 127.0.0.1 in the guest');
    await expect(way.open({ ...local, protocol: 'udp' }, signal)).rejects.toThrow('which no UDP forward can reach');
    expect(lines).toEqual([]);
  });

  test('a port in use is told from a free one, by protocol', async () => {
    const port = await freePort();
    const [tcp, udp] = [{ protocol: 'tcp', port } as const, { protocol: 'udp', port } as const];
    const portConflict = portConflicts();
    const holder = expect.stringMatching(new RegExp(`^\\S+ \\(process ${process.pid}\\) is listening on `));
    expect(await portConflict(tcp)).toBeUndefined();
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(port, '0.0.0.0', resolve));
    onTestFinished(() => void server.close());
    expect(await portConflict(tcp)).toEqual(holder);
    expect(await portConflict({ ...tcp, binding: 'all' })).toContain(` 0.0.0.0:${port}`);
    expect(await portConflict(udp)).toBeUndefined();
    const socket = createSocket('udp4');
    await new Promise<void>((resolve) => socket.bind(port, '127.0.0.1', resolve));
    onTestFinished(() => void socket.close());
    expect(await portConflict(udp)).toEqual(holder);
    expect(await portConflict({ ...udp, binding: 'all' })).toContain(` 127.0.0.1:${port}`);
  });

  test.each<[string, PortHolder | undefined, string]>([
    ['unknown', undefined, 'another program is listening on 127.0.0.1:PORT'],
    [
      'of this user, but hidden',
      { address: '::1', uid: process.getuid?.() ?? 0 },
      'another program is listening on [::1]:PORT',
    ],
    ['of another user', { address: '::', uid: 33 }, 'a program of another user (uid 33) is listening on [::]:PORT'],
    [
      'known',
      { address: '127.0.0.1', uid: 0, program: { name: 'nginx', pid: 7 } },
      'nginx (process 7) is listening on 127.0.0.1:PORT',
    ],
  ])('a program that uses a port is named: %s', async (_name, holder, text) => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const address = server.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    const conflict = portConflicts(async () => holder);
    expect(await conflict({ protocol: 'tcp', port })).toBe(text.replace('PORT', String(port)));
  });
});
