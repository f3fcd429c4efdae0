import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  changes,
  type Forward,
  type ForwardMethod,
  type ForwardRoute,
  keyOf,
  MAX_FORWARDS,
  RETRY_MS,
  wantedPorts,
} from '../../src/drivers/machines/qemu/ports/forwards.ts';
import { type GuestAddress, type Listening, publishedByRules } from '../../src/drivers/machines/qemu/ports/rules.ts';
import { parseWatchLine, WATCH_SCRIPT } from '../../src/drivers/machines/qemu/ports/watch.ts';
import { run, stream } from '../../src/os/run.ts';
import { freePort } from '../helpers/free-port.ts';

const none = (): boolean => false;
const socket = (address: string, port: string, state = '0A') =>
  ` ${address}:${port} ${'0'.repeat(address.length)}:0000 ${state}`;
const ADDRESSES: readonly GuestAddress[] = ['10.0.2.15', '0.0.0.0', '::', '127.0.0.1', '::1'];
const SSH: ForwardMethod = { route: 'ssh', binding: 'loopback' };

describe('the report of the guest', () => {
  const V6 = '00000000000000000000000000000000';
  test.each<[string, string, Listening[] | undefined]>([
    ['nothing', 'ports', []],
    ['one that is open', `ports${socket('00000000', '1F90')}`, [{ protocol: 'tcp', port: 8080, address: '0.0.0.0' }]],
    ['a loopback', `ports${socket('0100007F', '0050')}`, [{ protocol: 'tcp', port: 80, address: '127.0.0.1' }]],
    ['IPv6', `ports${socket(V6, '0050')}`, [{ protocol: 'tcp', port: 80, address: '::' }]],
    [
      'a loopback of IPv6',
      `ports${socket(`${V6.slice(0, 24)}01000000`, '0050')}`,
      [{ protocol: 'tcp', port: 80, address: '::1' }],
    ],
    [
      'IPv4 in IPv6',
      `ports${socket('0000000000000000FFFF00000100007F', '0050')}`,
      [{ protocol: 'tcp', port: 80, address: '127.0.0.1' }],
    ],
    ['an address of a network', `ports${socket('01001EAC', '0050')}`, []],
    ['another loopback', `ports${socket('3500007F', '0035')}`, []],
    ['port zero', `ports${socket('00000000', '0000')}`, []],
    [
      'the end of a line of another system',
      `ports${socket('00000000', '0050')}\r`,
      [{ protocol: 'tcp', port: 80, address: '0.0.0.0' }],
    ],
    [
      'two',
      `ports${socket('00000000', '0050')}${socket(V6, '0051')}`,
      [
        { protocol: 'tcp', port: 80, address: '0.0.0.0' },
        { protocol: 'tcp', port: 81, address: '::' },
      ],
    ],
    [
      'UDP without a peer',
      `ports${socket('00000000', '0035', '07')}`,
      [{ protocol: 'udp', port: 53, address: '0.0.0.0' }],
    ],
    ['half of a line', `ports${socket('00000000', '0050')} 000000`, undefined],
    ['the second half of a line', '0:0050 00000000:0000 0A', undefined],
    ['a connection', 'ports 00000000:0050 0100007F:1234 01', undefined],
    ['something else', 'grep: /proc/net/tcp6: No such file', undefined],
    ['nothing at all', '', undefined],
  ])('%s', (_name, line, expected) => {
    expect(parseWatchLine(line)).toEqual(expected && { listening: expected });
  });

  test('can be a heartbeat', () => {
    expect(parseWatchLine('.')).toBe('heartbeat');
  });

  test('that is cut anywhere never counts as a shorter list, and no text breaks the parser', () => {
    const line = `ports${socket('00000000', '0050')}${socket('0100007F', '1F90')}`;
    const whole = [line, `ports${socket('00000000', '0050')}`, 'ports'];
    for (let end = 0; end < line.length; end++) {
      const text = line.slice(0, end);
      if (!whole.includes(text.trimEnd())) expect(parseWatchLine(text)).toBeUndefined();
    }
    fc.assert(fc.property(fc.string(), (text) => void parseWatchLine(`ports ${text}`)));
  });

  test('the script reports when a server starts and stops listening', async () => {
    const port = await freePort();
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const seen: boolean[] = [];
    const stop = new AbortController();
    let rest = '';
    const read = async () => {
      for await (const chunk of stream(['bash', '-c', WATCH_SCRIPT], { signal: stop.signal })) {
        rest += Buffer.from(chunk).toString('utf8');
        const lines = rest.split('\n');
        rest = lines.pop() ?? '';
        for (const each of lines) {
          const line = parseWatchLine(each);
          expect(line).toBeDefined();
          if (line === undefined || line === 'heartbeat' || 'published' in line) continue;
          const there = line.listening.some((one) => one.port === port);
          if (there && seen.length === 0) server.close();
          seen.push(there);
          if (!there) stop.abort();
        }
      }
    };
    await expect(read()).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
    expect(seen[0]).toBe(true);
    expect(seen.at(-1)).toBe(false);
  });

  test('the script lists a new UDP server a second time, without a change', async () => {
    const socket = createSocket('udp4');
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
    onTestFinished(() => void socket.close());
    const { port } = socket.address();
    const stop = new AbortController();
    let text = '';
    const read = async () => {
      for await (const chunk of stream(['bash', '-c', WATCH_SCRIPT], { signal: stop.signal })) {
        text += Buffer.from(chunk).toString('utf8');
        const lines = text.split('\n').slice(0, -1).map(parseWatchLine);
        const reports = lines.filter((line) => typeof line === 'object' && 'listening' in line);
        if (reports.length < 2) continue;
        for (const { listening } of reports) {
          expect(listening).toContainEqual({ protocol: 'udp', port, address: '127.0.0.1' });
        }
        stop.abort();
      }
    };
    await expect(read()).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  });

  test('the script ends when its output is no longer read', async () => {
    const piped = 'bash -c "$1" | head -n 1';
    const { stdout } = await run(['sh', '-c', piped, 'watch', WATCH_SCRIPT]);
    expect(parseWatchLine(stdout)).toBeTypeOf('object');
  });
});

describe('the packet filter rules of the guest', () => {
  // As iptables-save prints those of kube-proxy, the load balancer of k3s and the plugin portmap.
  const WEB = `-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \\"cbr0\\" id: \\"3f0a1b2c3d4e5f\\"" -m multiport --dports 80,443 -j CNI-DN-e8a0f6b5c6a3f9b1e9d5c`;
  const chain = 'CNI-DN-e8a0f6b5c6a3f9b1e9d5c';
  const guest = { protocol: 'tcp', address: '10.0.2.15' } as const;
  test.each<[string, string[], Listening[]]>([
    ['nothing', [], []],
    [
      'a host port of a pod, without its rules for other directions',
      [
        `-A ${chain} -s 10.42.0.0/24 -p tcp -m tcp --dport 80 -j CNI-HOSTPORT-SETMARK`,
        `-A ${chain} -s 127.0.0.1/32 -p tcp -m tcp --dport 80 -j CNI-HOSTPORT-SETMARK`,
        `-A ${chain} -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.42.0.8:80`,
        WEB,
      ],
      [{ ...guest, port: 80, claimedBy: 'container 3f0a1b2c3d4e' }],
    ],
    [
      'host ports with an address',
      [
        `-A ${chain} -d 127.0.0.1/32 -p udp -m udp --dport 53 -j DNAT --to-destination 10.4.0.8:53`,
        `-A ${chain} -d 10.0.2.15/32 -p tcp -m tcp --dport 81 -j DNAT --to-destination 10.4.0.8:80`,
        `-A ${chain} -d 10.9.9.9/32 -p tcp -m tcp --dport 82 -j DNAT --to-destination 10.4.0.8:80`,
      ],
      [
        { protocol: 'udp', port: 53, address: '127.0.0.1' },
        { ...guest, port: 81 },
      ],
    ],
    [
      'a container of a containerd client',
      [
        `-A ${chain} -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.4.0.8:80`,
        WEB.replace('3f0a1b2c3d4e5f', 'default-3f0a1b2c3d4e5f'),
      ],
      [{ ...guest, port: 8080, claimedBy: 'container 3f0a1b2c3d4e' }],
    ],
    [
      'node ports, once',
      [
        '-A KUBE-NODEPORTS -d 127.0.0.0/8 -p tcp -m comment --comment "kube-system/traefik:web" -m tcp --dport 31380 -m nfacct --nfacct-name localhost_nps_accepted_pkts -j KUBE-EXT-UQMCRMJZLI3FTLDP',
        '-A KUBE-NODEPORTS -p tcp -m comment --comment "kube-system/traefik:web" -m tcp --dport 31380 -j KUBE-EXT-UQMCRMJZLI3FTLDP',
        '-A KUBE-NODEPORTS -p udp -m comment --comment default/dns -m udp --dport 30053 -j KUBE-EXT-ABC',
        '-A KUBE-NODEPORTS -p sctp -m comment --comment "default/sctp" -m sctp --dport 30054 -j KUBE-EXT-ABC',
      ],
      [
        { ...guest, port: 31380, claimedBy: 'kube-system/traefik:web' },
        { protocol: 'udp', port: 30053, address: '10.0.2.15', claimedBy: 'default/dns' },
      ],
    ],
    [
      'load balancers and external addresses of this node, which name the port before a container does',
      [
        '-A KUBE-SERVICES -d 10.43.0.1/32 -p tcp -m comment --comment "default/kubernetes:https cluster IP" -m tcp --dport 443 -j KUBE-SVC-NPX46M4PTMTKRN6Y',
        `-A ${chain} -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.42.0.8:80`,
        WEB,
        '-A KUBE-SERVICES -d 10.0.2.15/32 -p tcp -m comment --comment "kube-system/traefik:web loadbalancer IP" -m tcp --dport 80 -j KUBE-EXT-UQMCRMJZLI3FTLDP',
        '-A KUBE-SERVICES -d 10.0.2.15/32 -p tcp -m comment --comment "default/db external IP" -m tcp --dport 5432 -j KUBE-EXT-XYZ',
        '-A KUBE-SERVICES -d 192.0.2.9/32 -p tcp -m comment --comment "default/db external IP" -m tcp --dport 5433 -j KUBE-EXT-XYZ',
      ],
      [
        { ...guest, port: 80, claimedBy: 'kube-system/traefik:web' },
        { ...guest, port: 5432, claimedBy: 'default/db' },
        { ...guest, port: 80, claimedBy: 'container 3f0a1b2c3d4e' },
      ],
    ],
    [
      'words of options in a comment',
      [
        '-A KUBE-NODEPORTS -p tcp -m comment --comment "a --dport 22 -d 1.2.3.4 \\" -j x" -m tcp --dport 30001 -j KUBE-EXT-A',
      ],
      [{ ...guest, port: 30001, claimedBy: 'a --dport 22 -d 1.2.3.4 " -j x' }],
    ],
    ['a port out of range', ['-A KUBE-NODEPORTS -p tcp -m tcp --dport 70000 -j KUBE-EXT-A'], []],
  ])('%s', (_name, rules, expected) => {
    expect(publishedByRules(rules)).toEqual(expected);
    expect(parseWatchLine(`rules\t${[...rules, 'COMMIT'].join('\t')}`)).toEqual({ published: expected });
  });

  test('count only as a whole, and no text breaks the parser', () => {
    expect(parseWatchLine(`rules\t${WEB}`)).toBeUndefined();
    expect(parseWatchLine('rules')).toBeUndefined();
    fc.assert(fc.property(fc.array(fc.string()), (rules) => void publishedByRules(rules)));
  });
});

describe('wanted ports', () => {
  test('are listed once, with the most open address, without those that are not for others', () => {
    const sockets: Listening[] = [
      { protocol: 'tcp', port: 90, address: '127.0.0.1' },
      { protocol: 'tcp', port: 80, address: '::' },
      { protocol: 'tcp', port: 80, address: '0.0.0.0' },
      { protocol: 'tcp', port: 22, address: '0.0.0.0' },
      { protocol: 'tcp', port: 90, address: '::1' },
    ];
    sockets.push({ protocol: 'udp', port: 90, address: '::' });
    expect([...wantedPorts(sockets, ({ port }) => port === 22, SSH).values()]).toEqual([
      { protocol: 'tcp', port: 80, address: '0.0.0.0', way: 'ssh', binding: 'loopback' },
      { protocol: 'tcp', port: 90, address: '127.0.0.1', way: 'ssh', binding: 'loopback' },
      { protocol: 'udp', port: 90, address: '::', way: 'qemu', binding: 'loopback' },
    ]);
  });

  test('of rules come before sockets, and open on all addresses of this host unless only the guest itself could reach them', () => {
    const sockets: Listening[] = [
      { protocol: 'tcp', port: 80, address: '10.0.2.15', claimedBy: 'kube-system/traefik:web' },
      { protocol: 'tcp', port: 80, address: '10.0.2.15', claimedBy: 'container 3f0a1b2c3d4e' },
      { protocol: 'tcp', port: 80, address: '0.0.0.0' },
      ...ADDRESSES.map((address, index): Listening => ({ protocol: 'tcp', port: 90 + index, address })),
    ];
    const wanted = wantedPorts(sockets, none, { route: 'qemu', binding: 'all' });
    expect([...wanted.values()].map(({ port, address, binding }) => `${port} ${address} ${binding}`)).toEqual([
      '80 10.0.2.15 all',
      '90 10.0.2.15 all',
      '91 0.0.0.0 all',
      '92 :: all',
      '93 127.0.0.1 loopback',
      '94 ::1 loopback',
    ]);
    expect(wanted.get('tcp 80')?.claimedBy).toBe('kube-system/traefik:web');
  });

  test('a guest that listens on all addresses does not get every port of this host', () => {
    const everywhere = Array.from(
      { length: 65_535 },
      (_, index): Listening => ({ protocol: 'tcp', port: index + 1, address: '::' }),
    );
    expect(wantedPorts(everywhere, none, SSH).size).toBe(MAX_FORWARDS);
  });
});

describe('from existing to wanted forwards', () => {
  const listening = { protocol: 'tcp', port: 80, address: '0.0.0.0' } as const;
  const at = { ...listening, way: 'ssh', binding: 'loopback' } as const;
  const there = { state: 'forwarded', addresses: ['127.0.0.1'] } as const;
  const failed = { ...at, state: 'failed', reason: 'taken', at: 0 } as const;
  const ssh = SSH;
  const qemu: ForwardMethod = { ...SSH, route: 'qemu' };
  const all: ForwardMethod = { ...SSH, binding: 'all' };
  test.each<[string, Forward | undefined, ForwardMethod, number, { close: boolean; open: boolean }]>([
    ['none is there', undefined, ssh, 0, { close: false, open: true }],
    ['it is there', { ...at, ...there }, ssh, 0, { close: false, open: false }],
    ['it may be there', { ...at, state: 'unproven' }, ssh, 0, { close: false, open: true }],
    ['it goes another way', { ...at, ...there }, qemu, 0, { close: true, open: true }],
    ['it listens on other addresses', { ...at, ...there }, all, 0, { close: true, open: true }],
    ['it listens on all addresses', { ...at, ...there, binding: 'all' }, all, 0, { close: false, open: false }],
    ['it may not listen on all addresses', { ...at, ...there, binding: 'all' }, ssh, 0, { close: true, open: true }],
    ['it leads elsewhere', { ...at, address: '::', ...there }, ssh, 0, { close: true, open: true }],
    ['it failed just now', failed, ssh, RETRY_MS - 1, { close: false, open: false }],
    ['it failed a while ago', failed, ssh, RETRY_MS, { close: false, open: true }],
    ['it failed another way', failed, qemu, 1, { close: true, open: true }],
  ])('%s', (_name, forward, method, now, expected) => {
    const have = new Map(forward ? [[keyOf(forward), forward]] : []);
    const found = changes(wantedPorts([listening], none, method), have, now);
    const open = expected.open ? [{ ...listening, way: method.route, binding: method.binding }] : [];
    expect(found).toEqual({ close: expected.close && forward ? [forward] : [], open });
    expect(changes(new Map(), have, now)).toEqual({ close: forward ? [forward] : [], open: [] });
  });

  const protocol = fc.constantFrom('tcp' as const, 'udp' as const);
  const port = fc.integer({ min: 1, max: 30 });
  const address = fc.constantFrom(...ADDRESSES);
  const way = fc.constantFrom<ForwardRoute>('ssh', 'qemu');
  const binding = fc.constantFrom('loopback' as const, 'all' as const);
  const forwarded = {
    state: fc.constant('forwarded' as const),
    addresses: fc.constant(['127.0.0.1' as const]),
  };
  const failure = { state: fc.constant('failed' as const), reason: fc.string(), at: fc.nat(10_000) };
  const forward: fc.Arbitrary<Forward> = fc.oneof(
    fc.record({ protocol, port, address, way, binding, state: fc.constant('unproven' as const) }),
    fc.record({ protocol, port, address, way, binding, ...forwarded }),
    fc.record({ protocol, port, address, way, binding, ...failure }),
  );
  const now = fc.nat(20_000);

  test('performed, they leave exactly what is wanted, and nothing more to do', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ protocol, port, address })),
        fc.array(forward),
        fc.record({ route: way, binding }),
        now,
        fc.boolean(),
        (sockets, forwards, to, time, works) => {
          const have = new Map(forwards.map((each) => [keyOf(each), each]));
          const want = wantedPorts(sockets, none, to);
          const { close, open } = changes(want, have, time);
          for (const each of close) have.delete(keyOf(each));
          for (const each of open) {
            have.set(
              keyOf(each),
              works
                ? { ...each, state: 'forwarded', addresses: ['127.0.0.1'] }
                : { ...each, state: 'failed', reason: 'no', at: time },
            );
          }
          expect([...have.keys()].sort()).toEqual([...want.keys()].sort());
          for (const each of have.values()) {
            expect(each).toMatchObject({ way: each.protocol === 'udp' ? 'qemu' : to.route });
            expect(each).toMatchObject(want.get(keyOf(each)) ?? {});
            expect(each.state).not.toBe('unproven');
          }
          expect(changes(want, have, time)).toEqual({ close: [], open: [] });
        },
      ),
    );
  });
});
