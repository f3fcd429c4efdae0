import { type ChildProcess, fork } from 'node:child_process';
import { connect } from 'node:net';
import { paired, type Result, result } from './measure.ts';
import { type BenchService, cleanEnv, end } from './service.ts';

const CONNECTIONS = 32;

function requestHead(authorization: string): string {
  return `GET /v1/settings HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ${authorization}\r\n\r\n`;
}

/**
 * Requests a second over keep-alive connections. The client only counts bytes (all replies have one length), so that on a
 * small machine the server and not the client is the limit.
 */
function load(port: number, authorization: string, replyBytes: number, ms: number): Promise<number> {
  const head = requestHead(authorization);
  return new Promise((done, fail) => {
    let bytes = 0;
    const start = process.hrtime.bigint();
    const sockets = Array.from({ length: CONNECTIONS }, () => {
      let pending = replyBytes;
      const socket = connect(port, '127.0.0.1', () => socket.write(head));
      socket.on('data', (chunk) => {
        bytes += chunk.length;
        pending -= chunk.length;
        if (pending === 0) {
          pending = replyBytes;
          socket.write(head);
        } else if (pending < 0) fail(new Error('a reply was longer than the first one'));
      });
      socket.once('error', fail);
      return socket;
    });
    setTimeout(() => {
      const seconds = Number(process.hrtime.bigint() - start) / 1e9;
      for (const socket of sockets) socket.destroy();
      done(bytes / replyBytes / seconds);
    }, ms);
  });
}

/** One reply as it is on the wire: its whole length, head included, and its body. */
function exchange(port: number, authorization: string): Promise<{ bytes: number; body: Buffer }> {
  return new Promise((done, fail) => {
    let received = Buffer.alloc(0);
    const socket = connect(port, '127.0.0.1', () => socket.write(requestHead(authorization)));
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      const headEnd = received.indexOf('\r\n\r\n') + 4;
      const head = received.subarray(0, headEnd).toString();
      const length = Number(/^content-length: (\d+)/im.exec(head)?.[1]);
      if (headEnd < 4 || received.length < headEnd + length) return;
      socket.destroy();
      if (head.startsWith('HTTP/1.1 200')) done({ bytes: received.length, body: received.subarray(headEnd) });
      else fail(new Error(`unexpected reply: ${head}`));
    });
    socket.once('error', fail);
  });
}

async function startExpress(authorization: string, body: Buffer): Promise<{ child: ChildProcess; port: number }> {
  const child = fork('bench/express-server.mjs', { env: cleanEnv({ AUTHORIZATION: authorization }) });
  child.send({ settings: JSON.parse(body.toString()) });
  const port = await new Promise<number>((done, fail) => {
    child.once('message', (message) => done(Number(message)));
    child.once('exit', () => fail(new Error('the express server did not start')));
  });
  return { child, port };
}

/** `GET /v1/settings` of the service against an express `res.json` of the same body with the same authentication. */
export async function throughput(service: BenchService, rounds: number): Promise<Result[]> {
  const { user, password, port } = service.connection;
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  const ours = await exchange(port, authorization);
  const express = await startExpress(authorization, ours.body);
  try {
    const theirs = await exchange(express.port, authorization);
    const figures = await paired(
      rounds,
      () => load(port, authorization, ours.bytes, 2000),
      () => load(express.port, authorization, theirs.bytes, 2000),
    );
    return [
      result({
        name: 'throughput: GET /v1/settings',
        compared: 'service / express res.json, same body and authentication',
        ...figures,
        aim: { sign: '>=', value: 5 },
        unit: 'requests/s',
        rounds,
      }),
    ];
  } finally {
    await end(express.child);
  }
}
