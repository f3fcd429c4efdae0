import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from 'node:net';
import { join } from 'node:path';
import fastify from 'fastify';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createErrorHandler } from '../../src/api/error-handler.ts';
import { proofRoutes } from '../../src/api/routes/proof.ts';
import type { Connection, Reached } from '../../src/client/connection.ts';
import { discover } from '../../src/client/discovery.ts';
import { httpTransport } from '../../src/client/http.ts';
import { listenerMismatch, listeningUsers } from '../../src/client/listener.ts';
import { isProof, newNonce, proofOf } from '../../src/client/service-proof.ts';
import { lockHome } from '../../src/state/home-lock.ts';
import { places } from '../../src/state/places.ts';
import { writeConnection } from '../helpers/scripted-server.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const PASSWORD = 'of-the-file';
const GET = { method: 'GET', path: '/v1/settings' };
const own = process.getuid?.() ?? 0;

async function listening<T extends TcpServer | Server>(server: T): Promise<number> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

const to = (port: number, reached: Reached, pid?: number): Connection => ({
  ...{ host: '127.0.0.1', port, user: 'user', password: 'of-the-user', file: '/f.json', foreign: false, reached },
  ...(pid === undefined ? {} : { pid }),
});

/** A server that records each request with its credentials and its connection. */
async function server(answer: (nonce: string, port: number, response: ServerResponse) => void) {
  const requests: { line: string; authorization: string | undefined; from: number | undefined }[] = [];
  const http = createServer((request: IncomingMessage, response) => {
    const { method, url = '', headers, socket } = request;
    const nonce = /^\/v2\/proof\?nonce=(.*)$/.exec(url)?.[1];
    requests.push({
      line: `${method} ${url.split('?')[0]}`,
      authorization: headers.authorization,
      from: socket.remotePort,
    });
    if (nonce === undefined) response.end('{}');
    else answer(nonce, port, response);
  });
  const port = await listening(http);
  return { port, requests };
}

const proves = (password: string, portShift = 0) =>
  server(
    (nonce, port, response) =>
      void response.end(JSON.stringify({ proof: proofOf({ password, port: port + portShift }, nonce) })),
  );

describe('a service on a TCP port', () => {
  test('receives the request on the connection on which it proved that it wrote the file', async () => {
    const { port, requests } = await proves(PASSWORD);
    expect(await httpTransport(to(port, { by: 'proof', password: PASSWORD }), GET)).toMatchObject({ status: 200 });
    expect(requests.map(({ line }) => line)).toEqual(['GET /v2/proof', 'GET /v1/settings']);
    expect(requests.map(({ authorization }) => authorization)).toEqual([undefined, expect.stringMatching(/^Basic /)]);
    expect(requests[0]?.from).toBe(requests[1]?.from);
  });

  test.each([
    ['another password', () => proves('another')],
    ['the proof for another port, as one would have it who asks the true service', () => proves(PASSWORD, 1)],
    ['no such endpoint', () => server((_nonce, _port, response) => void response.writeHead(404).end())],
    ['what was sent', () => server((nonce, _port, response) => void response.end(JSON.stringify({ proof: nonce })))],
    ['no end', () => server((_nonce, _port, response) => void response.end('x'.repeat(100_000)))],
    [
      'the proof, and the end of the connection',
      () =>
        server((nonce, port, response) => {
          response.setHeader('Connection', 'close');
          response.end(JSON.stringify({ proof: proofOf({ password: PASSWORD, port }, nonce) }));
        }),
    ],
  ])('that answers with %s receives nothing', async (_, begin) => {
    const { port, requests } = await begin();
    const answer = httpTransport(to(port, { by: 'proof', password: PASSWORD }, 77), GET);
    await expect(answer).rejects.toMatchObject({
      code: 'ERR_NOT_RUNNING',
      message: `another program is listening on 127.0.0.1:${port}; nothing was sent to it: it did not prove that it is the service that wrote the file`,
      advice: expect.stringMatching(/^\/f\.json is stale: the process that wrote it \(pid 77\) .*`rdctl start`/),
    });
    expect(requests.map(({ line }) => line)).toEqual(['GET /v2/proof']);
  });

  test('that does not speak HTTP receives nothing, and a silent one is given up at the request timeout', async () => {
    const got: string[] = [];
    const noise = createTcpServer((socket) => {
      socket.on('error', () => undefined).on('data', (part) => got.push(part.toString()));
      socket.write('SSH-2.0-x\r\n');
    });
    const port = await listening(noise);
    const reached = { by: 'proof', password: PASSWORD } as const;
    await expect(httpTransport(to(port, reached), GET)).rejects.toMatchObject({ code: 'ERR_NOT_RUNNING' });
    const silent = await listening(createTcpServer((socket) => void socket.on('error', () => undefined).resume()));
    const answer = httpTransport(to(silent, reached), { ...GET, timeoutMs: 50 });
    await expect(answer).rejects.toMatchObject({ code: 'ERR_DEADLINE' });
    expect(got.join('')).not.toContain('Authorization');
  });

  test('of another application under our name is accepted when it runs as this user and the file was given explicitly', async () => {
    const { port, requests } = await server((_nonce, _port, response) => void response.writeHead(401).end());
    const reached = { by: 'proof', password: PASSWORD, orUser: true } as const;
    expect(await httpTransport(to(port, reached), GET)).toMatchObject({ status: 200 });
    expect(requests.at(-1)).toMatchObject({ line: 'GET /v1/settings', authorization: expect.any(String) });
  });

  test('a canceled request stays canceled', async () => {
    const { port } = await server(() => undefined);
    const controller = new AbortController();
    const reached = { by: 'proof', password: PASSWORD } as const;
    const answer = httpTransport(to(port, reached), { ...GET, signal: controller.signal });
    controller.abort();
    await expect(answer).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  });
});

test('a file without a password proves nothing', async () => {
  const { port, requests } = await proves('');
  const home = temporaryDirectory();
  const file = join(home, 'c.json');
  writeFileSync(file, JSON.stringify({ user: 'user', port }), { mode: 0o600 });
  const connection = await discover({ 'config-path': file, password: 'of-the-user' }, { RDCTL_HOME: home }, 'linux');
  expect(connection.reached).toMatchObject({ by: 'proof', password: 'of-the-user' });
  // Then its user counts, who is this one here; for any other it stops there.
  const strict: Connection = { ...connection, reached: { by: 'proof', password: 'of-the-user' } };
  await expect(httpTransport(strict, GET)).rejects.toMatchObject({ code: 'ERR_NOT_RUNNING' });
  expect(requests.map(({ line }) => line)).toEqual(['GET /v2/proof']);
});

test('a service of this home has to prove that it is the one that wrote the file, even if the lock names its port', async () => {
  const home = temporaryDirectory();
  const { port, requests } = await server((_nonce, _port, response) => void response.writeHead(401).end());
  const here = places({ RDCTL_HOME: home }, 'linux', '');
  writeConnection(here.connectionFile, { user: 'user', password: PASSWORD, port, pid: process.pid });
  const lock = await lockHome(here.serviceLock, home);
  onTestFinished(() => lock.release());
  await lock.update({ port, announced: true });
  const connection = await discover({}, { RDCTL_HOME: home }, 'linux');
  await expect(httpTransport(connection, GET)).rejects.toMatchObject({ code: 'ERR_NOT_RUNNING' });
  expect(requests.map(({ authorization }) => authorization)).toEqual([undefined]);
});

test('a given file that points to another computer, or that a shell writes, is trusted on the word of the user', async () => {
  const home = temporaryDirectory();
  const file = join(home, 'c.json');
  const text = JSON.stringify({ user: 'u', password: 'p', port: 1, host: 'desktop.example' });
  writeFileSync(file, text, { mode: 0o600 });
  expect((await discover({ 'config-path': file }, { RDCTL_HOME: home }, 'linux')).reached).toEqual({ by: 'word' });
  const pipe = join(home, 'pipe');
  await once(spawn('mkfifo', [pipe]), 'exit');
  const writer = spawn('sh', ['-c', 'printf %s "$1" > "$2"', 'sh', text, pipe]);
  expect(await discover({ 'config-path': pipe }, { RDCTL_HOME: home }, 'linux')).toMatchObject({ user: 'u' });
  await once(writer, 'exit');
});

describe('a real service', () => {
  test('is reached by its socket, or by its proof where there is none', async () => {
    const { env, here, service } = await startService({ power: 'stopped' });
    const socket = join(here.state, 'run', 'service.sock');
    const bySocket = await discover({}, env, 'linux');
    expect(bySocket.reached).toEqual({ by: 'socket', path: socket });
    // Nothing listens on the recorded port.
    expect(await httpTransport({ ...bySocket, port: 1 }, GET)).toMatchObject({ status: 200 });
    rmSync(socket);
    const byProof = await discover({}, env, 'linux');
    expect(byProof.reached).toEqual({ by: 'proof', password: service.connection.password });
    expect(await httpTransport(byProof, GET)).toMatchObject({ status: 200 });
    // What the user names is used as it is, once the listener is known.
    const other = await discover({ password: 'wrong' }, env, 'linux');
    expect(await httpTransport(other, GET)).toMatchObject({ status: 401 });
    expect((await discover({ port: 5 }, env, 'linux')).reached).toEqual({ by: 'word' });
  });
});

test('answers a limited number of proofs per second', async () => {
  const app = fastify();
  let now = 5000;
  proofRoutes(app, { prove: (nonce) => nonce }, () => now);
  app.setErrorHandler(createErrorHandler({ write: () => undefined, close: () => undefined }));
  const ask = async () => (await app.inject({ url: `/v2/proof?nonce=${newNonce()}` })).statusCode;
  const statuses: number[] = [];
  for (let count = 0; count < 501; count += 1) statuses.push(await ask());
  expect(statuses.indexOf(503)).toBe(500);
  now += 1000;
  expect(await ask()).toBe(200);
});

test('proves one password, one port and one nonce', () => {
  const key = { password: PASSWORD, port: 6107 };
  const nonce = newNonce();
  expect(nonce).toMatch(/^[0-9a-f]{64}$/);
  const proof = proofOf(key, nonce);
  expect(proof).toMatch(/^[0-9a-f]{64}$/);
  expect(isProof(key, nonce, proof)).toBe(true);
  expect(isProof(key, newNonce(), proof)).toBe(false);
  expect(isProof({ ...key, port: 6108 }, nonce, proof)).toBe(false);
  expect(isProof({ ...key, password: 'x' }, nonce, proof)).toBe(false);
  for (const wrong of ['', undefined, 5, proof.toUpperCase(), `${proof}0`])
    expect(isProof(key, nonce, wrong)).toBe(false);
});

describe('the owner of a listening socket', () => {
  const line = (local: string, uid: number, state = '0A') =>
    `   0: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000 ${uid}        0 1 1 0 100 0 0 10 0`;
  const users = (address: string, ...lines: string[]) => {
    const table = join(temporaryDirectory(), 'tcp');
    writeFileSync(table, `  sl  local_address rem_address   st tx_queue …\n${lines.join('\n')}\n`);
    return listeningUsers(address, 6107, [table, '/nowhere/tcp6']);
  };

  test("is read from the kernel's tables", () => {
    const here = line('0100007F:17DB', 7);
    const all = line('00000000:17DB', 8);
    const six = line('00000000000000000000000000000000:17DB', 9);
    expect(users('127.0.0.1', here, all, six, line('0100007F:17DC', 1), line('0100007F:17DB', 1, '01'))).toEqual([7]);
    expect(users('127.0.0.1', all, six)).toEqual([8, 9]);
    expect(users('::ffff:127.0.0.1', here)).toEqual([7]);
    expect(users('127.0.0.1', line('0000000000000000FFFF00000100007F:17DB', 4))).toEqual([4]);
    expect(users('::1', line('00000000000000000000000001000000:17DB', 3), here)).toEqual([3]);
    expect(users('127.0.0.1', line('0200007F:17DB', 5))).toEqual([]);
    expect(users('fe80::1', all)).toEqual([]);
  });

  test('is found when it is this process', async () => {
    if (process.platform !== 'linux') return;
    expect(listeningUsers('127.0.0.1', await listening(createServer()))).toEqual([own]);
  });

  test('where no table has it, the recorded process must belong to this user and be older than the file', async () => {
    const nowhere = { address: 'fe80::1', port: 1 };
    const file = join(temporaryDirectory(), 'rd-engine.json');
    writeConnection(file, {});
    const reached = { by: 'user' } as const;
    expect(listenerMismatch({ file, pid: process.pid, reached }, nowhere)).toBeUndefined();
    const child: ChildProcess = spawn(process.execPath, ['-e', '']);
    await once(child, 'exit');
    expect(listenerMismatch({ file, pid: child.pid ?? 0, reached }, nowhere)).toMatch(/is no longer yours$/);
    expect(listenerMismatch({ file, reached }, nowhere)).toMatch(/^its owner is unknown/);
    expect(listenerMismatch({ file, reached: { by: 'user', unseen: 'accepted' } }, nowhere)).toBeUndefined();
  });
});

test('a connection file that others can write is not trusted, and a FIFO in its place does not block', async () => {
  const home = temporaryDirectory();
  const file = join(home, 'app-engine.json');
  writeFileSync(file, JSON.stringify({ user: 'u', password: 'p', port: 1, pid: 1 }));
  chmodSync(file, 0o622);
  await expect(discover({}, { RDCTL_HOME: home }, 'linux')).rejects.toMatchObject({
    code: 'ERR_CONNECTION_SETTINGS',
    message: `failed to get connection info: open ${file}: other users can write it, and nothing was sent`,
    advice: expect.stringContaining(`chmod 600 ${file}`),
  });
  rmSync(file);
  await once(spawn('mkfifo', [file]), 'exit');
  await expect(discover({}, { RDCTL_HOME: home }, 'linux')).rejects.toThrow('it is not a file');
});
