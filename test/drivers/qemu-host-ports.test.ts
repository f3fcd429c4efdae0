import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { frozenKey, GUEST_SCRIPTS } from '../../src/drivers/machines/qemu/frozen/state.ts';
import { hostPortFilter } from '../../src/drivers/machines/qemu/host-ports/filter.ts';
import { hostSockets } from '../../src/drivers/machines/qemu/host-ports/host-sockets.ts';
import { openPorts } from '../../src/drivers/machines/qemu/host-ports/open-ports.ts';
import { FILTER_SCRIPT, filterRules } from '../../src/drivers/machines/qemu/host-ports/rules.ts';
import type { GuestAddress, Protocol } from '../../src/drivers/machines/qemu/ports/rules.ts';
import { parseSockets } from '../../src/drivers/machines/qemu/ports/watch.ts';
import { RdError } from '../../src/errors.ts';
import { checkEach } from '../helpers/check-each.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { scriptedGuest, scriptedWorld } from './scripted-qemu.ts';

const signal = new AbortController().signal;
const HEADER =
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode                     ';
const row = (local: string, remote: string, state: string) =>
  `   0: ${local} ${remote} ${state} 00000000:00000000 00:00000000 00000000     0        0 12345 1 0000000000000000 100 0 0 10 0`;
const TABLES = {
  tcp: [
    row('00000000:0016', '00000000:0000', '0A'),
    row('0100007F:1538', '00000000:0000', '0A'),
    row('0101A8C0:0050', '00000000:0000', '0A'),
    // A connection to port 0x1F90, which is no server.
    row('0100007F:1F90', '0100007F:0016', '01'),
  ],
  tcp6: [
    row('00000000000000000000000000000000:1F40', '00000000000000000000000000000000:0000', '0A'),
    row('00000000000000000000000001000000:1F41', '00000000000000000000000000000000:0000', '0A'),
    row('0000000000000000FFFF00000100007F:1F42', '00000000000000000000000000000000:0000', '0A'),
  ],
  udp: [row('00000000:14E9', '00000000:0000', '07'), row('00000000:9C40', '00000000:0000', '07')],
  udp6: [],
};

/** A mount point of the kernel's files with these tables. */
function proc(tables: Partial<Record<keyof typeof TABLES, string[]>>, range?: string): string {
  const root = temporaryDirectory();
  mkdirSync(join(root, 'net'));
  for (const [name, rows] of Object.entries(tables)) {
    writeFileSync(join(root, 'net', name), `${[HEADER, ...rows].join('\n')}\n`);
  }
  if (range !== undefined) {
    mkdirSync(join(root, 'sys/net/ipv4'), { recursive: true });
    writeFileSync(join(root, 'sys/net/ipv4/ip_local_port_range'), range);
  }
  return root;
}

test('the servers of this host are read from the tables of its kernel', async () => {
  expect(await hostSockets(proc(TABLES, '32768\t60999\n'))).toEqual({
    listening: [
      { protocol: 'tcp', port: 22, address: '0.0.0.0' },
      { protocol: 'tcp', port: 5432, address: '127.0.0.1' },
      { protocol: 'tcp', port: 8000, address: '::' },
      { protocol: 'tcp', port: 8001, address: '::1' },
      { protocol: 'tcp', port: 8002, address: '127.0.0.1' },
      { protocol: 'udp', port: 5353, address: '0.0.0.0' },
      { protocol: 'udp', port: 40_000, address: '0.0.0.0' },
    ],
    clientPorts: [32_768, 60_999],
  });
  expect((await hostSockets(proc({ tcp: TABLES.tcp }, '1024 2000')))?.clientPorts).toEqual([1_024, 2_000]);
  expect((await hostSockets(proc({ tcp: TABLES.tcp })))?.clientPorts).toEqual([32_768, 60_999]);
});

test('a host without such tables has no known servers', async () => {
  expect(await hostSockets(proc({}))).toBeUndefined();
  expect(openPorts(['80'], [], undefined)).toEqual({ tcp: ['80'], udp: ['80'] });
});

test('ports are open that the profile allows or that everyone can reach', () => {
  const at = (text: string) => {
    const [protocol = '', address = '', port = ''] = text.split(' ');
    return { protocol: protocol as Protocol, address: address as GuestAddress, port: Number(port) };
  };
  const cases: Record<
    string,
    {
      allowed?: string[];
      forwarded?: string[];
      servers: string[];
      tcp: string[];
      udp: string[];
    }
  > = {
    nothing: { servers: [], tcp: [], udp: [] },
    'on all addresses': { servers: ['tcp 0.0.0.0 80'], tcp: ['80'], udp: [] },
    'on all addresses of both kinds': { servers: ['tcp :: 80'], tcp: ['80'], udp: [] },
    'on the loopback interface': { servers: ['tcp 127.0.0.1 80', 'tcp ::1 81'], tcp: [], udp: [] },
    'on both, by two programs': { servers: ['tcp :: 80', 'tcp 127.0.0.1 80'], tcp: [], udp: [] },
    'the other protocol': { servers: ['udp 0.0.0.0 53', 'tcp 127.0.0.1 53'], tcp: [], udp: ['53'] },
    'a UDP client': { servers: ['udp 0.0.0.0 40000', 'tcp 0.0.0.0 40000'], tcp: ['40000'], udp: [] },
    allowed: { allowed: ['5432'], servers: ['tcp 127.0.0.1 5432'], tcp: ['5432'], udp: ['5432'] },
    'forwarded to the guest': {
      forwarded: ['tcp forwarded 8080', 'udp failed 8081'],
      servers: ['tcp 127.0.0.1 8080', 'udp 127.0.0.1 8081'],
      tcp: ['8080'],
      udp: [],
    },
    'ranges that touch and overlap': {
      allowed: ['3000-3010', '5432'],
      servers: ['tcp 0.0.0.0 3011', 'tcp :: 3005', 'tcp 0.0.0.0 2998'],
      tcp: ['2998', '3000-3011', '5432'],
      udp: ['3000-3010', '5432'],
    },
  };
  return checkEach(Object.entries(cases), ({ allowed = [], forwarded = [], servers, tcp, udp }) => {
    const published = forwarded.map((text) => {
      const [protocol, state, port] = text.split(' ');
      return { protocol: protocol as Protocol, state: state as 'forwarded' | 'failed', port: Number(port) };
    });
    const sockets = { listening: servers.map(at), clientPorts: [32_768, 60_999] as [number, number] };
    expect(openPorts(allowed, published, sockets)).toEqual({ tcp, udp });
  });
});

test('the rules refuse everything on the network of QEMU but names, DHCP and open ports', () => {
  const open = [
    '-A RDCTL-HOST -d 10.0.2.3/32 -p udp --dport 53 -j RETURN',
    '-A RDCTL-HOST -d 10.0.2.3/32 -p tcp --dport 53 -j RETURN',
    '-A RDCTL-HOST -d 10.0.2.2/32 -p udp --dport 67 -j RETURN',
    '-A RDCTL-HOST -d 255.255.255.255/32 -p udp --dport 67 -j RETURN',
    '-A RDCTL-HOST -d 10.0.2.2/32 -p tcp --dport 22 -j RETURN',
    '-A RDCTL-HOST -d 10.0.2.2/32 -p tcp --dport 3000:3010 -j RETURN',
    '-A RDCTL-HOST -d 10.0.2.2/32 -p udp --dport 5353 -j RETURN',
  ];
  expect(filterRules({ tcp: ['22', '3000-3010'], udp: ['5353'] }).split('\n')).toEqual([
    '*nat',
    ':RDCTL-HOST -',
    '-A RDCTL-HOST -d 10.0.2.15/32 -j RETURN',
    '-A RDCTL-HOST -d 10.0.2.53/32 -j RETURN',
    ...open,
    '-A RDCTL-HOST -p tcp -j REDIRECT --to-ports 1',
    '-A RDCTL-HOST -p udp -j REDIRECT --to-ports 1',
    'COMMIT',
    '*mangle',
    ':RDCTL-HOST -',
    '-A RDCTL-HOST -p tcp ! --syn -j RETURN',
    '-A RDCTL-HOST -p udp -m conntrack --ctdir REPLY -j RETURN',
    '-A RDCTL-HOST -p icmp -j RETURN',
    ...open,
    '-A RDCTL-HOST -j DROP',
    'COMMIT',
    '',
  ]);
});

test('a frozen state is stale once the way to set the filter has changed', () => {
  expect(GUEST_SCRIPTS).toContain(FILTER_SCRIPT);
  const facts = { image: '', qemu: '', processor: '', shape: [], dataBytes: 1, keys: [] };
  expect(frozenKey(facts)).not.toBe(
    frozenKey(
      facts,
      GUEST_SCRIPTS.filter((script) => script !== FILTER_SCRIPT),
    ),
  );
});

/** A filter in a scripted guest, on a host whose servers are `servers`. */
function scene(servers: string[] = []) {
  const world = scriptedWorld();
  const host = { tcp: servers };
  const filter = hostPortFilter({
    guest: scriptedGuest(world),
    hostSockets: async () => ({ listening: parseSockets(host.tcp.join('\n')), clientPorts: [32_768, 60_999] }),
    published: () => [],
    log: () => undefined,
  });
  return { world, host, filter };
}
const WEB = row('00000000:1F40', '00000000:0000', '0A');

test('the guest gets rules when the ports change, and otherwise runs nothing', async () => {
  const { world, host, filter } = scene();
  expect(await filter.follow(['80'], signal)).toEqual({ open: { tcp: ['80'], udp: ['80'] } });
  expect(world.filters).toEqual([filterRules({ tcp: ['80'], udp: ['80'] })]);
  await filter.follow(['80'], signal);
  expect(world.filters).toHaveLength(1);

  host.tcp = [WEB];
  expect(await filter.follow(['80'], signal)).toEqual({ open: { tcp: ['80', '8000'], udp: ['80'] } });
  await filter.set([], signal);
  expect(world.filters.slice(1)).toEqual([
    filterRules({ tcp: ['80', '8000'], udp: ['80'] }),
    filterRules({ tcp: ['8000'], udp: [] }),
  ]);
  await filter.follow([], signal);
  expect(world.filters).toHaveLength(3);
});

test('a guest that cannot filter is repaired, not left open', async () => {
  const { world, filter } = scene();
  await filter.set([], signal);
  world.filtersNot = 'iptables-restore: not found';
  const repair = 'the guest does not filter its connections to this host: iptables-restore: not found';
  expect(await filter.follow(['80'], signal)).toEqual({ repair });
  // Nothing is known of what is in force now, also if the ports go back to what they were.
  expect(await filter.follow([], signal)).toEqual({ repair });
  const failure = await filter.set([], signal).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(RdError);
  expect(failure).toMatchObject({
    code: 'ERR_DRIVER_FAILED',
    message: repair,
    advice: expect.stringMatching(/^Restart the machine/),
  });

  world.filtersNot = '';
  expect(await filter.follow([], signal)).toEqual({ open: { tcp: [], udp: [] } });
});

test('a canceled look is no failure of the filter', async () => {
  const { filter, world } = scene();
  world.filtersNot = 'canceled';
  await expect(filter.follow([], AbortSignal.abort())).rejects.toThrow('canceled');
});
