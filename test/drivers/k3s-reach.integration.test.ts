import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { copyIn } from '../../src/drivers/machines/host/shell.ts';
import { portConflicts } from '../../src/drivers/machines/qemu/ports/conflict.ts';
import { guestReach } from '../../src/drivers/machines/qemu/reach.ts';
import { connectTo } from '../../src/drivers/machines/shared/sockets.ts';
import { run } from '../../src/os/run.ts';
import { freePort } from '../helpers/free-port.ts';
import { listening, NEVER } from '../helpers/k3s-machine.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** A guest that is this host: its programs run here, and a forward of its ssh is a local server. */
function guest() {
  const directory = temporaryDirectory();
  const orders: string[] = [];
  const servers: Server[] = [];
  const reach = guestReach(
    {
      run,
      onReconnect: () => undefined,
      async forward(order, ...words) {
        orders.push(`${order} ${words.join(' ')}`);
        const [, path = '', host = '', port = ''] = /^(\/[^:]*):(.*):(\d+)$/.exec(words[1] ?? '') ?? [];
        if (order !== 'forward' || path === '') return '';
        const server = createServer({ allowHalfOpen: true }, (socket) => {
          const far = connect({ host, port: Number(port), allowHalfOpen: true });
          far.on('error', () => socket.destroy());
          socket.pipe(far).pipe(socket);
        });
        servers.push(server);
        await new Promise<void>((resolve) => server.listen(path, resolve));
        return '';
      },
    },
    { run: directory },
    async (port) => {
      orders.push(`claim ${port}`);
      return () => void orders.push(`give back ${port}`);
    },
    portConflicts(),
  );
  onTestFinished(() => {
    for (const server of servers) server.close();
  });
  return { reach, orders, directory };
}

const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 256));
const ways = [
  ['this host', () => copyIn],
  ['a guest', () => guest().reach.copyIn],
] as const;

test.each(ways)('a file is copied into %s completely, with its mode, over an existing one', async (_, way) => {
  const directory = temporaryDirectory();
  const [from, to] = [join(directory, 'from'), join(directory, "it's a/new place", 'to')];
  writeFileSync(from, bytes);
  for (const mode of [0o755, 0o600]) {
    await way()(from, to, mode, NEVER);
    expect(readFileSync(to).equals(bytes)).toBe(true);
    expect(statSync(to).mode & 0o777).toBe(mode);
  }
});

test.each(ways)('a missing source or a canceled copy leaves nothing in %s', async (_, way) => {
  const directory = temporaryDirectory();
  const to = join(directory, 'to');
  await expect(way()(join(directory, 'none'), to, 0o755, NEVER)).rejects.toThrow();
  writeFileSync(join(directory, 'from'), bytes);
  await expect(way()(join(directory, 'from'), to, 0o755, AbortSignal.abort())).rejects.toMatchObject({
    code: 'ERR_CANCELLED',
  });
  expect(existsSync(to)).toBe(false);
});

test('a connection into a guest forwards half-closes, and its tunnel is set up once', async () => {
  const server = await listening(
    createServer({ allowHalfOpen: true }, (socket) => {
      socket.resume();
      socket.on('end', () => socket.end('bye'));
    }),
  );
  onTestFinished(() => void server.close());
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const { reach, orders } = guest();
  for (const dial of [reach.dial, reach.dial, (host: string, at: number) => connectTo({ host, port: at }, NEVER)]) {
    const stream = await dial('127.0.0.1', port, NEVER);
    stream.end('hello');
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    expect(Buffer.concat(chunks).toString()).toBe('bye');
  }
  expect(orders).toHaveLength(1);
  await expect(reach.dial('127.0.0.1', port, AbortSignal.abort())).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
});

test('reports that nothing listens at an address of this host', async () => {
  await expect(connectTo({ host: '127.0.0.1', port: await freePort() }, NEVER)).rejects.toMatchObject({
    code: 'ERR_NOT_READY',
  });
  await expect(connectTo({ host: '127.0.0.1', port: 1 }, AbortSignal.abort())).rejects.toMatchObject({
    code: 'ERR_CANCELLED',
  });
});

test('a port of this host is tunneled into a guest unless it is in use', async () => {
  const { reach, orders } = guest();
  const port = await freePort();
  await reach.localPort(port);
  await reach.localPort(port);
  const words = `-L 127.0.0.1:${port}:127.0.0.1:${port}`;
  expect(orders).toEqual([`claim ${port}`, `cancel ${words}`, `forward ${words}`]);
  await reach.closePort(port);
  expect(orders.slice(3)).toEqual([`cancel ${words}`, `give back ${port}`]);
  await reach.closePort(port);
  const taken = await listening(createServer());
  onTestFinished(() => void taken.close());
  const address = taken.address();
  const other = typeof address === 'object' && address !== null ? address.port : 0;
  await expect(reach.localPort(other)).rejects.toMatchObject({ code: 'ERR_PORT_IN_USE' });
  expect(orders.at(-1)).toBe(`give back ${other}`);
});
