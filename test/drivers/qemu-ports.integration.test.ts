import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  changes,
  type Forward,
  type ForwardRoute,
  keyOf,
  MAX_FORWARDS,
  RETRY_MS,
  wantedPorts,
} from '../../src/drivers/machines/qemu/ports/forwards.ts';
import {
  type GuestAddress,
  type Listening,
  parseWatchLine,
  WATCH_SCRIPT,
} from '../../src/drivers/machines/qemu/ports/watch.ts';
import { run, stream } from '../../src/os/run.ts';
import { freePort } from '../helpers/free-port.ts';

const none = (): boolean => false;
const socket = (address: string, port: string, state = '0A') =>
  ` ${address}:${port} ${'0'.repeat(address.length)}:0000 ${state}`;
const ADDRESSES: readonly GuestAddress[] = ['0.0.0.0', '::', '127.0.0.1', '::1'];

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
          if (line === undefined || line === 'heartbeat') continue;
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
        const reports = lines.filter((line) => line !== undefined && line !== 'heartbeat');
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
    expect(parseWatchLine(stdout)).toHaveProperty('listening');
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
    expect([...wantedPorts(sockets, ({ port }) => port === 22).values()]).toEqual([
      { protocol: 'tcp', port: 80, address: '0.0.0.0' },
      { protocol: 'tcp', port: 90, address: '127.0.0.1' },
      { protocol: 'udp', port: 90, address: '::' },
    ]);
  });

  test('a guest that listens on all addresses does not get every port of this host', () => {
    const everywhere = Array.from(
      { length: 65_535 },
      (_, index): Listening => ({ protocol: 'tcp', port: index + 1, address: '::' }),
    );
    expect(wantedPorts(everywhere, none).size).toBe(MAX_FORWARDS);
  });
});

describe('from existing to wanted forwards', () => {
  const listening = { protocol: 'tcp', port: 80, address: '0.0.0.0' } as const;
  const at = { ...listening, way: 'ssh' } as const;
  const wanted = new Map([[keyOf(at), listening]]);
  const there = { state: 'forwarded', addresses: ['127.0.0.1'] } as const;
  const failed = { ...at, state: 'failed', reason: 'taken', at: 0 } as const;
  test.each<[string, Forward | undefined, ForwardRoute, number, { close: boolean; open: boolean }]>([
    ['none is there', undefined, 'ssh', 0, { close: false, open: true }],
    ['it is there', { ...at, ...there }, 'ssh', 0, { close: false, open: false }],
    ['it may be there', { ...at, state: 'unproven' }, 'ssh', 0, { close: false, open: true }],
    ['it goes another way', { ...at, ...there }, 'qemu', 0, { close: true, open: true }],
    ['it leads elsewhere', { ...at, address: '::', ...there }, 'ssh', 0, { close: true, open: true }],
    ['it failed just now', failed, 'ssh', RETRY_MS - 1, { close: false, open: false }],
    ['it failed a while ago', failed, 'ssh', RETRY_MS, { close: false, open: true }],
    ['it failed another way', failed, 'qemu', 1, { close: true, open: true }],
  ])('%s', (_name, forward, way, now, expected) => {
    const have = new Map(forward ? [[keyOf(forward), forward]] : []);
    const found = changes(wanted, have, way, now);
    const open = expected.open ? [{ ...listening, way }] : [];
    expect(found).toEqual({ close: expected.close && forward ? [forward] : [], open });
    expect(changes(new Map(), have, way, now)).toEqual({ close: forward ? [forward] : [], open: [] });
  });

  const protocol = fc.constantFrom('tcp' as const, 'udp' as const);
  const port = fc.integer({ min: 1, max: 30 });
  const address = fc.constantFrom(...ADDRESSES);
  const way = fc.constantFrom<ForwardRoute>('ssh', 'qemu');
  const forwarded = {
    state: fc.constant('forwarded' as const),
    addresses: fc.constant(['127.0.0.1' as const]),
  };
  const failure = { state: fc.constant('failed' as const), reason: fc.string(), at: fc.nat(10_000) };
  const forward: fc.Arbitrary<Forward> = fc.oneof(
    fc.record({ protocol, port, address, way, state: fc.constant('unproven' as const) }),
    fc.record({ protocol, port, address, way, ...forwarded }),
    fc.record({ protocol, port, address, way, ...failure }),
  );
  const now = fc.nat(20_000);

  test('performed, they leave exactly what is wanted, and nothing more to do', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ protocol, port, address })),
        fc.array(forward),
        way,
        now,
        fc.boolean(),
        (sockets, forwards, to, time, works) => {
          const have = new Map(forwards.map((each) => [keyOf(each), each]));
          const want = wantedPorts(sockets, none);
          const { close, open } = changes(want, have, to, time);
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
            expect(each).toMatchObject({ way: each.protocol === 'udp' ? 'qemu' : to, ...want.get(keyOf(each)) });
            expect(each.state).not.toBe('unproven');
          }
          expect(changes(want, have, to, time)).toEqual({ close: [], open: [] });
        },
      ),
    );
  });
});
