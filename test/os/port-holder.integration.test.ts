import { createSocket } from 'node:dgram';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { portHolders } from '../../src/os/port-holder.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const HEAD = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n';
const socket = (local: string, state: string, uid: number, inode: number) =>
  `   0: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000  ${uid}        0 ${inode} 1 0 100 0 0 10 0\n`;

/** A `/proc` with these tables, and process 7 that has the socket 42 open. */
function proc(tables: Record<string, string>): string {
  const directory = temporaryDirectory();
  for (const path of ['net', '7/fd', '8', 'sys']) mkdirSync(join(directory, path), { recursive: true });
  for (const [name, text] of Object.entries(tables)) writeFileSync(join(directory, 'net', name), HEAD + text);
  writeFileSync(join(directory, '7/comm'), 'nginx\n');
  symlinkSync('/dev/null', join(directory, '7/fd/0'));
  symlinkSync('socket:[42]', join(directory, '7/fd/3'));
  return directory;
}

describe('the program on a port', () => {
  const nginx = { name: 'nginx', pid: 7 };
  test.each<[string, Record<string, string>, object | undefined]>([
    ['is nobody without a table', {}, undefined],
    ['is not the one of a connection', { tcp: socket('0100007F:0050', '01', 0, 42) }, undefined],
    ['is not the one of another port', { tcp: socket('0100007F:0051', '0A', 0, 42) }, undefined],
    ['is found', { tcp: socket('0100007F:0050', '0A', 0, 42) }, { address: '127.0.0.1', uid: 0, program: nginx }],
    [
      'is found on IPv6',
      { tcp6: socket('00000000000000000000000001000000:0050', '0A', 0, 42) },
      { address: '::1', uid: 0, program: nginx },
    ],
    [
      'is found on all addresses',
      { tcp: '', tcp6: socket(`${'0'.repeat(32)}:0050`, '0A', 0, 42) },
      { address: '::', uid: 0, program: nginx },
    ],
    [
      'is found on IPv4 in IPv6',
      { tcp6: socket('0000000000000000FFFF00000100007F:0050', '0A', 0, 42) },
      { address: '127.0.0.1', uid: 0, program: nginx },
    ],
    ['may be hidden', { tcp: socket('00000000:0050', '0A', 33, 43) }, { address: '0.0.0.0', uid: 33 }],
  ])('%s', async (_name, tables, expected) => {
    expect(await portHolders(proc(tables))({ protocol: 'tcp', port: 80 })).toEqual(expected);
  });

  test('of UDP is another one', async () => {
    const holderOf = portHolders(proc({ udp: socket('00000000:0035', '07', 0, 42) }));
    expect(await holderOf({ protocol: 'udp', port: 53 })).toEqual({ address: '0.0.0.0', uid: 0, program: nginx });
    expect(await holderOf({ protocol: 'tcp', port: 53 })).toBeUndefined();
  });

  test('is looked for again once the socket is another one', async () => {
    const directory = proc({ tcp: socket('0100007F:0050', '0A', 0, 42) });
    const holderOf = portHolders(directory);
    const at = { protocol: 'tcp', port: 80 } as const;
    expect(await holderOf(at)).toMatchObject({ program: nginx });
    writeFileSync(join(directory, '7/comm'), 'renamed\n');
    expect(await holderOf(at)).toMatchObject({ program: nginx });
    writeFileSync(join(directory, 'net/tcp'), HEAD);
    expect(await holderOf(at)).toBeUndefined();
    writeFileSync(join(directory, 'net/tcp'), HEAD + socket('0100007F:0050', '0A', 0, 42));
    expect(await holderOf(at)).toMatchObject({ program: { name: 'renamed' } });
  });

  test.skipIf(process.platform !== 'linux')('is this one for a socket of ours', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const datagrams = createSocket('udp4');
    await new Promise<void>((resolve) => datagrams.bind(0, '127.0.0.1', resolve));
    onTestFinished(() => void datagrams.close());
    const address = server.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    const ours = { address: '127.0.0.1', uid: process.getuid?.(), program: { pid: process.pid } };
    expect(await portHolders()({ protocol: 'tcp', port })).toMatchObject(ours);
    expect(await portHolders()({ protocol: 'udp', port: datagrams.address().port })).toMatchObject(ours);
  });
});
