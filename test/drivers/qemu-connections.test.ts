import { expect, test } from 'vitest';
import { connectionsAt, type Door, type Doors, doorInUse } from '../../src/drivers/machines/qemu/pause/connections.ts';

const RUN = '/home/u/state/drivers/qemu/run';
const DOORS: Doors = {
  sockets: new Set([`${RUN}/moby-docker.sock`, `${RUN}/ssh`]),
  ports: new Map([
    [8080, 'loopback'],
    [34777, 'loopback'],
    [8443, 'all'],
  ]),
};

/** As Linux 6.1 prints it: a listener, an accepted connection, one that waits, the client's end, and sockets of others. */
const UNIX = `Num       RefCount Protocol Flags    Type St Inode Path
00000000e3ed1c30: 00000002 00000000 00010000 0001 01 2021703 ${RUN}/moby-docker.sock
00000000ad8d4216: 00000003 00000000 00000000 0001 03 2022721 ${RUN}/moby-docker.sock
00000000a2aa3fff: 00000003 00000000 00000000 0001 02     0 ${RUN}/moby-docker.sock
0000000039aa1c11: 00000003 00000000 00000000 0001 03 2022720
000000007329eb7a: 00000002 00000000 00010000 0001 01 2020498 ${RUN}/ssh.hP52lCXJctwspMlc
000000007d271a18: 00000003 00000000 00000000 0001 03 2020768 ${RUN}/ssh.hP52lCXJctwspMlc
00000000534cf6cf: 00000003 00000000 00000000 0001 03 2021676 ${RUN}/ssh.hP52lCXJctwspMlc
00000000e3c6acbb: 00000003 00000000 00000000 0001 03 2016712 ${RUN}/qmp
000000001d1b3e39: 00000003 00000000 00000000 0001 03 2010301 /tmp/other/run/moby-docker.sock
00000000b2bababb: 00000003 00000000 00000000 0001 03 1995277 /tmp/other/run/ssh.SENX775Z68UKksl2
00000000c5b6b1aa: 00000002 00000000 00000000 0002 01 1995999 ${RUN}/moby-docker.sock
`;

const HEAD =
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode                                                     \n';
const line = (local: string, remote: string, state: string) =>
  `  12: ${local} ${remote} ${state} 00000000:00000000 00:00000000 00000000     0        0 2019275 1 00000000d557e96f 20 4 30 10 -1                     \n`;
const V6 = '00000000000000000000000001000000';
const MAPPED = '0000000000000000FFFF00000100007F';

function tcp(...lines: string[]): Map<Door, number> {
  return connectionsAt(DOORS, { unix: '', tcp: HEAD + lines.join('') });
}

test('connections to the sockets of a machine are counted, accepted or not, by path', () => {
  expect(connectionsAt(DOORS, { unix: UNIX, tcp: '' })).toEqual(
    new Map([
      [`${RUN}/moby-docker.sock`, 2],
      [`${RUN}/ssh`, 2],
    ]),
  );
});

test('a socket path with blanks is whole', () => {
  const path = '/home/a b/run/moby-docker.sock';
  const unix = `00000000ad8d4216: 00000003 00000000 00000000 0001 03 2022721 ${path}\n`;
  expect(connectionsAt({ sockets: new Set([path]), ports: new Map() }, { unix, tcp: '' })).toEqual(
    new Map([[path, 1]]),
  );
});

test.each([
  ['an open one', '0100007F:1F90', '0100007F:A592', '01', 1],
  ['one that is being opened', '0100007F:1F90', '0100007F:A592', '03', 1],
  ['one whose client has sent everything', '0100007F:1F90', '0100007F:A592', '08', 1],
  ['one over IPv6', `${V6}:1F90`, `${V6}:A592`, '01', 1],
  ['one over IPv4 to a socket of IPv6', `${MAPPED}:1F90`, `${MAPPED}:A592`, '01', 1],
  ['the listener', '0100007F:1F90', '00000000:0000', '0A', 0],
  ['one that was closed', '0100007F:1F90', '0100007F:A592', '06', 0],
  ["the client's end", '0100007F:A592', '0100007F:1F90', '01', 0],
  ['one to the same port of another address', '0A01A8C0:1F90', '0A01A8C0:A592', '01', 0],
  ['one to another port', '0100007F:1F91', '0100007F:A592', '01', 0],
])('of the TCP connections, %s', (_what, local, remote, state, count) => {
  expect(tcp(line(local, remote, state))).toEqual(new Map(count === 0 ? [] : [[8080, count]]));
});

test('a port that is open on all addresses counts connections to each of them', () => {
  const found = tcp(line('0A01A8C0:20FB', '0B01A8C0:A592', '01'), line('0100007F:20FB', '0100007F:A592', '01'));
  expect(found).toEqual(new Map([[8443, 2]]));
});

test('each port has its own number of connections', () => {
  const both = tcp(
    line('0100007F:1F90', '0100007F:A592', '01'),
    line('0100007F:87D9', '0100007F:A5A2', '01'),
    line('0100007F:87D9', '0100007F:C01A', '01'),
  );
  expect(both).toEqual(
    new Map([
      [8080, 1],
      [34777, 2],
    ]),
  );
});

test.each<[string, [Door, number][], [Door, number][], Door | undefined]>([
  ['none', [], [], undefined],
  ['only our own', [['/a', 2]], [['/a', 2]], undefined],
  ['fewer than our own', [['/a', 1]], [['/a', 2]], undefined],
  ['one more', [['/a', 3]], [['/a', 2]], '/a'],
  ['one where we have none', [[80, 1]], [['/a', 2]], 80],
  [
    'one more here and one less there',
    [
      ['/a', 1],
      ['/b', 2],
    ],
    [
      ['/a', 2],
      ['/b', 1],
    ],
    '/b',
  ],
])('of these connections, %s, the first of a client is found', (_what, found, own, expected) => {
  expect(doorInUse(new Map(found), new Map(own))).toBe(expected);
});
