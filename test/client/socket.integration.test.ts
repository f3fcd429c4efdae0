import { createHash } from 'node:crypto';
import { lstatSync, renameSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createPlainServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Connection } from '../../src/client/connection.ts';
import { httpTransport } from '../../src/client/http.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

// The socket of a service is reached by other means in each runtime, so all of this is for both.

const REQUEST = { method: 'GET', path: '/' };

async function listening(server: Server): Promise<Connection> {
  const path = join(temporaryDirectory(), 'service.sock');
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => void server.close());
  return { host: '127.0.0.1', port: 6107, user: 'u', password: 'p', foreign: false, reached: { by: 'socket', path } };
}

const answering = (listener: RequestListener) => listening(createServer(listener));

/** A server that does this with each connection once a request has begun. */
const plain = (act: (socket: Socket) => void) =>
  listening(createPlainServer((socket) => void socket.once('data', () => act(socket)).on('error', () => undefined)));

test('a body that does not fit into the socket at once arrives whole, and so does the response', async () => {
  const connection = await answering((request, response) => {
    const digest = createHash('sha256');
    let size = 0;
    request.on('data', (part: Buffer) => {
      digest.update(part);
      size += part.length;
    });
    request.on('end', () => {
      response.setHeader('x-seen', `${size} ${digest.digest('hex')}`);
      response.end(Buffer.alloc(size, 'b'));
    });
  });
  const body = Buffer.from(Array.from({ length: 12 * 2 ** 20 }, (_, at) => (at * 31) % 251));
  const answer = await httpTransport(connection, { method: 'PUT', path: '/', body: body.toString('latin1') });
  const sent = Buffer.from(body.toString('latin1'));
  expect(answer.headers['x-seen']).toBe(`${sent.length} ${createHash('sha256').update(sent).digest('hex')}`);
  expect(answer.body.equals(Buffer.alloc(sent.length, 'b'))).toBe(true);
});

test('a password that is not ASCII and a response in pieces pass', async () => {
  const connection = await answering(async (request, response) => {
    for (const part of [request.headers['x-name'], ' ', 'ü']) {
      response.write(part);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    response.end();
  });
  const { body } = await httpTransport(connection, { ...REQUEST, headers: { 'x-name': 'caf\u00e9' } });
  expect(body.toString()).toBe('café ü');
});

test('where no service runs, it is said, also beside the socket of a killed one', async () => {
  const connection = await answering((_request, response) => void response.end());
  const path = connection.reached.by === 'socket' ? connection.reached.path : '';
  const asked = (at: string) => httpTransport({ ...connection, reached: { by: 'socket', path: at } }, REQUEST);
  await expect(asked(`${path}.other`)).rejects.toMatchObject({ code: 'ERR_NOT_RUNNING' });

  // A renamed socket stays when its server has gone.
  const server = createPlainServer();
  await new Promise<void>((resolve) => server.listen(`${path}.new`, resolve));
  renameSync(`${path}.new`, `${path}.stale`);
  await new Promise((resolve) => server.close(resolve));
  expect(lstatSync(`${path}.stale`).isSocket()).toBe(true);
  await expect(asked(`${path}.stale`)).rejects.toMatchObject({ code: 'ERR_NOT_RUNNING' });
});

test.each([
  ['before', '', 'EOF'],
  ['within the first lines of', 'HTTP/1.1 20', 'is not HTTP'],
  ['within', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf', 'unexpected EOF'],
])('a connection that ends %s a response is an error', async (_, text, why) => {
  const connection = await plain((socket) => socket.end(text));
  await expect(httpTransport(connection, REQUEST)).rejects.toMatchObject({ message: expect.stringContaining(why) });
});

test('a request that is canceled, or has no answer in time, ends with its connection', async () => {
  let closed = 0;
  const silent = await plain((socket) => socket.on('close', () => closed++));
  const canceling = new AbortController();
  const asked = httpTransport(silent, { ...REQUEST, signal: canceling.signal });
  setTimeout(() => canceling.abort(), 20);
  await expect(asked).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  await expect.poll(() => closed).toBe(1);
  await expect(httpTransport(silent, { ...REQUEST, timeoutMs: 30 })).rejects.toMatchObject({ code: 'ERR_DEADLINE' });
  await expect.poll(() => closed).toBe(2);
  await expect(httpTransport(silent, { ...REQUEST, signal: AbortSignal.abort() })).rejects.toMatchObject({
    code: 'ERR_CANCELLED',
  });
});

test('the connection of a request that was answered is closed', async () => {
  let closed = 0;
  const connection = await plain((socket) => {
    socket.on('close', () => closed++);
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  });
  expect((await httpTransport(connection, REQUEST)).body.toString()).toBe('ok');
  await expect.poll(() => closed).toBe(1);
});
