import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  completeness,
  firewallRules,
  mayRestore,
  parseTraces,
  restoreInput,
} from '../../src/drivers/machines/host/firewall.ts';
import { hostVerdict, programEnvironment } from '../../src/drivers/machines/host/index.ts';
import { isShim, isWithin, rootIsWithin } from '../../src/drivers/machines/host/leftovers.ts';
import { readMachineRecord, writeMachineRecord } from '../../src/drivers/machines/host/machine.ts';
import type { Range } from '../../src/drivers/machines/host/network.ts';
import {
  bridgeAddress,
  choosePool,
  formatRange,
  isReady,
  otherBridges,
  overlaps,
  ownBridges,
  parseLinks,
  parseRange,
  parseRoutes,
  poolFor,
  staleAddresses,
} from '../../src/drivers/machines/host/network.ts';
import { hostPlaces } from '../../src/drivers/machines/host/places.ts';
import { parseMounts } from '../../src/drivers/machines/shared/mountinfo.ts';
import { MACHINE } from '../contract/driver-suite.ts';

function range(text: string): Range {
  const parsed = parseRange(text);
  if (!parsed) throw new Error(`no range: ${text}`);
  return parsed;
}

describe('places', () => {
  test('differ by directory, and respect the limits of the kernel', () => {
    const [a, b] = [hostPlaces('/state/a'), hostPlaces('/state/b')];
    expect(a).toEqual(hostPlaces('/state/a'));
    expect(a.bridge).not.toBe(b.bridge);
    expect(a.bridge.length).toBeLessThanOrEqual(15);
    expect(a.chain.length).toBeLessThanOrEqual(28);
  });

  test('move sockets elsewhere when one would exceed 107 bytes', () => {
    const longest = '/run/moby/exec/libnetwork/0123456789ab.sock'.length;
    const fits = `/${'x'.repeat(107 - longest - 1)}`;
    expect(hostPlaces(fits)).toMatchObject({ run: `${fits}/run`, runElsewhere: false });
    const { run, id, runElsewhere, data } = hostPlaces(`${fits}x`);
    expect({ run, runElsewhere }).toEqual({ run: `/run/rdctl/${id}`, runElsewhere: true });
    expect(data).toBe(`${fits}x/data`);
    expect(hostPlaces(`/${'ü'.repeat(40)}`).runElsewhere).toBe(true);
  });
});

describe('address ranges', () => {
  test('are parsed and formatted; anything else is rejected', () => {
    expect(formatRange(range('10.1.2.0/24'))).toBe('10.1.2.0/24');
    expect(formatRange(range('192.168.7.9'))).toBe('192.168.7.9/32');
    for (const text of ['', 'default', '10.1.2', '10.1.2.256/24', '10.1.2.0/33', 'fd00::/8', '10.1.2.0/24 ']) {
      expect(parseRange(text), text).toBeUndefined();
    }
  });

  test.each([
    ['10.1.0.0/16', '10.1.255.0/24', true],
    ['10.1.0.0/16', '10.2.0.0/16', false],
    ['10.0.0.0/8', '10.200.0.0/16', true],
    ['0.0.0.0/0', '172.16.0.0/12', true],
    ['255.255.255.255/32', '255.255.255.255', true],
  ])('%s and %s overlap: %s', (a, b, expected) => {
    expect(overlaps(range(a), range(b))).toBe(expected);
    expect(overlaps(range(b), range(a))).toBe(expected);
  });

  test('are chosen free for any seed', () => {
    const taken = ['10.0.0.0/9', '10.128.0.0/10', '10.200.7.0/24', '172.31.0.0/16'].map(range);
    for (let seed = 0; seed < 300; seed += 7) {
      const pool = choosePool(taken, seed);
      expect(pool && taken.some((other) => overlaps(pool, other))).toBe(false);
    }
    expect(choosePool(taken, 1)).not.toEqual(choosePool(taken, 250));
    expect(choosePool([range('10.0.0.0/8')], 3)).toEqual(range('172.31.0.0/16'));
    expect(choosePool(['10.0.0.0/8', '172.16.0.0/12'].map(range), 3)).toBeUndefined();
    expect(bridgeAddress(range('10.9.0.0/16'))).toBe('10.9.0.1/24');
  });
});

describe('bridges', () => {
  const pool = range('10.9.0.0/16');
  const link = (name: string, address: string, bridge = true) => ({ name, up: true, bridge, addresses: [address] });
  const links = [
    link('eth0', '192.0.2.2/24', false),
    link('rd12345678', '10.9.0.1/24'),
    link('br-0123456789ab', '10.9.1.1/24'),
    link('br-ba9876543210', '172.18.0.1/16'),
    link('docker0', '172.17.0.1/16'),
  ];
  const routes = ['192.0.2.0/24', '10.9.0.0/24', '10.9.0.1', '10.9.1.0/24', '172.17.0.0/16'].map(range);

  const networks = '\0network/0123456789abcdef/\0';

  test('are identified by what the engine created, not by range', () => {
    const own = ownBridges([...links, link('br-0123456789ac', '10.9.2.1/24')], 'rd12345678', networks);
    expect(own.map(({ name }) => name)).toEqual(['rd12345678', 'br-0123456789ab']);
    expect(otherBridges(links, 'rd12345678', networks).map(({ name }) => name)).toEqual(['br-ba9876543210', 'docker0']);
    expect(isReady(links[1], pool)).toBe(true);
    expect(isReady(links[2], pool)).toBe(false);
    expect(isReady(undefined, pool)).toBe(false);
    expect(staleAddresses(links, 'rd12345678', range('10.10.0.0/16'))).toEqual(['10.9.0.1/24']);
  });

  test('keep their range unless something else uses it now', () => {
    expect(poolFor(pool, links, routes, 'rd12345678', networks, 8)).toEqual(pool);
    const moved = poolFor(pool, links, [...routes, range('10.9.128.0/17')], 'rd12345678', networks, 8);
    expect(moved).not.toEqual(pool);
    // A network that another engine took from the range while it was free.
    expect(poolFor(pool, links, routes, 'rd12345678', '', 8)).not.toEqual(pool);
    expect(poolFor(undefined, [], [], 'rd12345678', networks, 8)).toEqual(pool);
  });
});

test('links and routes are parsed from the output of ip', () => {
  const links = parseLinks(
    JSON.stringify([
      { ifname: 'lo', flags: ['LOOPBACK', 'UP'], addr_info: [{ family: 'inet', local: '127.0.0.1', prefixlen: 8 }] },
      {},
      {
        ifname: 'docker0',
        flags: [],
        linkinfo: { info_kind: 'bridge' },
        addr_info: [{ family: 'inet6', local: '::1' }],
      },
    ]),
  );
  expect(links).toEqual([
    { name: 'lo', up: true, bridge: false, addresses: ['127.0.0.1/8'] },
    { name: 'docker0', up: false, bridge: true, addresses: [] },
  ]);
  expect(
    parseRoutes('[{"dst":"default"},{"dst":"10.0.0.0/8"},{"type":"local","dst":"10.0.0.1"},{}]').map(formatRange),
  ).toEqual(['10.0.0.0/8', '10.0.0.1/32']);
  expect(parseRoutes('')).toEqual([]);
});

describe('the packet filter', () => {
  const plan = { chain: 'RDCTL-1', tag: 'rdctl:1', pool: '10.9.0.0/16', otherBridges: ['docker0'], bridgeFilter: true };
  const saved = (rules: string, jump = '-A FORWARD -m comment --comment "rdctl:1" -j RDCTL-1\n') => `# Generated
*filter
:FORWARD DROP [0:0]
:RDCTL-1 - [0:0]
-A FORWARD -j DOCKER-USER
${jump}${rules}COMMIT
*mangle
:RDCTL-1 - [0:0]
${jump}-A RDCTL-1 -s a -m physdev --physdev-is-bridged -j RETURN
-A RDCTL-1 -d a -j RETURN
-A RDCTL-1 -d a -j DROP
COMMIT
*nat
:RDCTL-1 - [3:4]
-A POSTROUTING -m comment --comment "rdctl:1" -j RDCTL-1
-A RDCTL-1 -s 10.9.0.0/16 ! -d 10.9.0.0/16 -m comment --comment "rdctl:1" -j MASQUERADE
-A POSTROUTING -j RDCTL-12
COMMIT
`;
  const bridged = '-A RDCTL-1 -s a -m physdev --physdev-is-bridged -j ACCEPT\n';
  const rest = '-A RDCTL-1 -d a -j ACCEPT\n-A RDCTL-1 -d a -j DROP\n-A RDCTL-1 -s a -j ACCEPT\n';

  test('accepts replies before it rejects, and rejects other bridges before it accepts outgoing traffic', () => {
    const targets = firewallRules(plan).filter.map((rule) => `${rule[0]} ${rule.at(-1)}`);
    expect(targets).toEqual(['-s ACCEPT', '-d ACCEPT', '-d DROP', '-s DROP', '-s ACCEPT']);
    // Rejecting rules come before any foreign rules in filter.
    const early = firewallRules(plan).mangle.map((rule) => `${rule[0]} ${rule.at(-1)}`);
    expect(early).toEqual(['-s RETURN', '-d RETURN', '-d DROP', '-s DROP']);
    expect(
      restoreInput(plan)
        .split('\n')
        .filter((line) => line.startsWith('-A')),
    ).toHaveLength(10);
    for (const line of restoreInput(plan)
      .split('\n')
      .filter((text) => text.startsWith('-A'))) {
      expect(line).toMatch(/^-A RDCTL-1 -m comment --comment rdctl:1 /);
    }
    expect(restoreInput({ ...plan, bridgeFilter: false })).not.toContain('physdev');
  });

  test('is found complete, partial, or absent', () => {
    expect(completeness(parseTraces(saved(bridged + rest), 'RDCTL-1'), true)).toBe('whole');
    expect(completeness(parseTraces(saved(rest), 'RDCTL-1'), false)).toBe('whole');
    expect(completeness(parseTraces(saved(`${rest}-A RDCTL-1 -o docker0 -j DROP\n`), 'RDCTL-1'), true)).toBe('part');
    expect(completeness(parseTraces(saved(bridged + rest, ''), 'RDCTL-1'), true)).toBe('part');
    expect(completeness(parseTraces(saved(''), 'RDCTL-1'), true)).toBe('part');
    expect(completeness(parseTraces('*filter\n:FORWARD DROP [0:0]\nCOMMIT\n', 'RDCTL-1'), true)).toBe('none');
    expect(parseTraces(saved(rest), 'RDCTL-12').jumps).toEqual({ mangle: 0, filter: 0, nat: 1 });
  });
});

test('IP forwarding is turned off again only when we turned it on and nothing else may need it', () => {
  const use = { changedByUs: true, otherBridges: 0, foreignNat: false };
  expect(mayRestore(use)).toBe(true);
  expect(mayRestore({ ...use, changedByUs: false })).toBe(false);
  expect(mayRestore({ ...use, otherBridges: 1 })).toBe(false);
  expect(mayRestore({ ...use, foreignNat: true })).toBe(false);
});

describe('leftovers of an engine', () => {
  const shim = ['/usr/bin/containerd-shim-runc-v2', '-namespace', 'moby', '-id', 'x', '-address', '/s/c.sock'];

  test('are recognized by a shim socket and the files of a root directory', () => {
    expect(isShim(shim, '/s/c.sock')).toBe(true);
    expect(isShim(shim, '/run/containerd/containerd.sock')).toBe(false);
    expect(isShim(['vi', '-address', '/s/c.sock'], '/s/c.sock')).toBe(false);
    const mounts = parseMounts(
      '1 2 0:3 / / rw - overlay overlay rw,lowerdir=/d/l/A,upperdir=/my\\040data/x/diff,workdir=/w\n2 1 0:4 / /proc rw - proc proc rw\n',
    );
    expect(rootIsWithin(mounts, ['/my data'])).toBe(true);
    expect(rootIsWithin(mounts, ['/d'])).toBe(false);
    expect(rootIsWithin([], ['/'])).toBe(false);
  });

  test('are never looked for outside its directories', () => {
    expect(isWithin('/a/b', ['/a'])).toBe(true);
    expect(isWithin('/a', ['/a'])).toBe(true);
    expect(isWithin('/ab', ['/a'])).toBe(false);
  });
});

test('programs get the search path and the proxy, but no secrets', () => {
  const env = {
    PATH: '/x',
    HTTPS_PROXY: 'http://127.0.0.1:1',
    RDCTL_PASSWORD: 's',
    DOCKER_HOST: 'unix:///y',
    NOTIFY_SOCKET: '/n',
  };
  expect(programEnvironment(env, '/bin')).toEqual({ PATH: '/bin', HTTPS_PROXY: 'http://127.0.0.1:1', LC_ALL: 'C' });
});

describe('the probe', () => {
  const fine = { platform: 'linux', root: true, missingPrograms: [], capable: true, controlGroups: true } as const;

  test('accepts root with all programs', () => {
    expect(hostVerdict(fine)).toEqual({ usable: true, detail: expect.any(String) });
  });

  test.each([
    [{ platform: 'darwin' as const }, /^needs Linux, and this is macOS$/, /^run rdctl on Linux$/],
    [{ root: false }, /root/, /^sudo rdctl up$/],
    [
      { missingPrograms: ['dockerd'] },
      /not installed: dockerd/,
      /^apt-get update && apt-get install --no-install-recommends docker\.io '\?exact-name\(docker-cli\)' iproute2 /,
    ],
    [
      { root: false, missingPrograms: ['dockerd'] },
      /root.*not installed: dockerd/,
      /^sudo apt-get update && sudo apt-get install .* && sudo rdctl up$/,
    ],
    [{ capable: false }, /CAP_NET_ADMIN/, /outside the container/],
    [{ controlGroups: false }, /control groups/, /mount/],
  ])('with %j says why not and what to do', (change, reason, fix) => {
    const answer = hostVerdict({ ...fine, ...change });
    expect(answer).toMatchObject({
      usable: false,
      reason: expect.stringMatching(reason),
      fix: expect.stringMatching(fix),
    });
    // A sentence is not offered as a command.
    expect('copyable' in answer).toBe(/^(?:sudo |apt-get |mount )/.test('fix' in answer ? answer.fix : ''));
  });
});

test('a machine record is read as it was written, and a damaged one is not a missing one', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'rd-'));
  const file = join(directory, 'machine.json');
  expect(await readMachineRecord(file)).toBeUndefined();
  const record = { power: 'on', spec: MACHINE, pool: range('10.9.0.0/16'), forwardingBoot: 'boot' } as const;
  await writeMachineRecord(file, record);
  expect(await readMachineRecord(file)).toEqual(record);
  for (const text of ['', '{}', '{"power":"on"', '{"power":"on","pool":"x","spec":{"mount":{}}}']) {
    writeFileSync(file, text);
    expect(await readMachineRecord(file), text).toBe('damaged');
  }
  rmSync(directory, { recursive: true });
});

test('a machine record reports that it was copied from one still in place', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'rd-'));
  const [file, copy] = [join(directory, 'one', 'machine.json'), join(directory, 'two', 'machine.json')];
  const record = { power: 'on', spec: MACHINE, pool: range('10.9.0.0/16') } as const;
  mkdirSync(dirname(file));
  await writeMachineRecord(file, record);
  cpSync(dirname(file), dirname(copy), { recursive: true });
  expect(await readMachineRecord(copy)).toEqual({ ...record, copied: true });
  rmSync(dirname(file), { recursive: true });
  expect(await readMachineRecord(copy)).toEqual(record);
  rmSync(directory, { recursive: true });
});
