import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { createHash, generateKeyPairSync, sign, verify } from 'node:crypto';
import { once } from 'node:events';
import {
  closeSync,
  constants,
  createReadStream,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  symlinkSync,
  utimesSync,
  watch,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { copyFile, lstat, mkdtemp, open, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { Agent, createServer, request, type Server } from 'node:http';
import { type AddressInfo, connect, createServer as createNetServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { isatty } from 'node:tty';
import { promisify } from 'node:util';
import { crc32, createGunzip, gunzipSync, gzipSync } from 'node:zlib';
import { socketPair } from '../../src/os/socket-pair.ts';

// What rdctl needs of its runtime, one small question each, answered with plain values. `runtime.test.ts` runs it with Node and in a
// standalone file, and compares what it prints.

type Probe = (folder: string) => unknown;

const code = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : String(error);
const attempt = async (work: () => unknown): Promise<unknown> => {
  try {
    return await work();
  } catch (error) {
    return code(error);
  }
};
const within = <T>(promise: Promise<T>, ms = 3000): Promise<T | 'timeout'> =>
  Promise.race([promise, delay(ms, 'timeout' as const)]);

/** Sends bytes to a listener and collects what comes back until it closes. */
async function raw(target: { path: string } | { port: number }, bytes: string): Promise<string> {
  const socket = connect({ ...target, host: '127.0.0.1' } as never);
  let text = '';
  socket.on('data', (part: Buffer) => {
    text += part.toString('latin1');
  });
  socket.on('error', (error) => {
    text += `<${code(error)}>`;
  });
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  socket.write(bytes);
  await within(new Promise((done) => socket.once('close', done)), 1500);
  socket.destroy();
  return text.replace(/^Date: .*\r\n/im, '');
}

async function listening(server: Server, target: object): Promise<Server> {
  server.listen(target);
  await once(server, 'listening');
  return server;
}

const portOf = (server: Server) => (server.address() as AddressInfo).port;

function ask(options: object, body?: string): Promise<unknown> {
  return new Promise((done) => {
    const sent = request(options, (response) => {
      let text = '';
      response.on('data', (part: Buffer) => {
        text += part.toString();
      });
      response.on('end', () => done([response.statusCode, text]));
      response.on('error', (error) => done([response.statusCode, text, code(error)]));
    });
    sent.on('error', (error) => done(code(error)));
    sent.end(body);
  });
}

/** Starts a server as systemd does, with a listening socket as descriptor 3 made by another program, and asks it. */
async function activated(family: 'TCP' | 'UNIX', folder: string, word: string): Promise<unknown> {
  const program = `import socket,os,sys
s=socket.socket(socket.AF_UNIX) if sys.argv[1]=="UNIX" else socket.socket()
s.bind(sys.argv[2] if sys.argv[1]=="UNIX" else ("127.0.0.1",0))
s.listen(5)
print(s.getsockname() if sys.argv[1]=="UNIX" else s.getsockname()[1],flush=True)
os.dup2(s.fileno(),9)
os.dup2(9,3,inheritable=True)
os.execvp(sys.argv[3],sys.argv[3:])`;
  const child = spawn('python3', ['-c', program, family, join(folder, 'act'), ...self, word], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  child.stdout.on('data', (part: Buffer) => {
    said += part;
  });
  for (let round = 0; round < 100 && said.split('\n').length < 3; round++) await delay(50);
  const [place = '', answer] = said.split('\n');
  const target = family === 'UNIX' ? { socketPath: place } : { port: Number(place), host: '127.0.0.1' };
  const reply = await within(ask({ ...target, path: '/' }), 1000);
  child.kill('SIGKILL');
  return [answer, reply];
}

/** In a standalone file the script lies within. */
const self = !/\$bunfs|~BUN/.test(process.argv[1] ?? '')
  ? [process.execPath, process.argv[1] ?? '']
  : [process.execPath];

const PROBES: Record<string, Probe> = {
  async 'unix socket: http both ways'(folder) {
    const path = join(folder, 's');
    const server = await listening(
      createServer((_, reply) => reply.end('hi')),
      { path },
    );
    try {
      return [await ask({ socketPath: path, path: '/' }), lstatSync(path).isSocket(), server.address() === path];
    } finally {
      server.close();
    }
  },
  async 'unix socket: removed when the server closes'(folder) {
    const path = join(folder, 's');
    const server = await listening(createServer(), { path });
    await new Promise((done) => server.close(done));
    return attempt(() => lstatSync(path).isSocket());
  },
  async 'unix socket: path of 107 and 108 bytes'(folder) {
    const results = [];
    for (const length of [107, 108, 120]) {
      const path = join(folder, 'x'.repeat(length - folder.length - 1));
      const server = createServer();
      const listens = attempt(async () => {
        const outcome = Promise.race([
          once(server, 'listening').then(() => 'listens'),
          once(server, 'error').then(([error]) => `event ${code(error)}`),
        ]);
        server.listen(path);
        return within(outcome);
      });
      results.push(
        length,
        await listens,
        readdirSync(folder).map((name) => name.length),
      );
      const connects = attempt(() => {
        const socket = connect(path);
        return within(
          new Promise((done) =>
            socket.on('error', (error) => done(`event ${code(error)}`)).on('connect', () => done('connected')),
          ),
        );
      });
      results.push(await connects);
      server.close();
      server.closeAllConnections();
      rmSync(path, { force: true });
    }
    return results;
  },
  async 'unix socket: listening on a path in use'(folder) {
    const path = join(folder, 's');
    const first = await listening(createServer(), { path });
    const second = createServer();
    second.listen(path);
    const outcome = await within(
      Promise.race([
        once(second, 'listening').then(() => 'listens'),
        once(second, 'error').then(([error]) => code(error)),
      ]),
    );
    first.close();
    second.close();
    return outcome;
  },
  async 'unix socket: mode is that of the umask'(folder) {
    const path = join(folder, 's');
    const before = process.umask(0o177);
    const server = await listening(createServer(), { path });
    process.umask(before);
    const mode = lstatSync(path).mode & 0o777;
    server.close();
    return [before.toString(8), mode.toString(8)];
  },
  async 'unix socket: nobody listens, no such path, not a socket'(folder) {
    writeFileSync(join(folder, 'file'), '');
    const dead = join(folder, 'dead');
    spawnSync('python3', ['-c', `import socket;socket.socket(socket.AF_UNIX).bind(${JSON.stringify(dead)})`]);
    return Promise.all(
      [dead, join(folder, 'none'), join(folder, 'file')].map((socketPath) => ask({ socketPath, path: '/' })),
    );
  },
  async 'unix socket: when a connection that fails is destroyed'(folder) {
    const socket = connect({ path: join(folder, 'none') }).on('error', () => undefined);
    const atOnce = socket.destroyed;
    await new Promise((done) => socket.once('close', done));
    return { atOnce, why: code(socket.errored) };
  },
  async 'unix socket: half close'(folder) {
    const path = join(folder, 's');
    const server = createNetServer({ allowHalfOpen: true }, (socket) => {
      let text = '';
      socket.on('data', (part) => {
        text += part;
      });
      socket.on('end', () => socket.end(`got ${text}`));
    });
    server.listen(path);
    await once(server, 'listening');
    const socket = connect({ path, allowHalfOpen: true });
    let text = '';
    socket.on('data', (part) => {
      text += part;
    });
    socket.end('abc');
    const closed = await within(new Promise((done) => socket.once('close', () => done('closed'))));
    server.close();
    return [text, closed];
  },
  async 'http server: without listeners of its connections'() {
    const server = createServer((_, reply) => reply.end('answered'));
    server.removeAllListeners('connection');
    await listening(server, { port: 0, host: '127.0.0.1' });
    const answer = await within(ask({ port: portOf(server), host: '127.0.0.1', path: '/' }), 500);
    server.close();
    server.closeAllConnections();
    return answer;
  },
  async 'http server: message for a port in use'() {
    const first = await listening(createServer(), { port: 0, host: '127.0.0.1' });
    const port = portOf(first);
    const second = createServer();
    second.listen(port, '127.0.0.1');
    const [error] = await once(second, 'error');
    first.close();
    return [code(error), error.message.replace(String(port), 'PORT')];
  },
  async 'http and fetch: proxies of the environment'() {
    const seen: string[] = [];
    const server = await listening(
      createServer((incoming, reply) => {
        seen.push(incoming.url ?? '');
        reply.end('x');
      }),
      { port: 0, host: '127.0.0.1' },
    );
    const place = `http://127.0.0.1:${portOf(server)}`;
    const proxies = { http_proxy: place, HTTP_PROXY: place, https_proxy: place, HTTPS_PROXY: place };
    const child = spawn(self[0] ?? '', [...self.slice(1), '--ask', 'http://127.0.0.1:9/'], {
      env: { PATH: process.env.PATH, ...proxies },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    await once(child, 'close');
    server.close();
    return seen;
  },
  async 'fetch: schemes other than http'(folder) {
    writeFileSync(join(folder, 'f'), 'secret');
    const addresses = [`file://${folder}/f`, 'data:,x', 'ftp://127.0.0.1/'];
    const redirecting = await listening(
      createServer((_, reply) => reply.writeHead(302, { location: addresses[0] }).end()),
      { port: 0, host: '127.0.0.1' },
    );
    const all = [...addresses, `http://127.0.0.1:${portOf(redirecting)}/`];
    const answers = await Promise.all(
      all.map((address) =>
        fetch(address).then(
          (reply) => reply.text(),
          (error: Error) => error.name,
        ),
      ),
    );
    redirecting.close();
    return answers;
  },
  async 'fetch: messages of errors'() {
    const closing = createNetServer((socket) => socket.destroy());
    closing.listen(0, '127.0.0.1');
    await once(closing, 'listening');
    const port = (closing.address() as AddressInfo).port;
    const failure = await fetch(`http://127.0.0.1:${port}/`).catch((error: Error) => [error.name, error.message]);
    closing.close();
    return failure;
  },
  async 'http: clientError'() {
    const seen: string[] = [];
    const server = createServer((_, reply) => reply.end('x'));
    server.on('clientError', (error, socket: Socket) => {
      seen.push(code(error));
      if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nours');
    });
    await listening(server, { port: 0, host: '127.0.0.1' });
    const port = portOf(server);
    const answers = [
      await raw({ port }, 'NOT HTTP\r\n\r\n'),
      await raw({ port }, 'GET / HTTP/1.1\r\nHost: a\r\nBad Header: 1\r\n\r\n'),
      await raw({ port }, `GET / HTTP/1.1\r\nHost: a\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`),
      await raw(
        { port },
        'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      ),
      await raw({ port }, 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'),
    ];
    server.closeAllConnections();
    server.close();
    return [seen, answers];
  },
  async 'http: two Host headers, none, and a path with control bytes'() {
    const server = createServer((incoming, reply) =>
      reply.end(JSON.stringify([incoming.url, incoming.headers.host, incoming.rawHeaders.length])),
    );
    await listening(server, { port: 0, host: '127.0.0.1' });
    const port = portOf(server);
    const answers = [
      await raw({ port }, 'GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n'),
      await raw({ port }, 'GET /a HTTP/1.1\r\nConnection: close\r\n\r\n'),
      await raw({ port }, 'GET /a HTTP/1.0\r\n\r\n'),
      await raw({ port }, 'GET /\u0001 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'),
      await raw({ port }, 'GET //x/../y HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'),
      await raw({ port }, 'GET http://evil/z HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'),
      await raw({ port }, 'get / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'),
    ];
    server.closeAllConnections();
    server.close();
    return answers;
  },
  async 'http: server-sent events arrive one by one, and the end is seen'() {
    let closed: Promise<unknown> | undefined;
    const server = createServer((incoming, reply) => {
      closed = once(reply, 'close').then(() => [incoming.destroyed, reply.writableEnded]);
      reply.writeHead(200, { 'content-type': 'text/event-stream' });
      reply.flushHeaders();
      reply.write('data: 1\n\n');
      setTimeout(() => reply.write('data: 2\n\n'), 50);
    });
    await listening(server, { port: 0, host: '127.0.0.1' });
    const sent = request({ port: portOf(server), host: '127.0.0.1' });
    sent.end();
    const [response] = await once(sent, 'response');
    const parts: string[] = [];
    for await (const part of response) {
      parts.push(String(part));
      if (parts.length === 2) break;
    }
    const seen = await within(closed ?? Promise.resolve('no reply'));
    server.closeAllConnections();
    server.close();
    return [parts, seen];
  },
  async 'http: a reply that is never read is held back'() {
    const server = createServer((_, reply) => {
      let more = true;
      let count = 0;
      while (more && count < 10_000) {
        more = reply.write('x'.repeat(65_536));
        count += 1;
      }
      server.emit('held', more, count < 10_000);
    });
    await listening(server, { port: 0, host: '127.0.0.1' });
    const sent = request({ port: portOf(server), host: '127.0.0.1' });
    sent.on('error', () => undefined);
    sent.end();
    const outcome = await within(once(server, 'held'));
    sent.destroy();
    server.closeAllConnections();
    server.close();
    return outcome;
  },
  async 'http: upgrade hands the socket over'() {
    const server = createServer();
    server.on('upgrade', (_, socket: Socket, head: Buffer) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n');
      socket.write(`head ${head.length};`);
      socket.on('data', (part) => socket.end(`echo ${part}`));
    });
    await listening(server, { port: 0, host: '127.0.0.1' });
    const text = await new Promise((done) => {
      const sent = request({
        port: portOf(server),
        host: '127.0.0.1',
        headers: { connection: 'Upgrade', upgrade: 'tcp' },
      });
      sent.on('error', (error) => done(code(error)));
      sent.on('response', (response) => done(response.statusCode));
      sent.on('upgrade', (_, socket, head) => {
        let all = head.toString();
        socket.on('data', (part: Buffer) => {
          all += part;
        });
        socket.on('close', () => done(all));
        socket.write('ping');
      });
      sent.end();
    });
    server.close();
    return text;
  },
  async 'http: bytes written to the socket of a reply'() {
    const server = createServer((incoming) => {
      incoming.socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok');
    });
    await listening(server, { port: 0, host: '127.0.0.1' });
    const text = await raw({ port: portOf(server) }, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    server.closeAllConnections();
    server.close();
    return text;
  },
  async 'http: 100-continue, and a reply before the whole body'() {
    const server = createServer((incoming, reply) => {
      incoming.resume();
      reply.writeHead(413, { connection: 'close' });
      reply.end('too long');
    });
    await listening(server, { port: 0, host: '127.0.0.1' });
    const text = await raw(
      { port: portOf(server) },
      'POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 100000\r\n\r\nabc',
    );
    server.closeAllConnections();
    server.close();
    return text;
  },
  async 'http: limits of a server'() {
    const server = createServer(
      { requestTimeout: 300, headersTimeout: 200, connectionsCheckingInterval: 50, keepAliveTimeout: 100 },
      (_, reply) => reply.end('x'),
    );
    await listening(server, { port: 0, host: '127.0.0.1' });
    const port = portOf(server);
    const slow = await raw({ port }, 'GET / HTTP/1.1\r\nHost: a\r\n');
    const kept = await raw({ port }, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    const connections = await promisify(server.getConnections.bind(server))();
    server.closeAllConnections();
    server.close();
    return [slow, kept, connections];
  },
  async 'http: headers of a reply as they are on the wire'() {
    const server = createServer((_, reply) => {
      reply.setHeader('X-Case', 'Kept');
      reply.setHeader('Set-Cookie', ['a=1', 'b=2']);
      reply.statusMessage = 'Fine';
      reply.end('body');
    });
    await listening(server, { port: 0, host: '127.0.0.1' });
    const port = portOf(server);
    const texts = [
      await raw({ port }, 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'),
      await raw({ port }, 'HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'),
    ];
    server.closeAllConnections();
    server.close();
    return texts;
  },
  async 'http: an agent that keeps one connection'() {
    let connections = 0;
    const server = createServer((_, reply) => reply.end('x'));
    server.on('connection', () => {
      connections += 1;
    });
    await listening(server, { port: 0, host: '127.0.0.1' });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let round = 0; round < 3; round++) await ask({ port: portOf(server), host: '127.0.0.1', agent });
    agent.destroy();
    server.closeAllConnections();
    server.close();
    return connections;
  },
  async 'http: the socket of a request tells who connects'() {
    const server = createServer((incoming, reply) => {
      const { remoteAddress, localAddress, remoteFamily } = incoming.socket;
      reply.end(
        JSON.stringify([
          remoteAddress,
          localAddress,
          remoteFamily,
          incoming.socket.remotePort === Number(incoming.headers['x-port']),
        ]),
      );
    });
    await listening(server, { port: 0, host: '127.0.0.1' });
    const socket = connect({ port: portOf(server), host: '127.0.0.1' });
    await once(socket, 'connect');
    const answer = await ask({
      createConnection: () => socket,
      path: '/',
      headers: { 'x-port': socket.localPort, connection: 'close' },
    });
    server.close();
    return answer;
  },
  async 'http: abort of a request'() {
    const server = createServer(() => undefined);
    await listening(server, { port: 0, host: '127.0.0.1' });
    const sent = request({ port: portOf(server), host: '127.0.0.1', signal: AbortSignal.timeout(100) });
    sent.end();
    const [error] = (await once(sent, 'error')) as [Error];
    server.closeAllConnections();
    server.close();
    return [error.name, code(error)];
  },
  async 'http: close waits for requests, and idle connections do not hold it'() {
    const order: string[] = [];
    const server = createServer((_, reply) => {
      setTimeout(() => {
        order.push('reply');
        reply.end('x');
      }, 100);
    });
    await listening(server, { port: 0, host: '127.0.0.1' });
    const agent = new Agent({ keepAlive: true });
    const asked = once(server, 'request');
    const answer = ask({ port: portOf(server), host: '127.0.0.1', agent });
    await asked;
    const closed = new Promise<void>((done) =>
      server.close(() => {
        order.push('closed');
        done();
      }),
    );
    await answer;
    const outcome = await within(closed, 1000);
    agent.destroy();
    server.closeAllConnections();
    return [order, outcome ?? 'closed'];
  },
  async 'tcp: address in use, refused, reset'() {
    const first = createNetServer().listen(0, '127.0.0.1');
    await once(first, 'listening');
    const { port } = first.address() as AddressInfo;
    const second = createNetServer().listen(port, '127.0.0.1');
    const [inUse] = await once(second, 'error');
    first.close();
    await once(first, 'close');
    const socket = connect(port, '127.0.0.1');
    const [refused] = await once(socket, 'error');
    return [code(inUse), code(refused), (refused as { syscall?: string }).syscall];
  },
  async 'http server: listening on an inherited descriptor 3'(folder) {
    return [await activated('TCP', folder, '--listen-fd'), await activated('UNIX', folder, '--listen-fd')];
  },
  async 'net server: listening on an inherited descriptor 3, http on its connections'(folder) {
    return [await activated('TCP', folder, '--listen-fd-net'), await activated('UNIX', folder, '--listen-fd-net')];
  },
  async 'child: detached is a session of its own and outlives'(folder) {
    const log = openSync(join(folder, 'log'), 'a');
    const child = spawn('sh', ['-c', 'echo $$; exec sleep 30'], {
      detached: true,
      cwd: '/',
      env: { A: '1', PATH: process.env.PATH },
      stdio: ['ignore', log, log],
    });
    child.unref();
    await once(child, 'spawn');
    closeSync(log);
    await delay(200);
    const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    const environment = readFileSync(`/proc/${child.pid}/environ`, 'utf8')
      .split('\0')
      .filter((word) => word.startsWith('A=') || /^(BUN|NODE)_/.test(word));
    const signals = readFileSync(`/proc/${child.pid}/status`, 'utf8').match(/^Sig(Blk|Ign):\s+(\w+)/gm);
    const result = [
      fields[2] === String(child.pid),
      fields[3] === String(child.pid),
      readFileSync(join(folder, 'log'), 'utf8').trim() === String(child.pid),
      environment,
      signals,
    ];
    process.kill(-(child.pid ?? 0), 'SIGKILL');
    return result;
  },
  async 'child: own process group gets no signal of ours, and -pid reaches it'() {
    const child = spawn('sh', ['-c', 'sleep 30 & sleep 30'], { detached: true, stdio: 'ignore' });
    await once(child, 'spawn');
    await delay(50);
    process.kill(-(child.pid ?? 0), 'SIGTERM');
    return once(child, 'exit');
  },
  async 'child: missing program, directory, no permission'(folder) {
    writeFileSync(join(folder, 'no'), '', { mode: 0o644 });
    const outcome = (child: ChildProcess) =>
      within(
        Promise.race([
          once(child, 'error').then(([error]) => [
            code(error),
            error.path.replace(folder, ''),
            error.syscall.replace(folder, ''),
            child.pid ?? 'no pid',
          ]),
          once(child, 'exit').then(() => 'exit'),
        ]),
      );
    return [
      await outcome(spawn('/no/such', ['a'])),
      await outcome(spawn('no-such-program', ['a'])),
      await outcome(spawn(join(folder, 'no'))),
      await outcome(spawn('true', [], { cwd: '/no/such' })),
    ];
  },
  async 'child: pipes of one child as stdio of another'() {
    const partner = spawn('cat', ['-u'], { stdio: ['pipe', 'pipe', 'ignore'] });
    const child = spawn('sh', ['-c', 'echo hello >&1; read line; echo "$line" >&2'], {
      stdio: [partner.stdout, partner.stdin, 'pipe'],
    });
    partner.stdin.destroy();
    partner.stdout.destroy();
    let text = '';
    child.stderr?.on('data', (part: Buffer) => {
      text += part;
    });
    const ended = await within(once(child, 'close'));
    partner.kill();
    return [text, ended];
  },
  async 'child: a connected socket as stdio, blocking'() {
    const [one, other] = await socketPair();
    const partner = spawn('cat', ['-u'], { stdio: [one, one, 'ignore'] });
    const child = spawn('sh', ['-c', 'grep flags /proc/self/fdinfo/0 >&2; echo hello; read line; echo "$line" >&2'], {
      stdio: [other, other, 'pipe'],
    });
    one.destroy();
    other.destroy();
    let text = '';
    child.stderr?.on('data', (part: Buffer) => {
      text += part;
    });
    const ended = [once(child, 'close'), once(partner, 'close')].map((each) => within(each));
    return [...(await Promise.all(ended)), text];
  },
  async 'child: extra descriptors, and those that are not passed on'(folder) {
    const fd = openSync(join(folder, 'extra'), 'w+');
    const held = openSync(join(folder, 'held'), 'w');
    writeSync(fd, 'extra');
    const { stdout } = spawnSync(
      'sh',
      ['-c', 'readlink /proc/self/fd/3 | sed "s,.*/,,"; readlink /proc/self/fd/* | grep -c held'],
      { stdio: ['ignore', 'pipe', 'ignore', fd] },
    );
    closeSync(fd);
    closeSync(held);
    return stdout.toString();
  },
  async 'child: input closed early, output limit, time limit'() {
    const child = spawn('true', { stdio: ['pipe', 'ignore', 'ignore'] });
    const errors: string[] = [];
    child.stdin.on('error', (error) => errors.push(code(error)));
    await once(child, 'exit');
    child.stdin.end('x'.repeat(1_000_000));
    await delay(50);
    const limit = await promisify(execFile)('sh', ['-c', 'yes | head -c 3000000'], { maxBuffer: 1000 }).then(
      String,
      (error: Error) => [code(error), error.name],
    );
    const time = await promisify(execFile)('sleep', ['5'], { timeout: 100, killSignal: 'SIGKILL' }).then(
      String,
      (error) => [error.killed, error.signal, error.code],
    );
    return [errors, limit, time];
  },
  async 'child: exit by signal, and its status'() {
    const killed = spawn('sleep', ['5']);
    await once(killed, 'spawn');
    killed.kill('SIGTERM');
    const ended = once(killed, 'close');
    const seven = spawn('sh', ['-c', 'exit 7']);
    const seventh = once(seven, 'close');
    return [await ended, await seventh, killed.kill('SIGTERM')];
  },
  async 'child: uid and gid'() {
    if (process.getuid?.() !== 0) return 'not root';
    return spawnSync('id', ['-u'], { uid: 65534, gid: 65534 }).stdout?.toString();
  },
  async 'child: abort ends it'() {
    const controller = new AbortController();
    const child = spawn('sleep', ['5'], { signal: controller.signal });
    const failed = once(child, 'error');
    await once(child, 'spawn');
    controller.abort();
    const [error] = (await failed) as [Error];
    return [error.name, code(error)];
  },
  async 'child: argv0 and shell characters'() {
    const { stdout } = spawnSync(
      'sh',
      ['-c', 'printf "%s|" "$0" "$        return [code(error), error.path,"', 'zero', '', 'a b', "q'", '$x', 'ü\n'],
      { argv0: 'mine' },
    );
    return stdout.toString();
  },
  async 'signals: SIGTERM, SIGINT, SIGHUP are caught, twice'() {
    const child = spawn(self[0] ?? '', [...self.slice(1), '--signals'], { stdio: ['ignore', 'pipe', 'inherit'] });
    let said = '';
    child.stdout.on('data', (part: Buffer) => {
      said += part;
    });
    const until = async (text: string) => {
      for (let round = 0; round < 100 && !said.includes(text); round++) await delay(20);
    };
    await until('ready');
    for (const signal of ['SIGHUP', 'SIGTERM', 'SIGINT'] as const) {
      child.kill(signal);
      await until(signal);
    }
    child.kill('SIGUSR2');
    return [said, await once(child, 'exit')];
  },
  async 'signals: an ignored SIGPIPE'() {
    const child = spawn(
      'sh',
      ['-c', `"$        return [code(error), error.path," --write | head -1; echo "\${PIPESTATUS:-}"`, 'sh', ...self],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
    let text = '';
    child.stdout.on('data', (part: Buffer) => {
      text += part;
    });
    child.stderr.on('data', (part: Buffer) => {
      text += part;
    });
    await within(once(child, 'close'), 5000);
    return text;
  },
  'files: O_NOFOLLOW, O_EXCL, O_APPEND, O_DIRECTORY'(folder) {
    const file = join(folder, 'file');
    const link = join(folder, 'link');
    writeFileSync(file, 'a');
    symlinkSync(file, link);
    const opened = (path: string, flags: number) => {
      try {
        closeSync(openSync(path, flags));
        return 'opens';
      } catch (error) {
        return [code(error), (error as { syscall?: string }).syscall, (error as { errno?: number }).errno];
      }
    };
    const { O_RDONLY, O_NOFOLLOW, O_WRONLY, O_CREAT, O_EXCL, O_DIRECTORY, O_APPEND, O_NONBLOCK } = constants;
    const first = openSync(file, O_WRONLY | O_APPEND);
    const second = openSync(file, 'a');
    writeSync(first, 'b');
    writeSync(second, 'c');
    writeSync(first, 'd', 0);
    closeSync(first);
    closeSync(second);
    return [
      opened(link, O_RDONLY | O_NOFOLLOW),
      opened(file, O_WRONLY | O_CREAT | O_EXCL),
      opened(file, O_RDONLY | O_DIRECTORY),
      opened(folder, O_WRONLY),
      opened(folder, O_RDONLY | O_DIRECTORY | O_NONBLOCK),
      readFileSync(file, 'utf8'),
      constants.O_NOFOLLOW,
    ];
  },
  async 'files: flush of files and directories, rename over, hard link, exclusive write'(folder) {
    const file = join(folder, 'file');
    const handle = await open(`${file}.new`, 'wx', 0o640);
    await handle.writeFile('text');
    await handle.sync();
    const { mode, uid, nlink, ino, dev } = await handle.stat();
    await handle.close();
    renameSync(`${file}.new`, file);
    const directory = await open(folder, 'r');
    await directory.sync();
    await directory.close();
    const fd = openSync(folder, 'r');
    fsyncSync(fd);
    closeSync(fd);
    linkSync(file, `${file}.link`);
    const twice = await attempt(() => linkSync(file, `${file}.link`));
    const exclusive = await attempt(() => writeFileSync(file, '', { flag: 'wx' }));
    const big = statSync(file, { bigint: true });
    return [
      (mode & 0o777).toString(8),
      uid,
      nlink,
      ino > 0 && dev > 0,
      twice,
      exclusive,
      typeof big.mtimeNs,
      big.ino === BigInt(ino),
    ];
  },
  'files: names in order'(folder) {
    const names = Array.from({ length: 40 }, (_, index) => `${(index * 17) % 40}`);
    for (const name of names) writeFileSync(join(folder, name), '');
    return readdirSync(folder).join() === names.toSorted().join();
  },
  'files: error codes'(folder) {
    mkdirSync(join(folder, 'd'));
    writeFileSync(join(folder, 'd/f'), '');
    const tries: (() => unknown)[] = [
      () => readFileSync(join(folder, 'none')),
      () => readFileSync(folder),
      () => readFileSync(join(folder, 'd/f/x')),
      () => rmSync(join(folder, 'd')),
      () => rmSync(join(folder, 'none')),
      () => mkdirSync(join(folder, 'd')),
      () => renameSync(join(folder, 'd/f'), join(folder, 'd/')),
      () => readFileSync(join(folder, 'x'.repeat(300))),
      () => readFileSync('/proc/1/mem\0'),
      () => writeFileSync('/proc/version', ''),
      () => readFileSync(`${folder}/\ud800`),
    ];
    return tries.map((work) => {
      try {
        return work();
      } catch (error) {
        const { message, syscall, path } = error as { message: string; syscall?: string; path?: string };
        return [
          code(error),
          syscall ?? null,
          path === undefined ? null : path.replace(folder, ''),
          message.replaceAll(folder, ''),
        ];
      }
    });
  },
  async 'files: a full disk'() {
    return [
      await attempt(() => writeFileSync('/dev/full', 'x')),
      await attempt(async () => {
        const handle = await open('/dev/full', 'w');
        try {
          await handle.writeFile('x');
        } finally {
          await handle.close();
        }
      }),
    ];
  },
  async 'files: watch of a directory and of a file'(folder) {
    const seen: string[] = [];
    const watcher = watch(folder, (event, name) => seen.push(`${event} ${name}`));
    await delay(100);
    writeFileSync(join(folder, 'a'), '1');
    renameSync(join(folder, 'a'), join(folder, 'b'));
    await delay(200);
    watcher.close();
    return [...new Set(seen)].sort();
  },
  async 'files: temporary directory, times, statfs, umask'(folder) {
    const made = await mkdtemp(join(folder, 'x-'));
    utimesSync(made, 1, 2.5);
    const { mtimeMs } = statSync(made);
    const before = process.umask(0o077);
    mkdirSync(join(folder, 'private'));
    writeFileSync(join(folder, 'private', 'f'), '');
    process.umask(before);
    const { type, bsize } = statfsSync(folder);
    await rm(made, { recursive: true });
    return [
      made.length - folder.length,
      mtimeMs,
      (statSync(join(folder, 'private')).mode & 0o777).toString(8),
      (statSync(join(folder, 'private', 'f')).mode & 0o777).toString(8),
      type > 0,
      bsize > 0,
    ];
  },
  'files: names that are not UTF-8'(folder) {
    spawnSync('sh', ['-c', 'printf x > "$(printf "a\\377b")"'], { cwd: folder });
    const names = readdirSync(folder, { encoding: 'buffer' }).map((name) => name.toString('hex'));
    return [
      names,
      readdirSync(folder, { withFileTypes: true }).map((entry) => [entry.isFile(), entry.parentPath === folder]),
    ];
  },
  async 'files: paths as bytes, in each call that snapshots make'(folder) {
    const at = (name: string) => Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(name), Buffer.from([255])]);
    await writeFile(at('a'), 'x'.repeat(100_000));
    await copyFile(at('a'), at('b'), constants.COPYFILE_FICLONE);
    symlinkSync(at('a'), at('l'));
    const handle = await open(at('a'));
    let streamed = 0;
    for await (const part of handle.createReadStream({ highWaterMark: 1024 })) streamed += part.length;
    const closed = await attempt(() => handle.stat());
    const listed = await readdir(folder, { encoding: 'buffer' });
    return [
      (await readFile(at('b'))).length,
      streamed,
      closed,
      (await lstat(at('l'), { bigint: true })).isSymbolicLink(),
      (await readlink(at('l'), { encoding: 'buffer' })).equals(at('a')),
      listed.map((name) => name.toString('hex')).sort(),
      await attempt(() => rm(at('a'))),
    ];
  },
  async 'files: entries with types, and names as bytes'(folder) {
    await writeFile(join(folder, 'a'), '');
    return (await readdir(folder, { encoding: 'buffer', withFileTypes: true })).map(
      (entry) => entry.isFile?.() ?? null,
    );
  },
  async 'files: a stream on a path as bytes'(folder) {
    const path = Buffer.from(join(folder, 'a'));
    await writeFile(path, 'x');
    return attempt(async () => {
      let length = 0;
      for await (const part of createReadStream(path)) length += part.length;
      return length;
    });
  },
  async 'abort: timeout, any, reason'() {
    const signal = AbortSignal.any([new AbortController().signal, AbortSignal.timeout(20)]);
    await once(signal, 'abort');
    const reason = signal.reason as Error;
    const early = AbortSignal.any([AbortSignal.abort('x')]);
    const sleeping = await delay(1000, undefined, { signal }).catch((error) => [error.name, error.code]);
    return [reason.name, signal.aborted, early.reason, sleeping];
  },
  async 'events: once with a signal, captured errors'() {
    const controller = new AbortController();
    const waiting = once(new PassThrough(), 'never', { signal: controller.signal }).catch((error) => [
      error.name,
      error.code,
    ]);
    controller.abort();
    return waiting;
  },
  async 'zlib: gunzip of a damaged and of a cut stream, crc32'() {
    const whole = gzipSync('hello'.repeat(1000));
    const damaged = Buffer.from(whole);
    damaged[20] = (damaged[20] ?? 0) ^ 255;
    const through = (bytes: Buffer) =>
      attempt(() => pipeline(Readable.from([bytes]), createGunzip(), new PassThrough().resume()));
    return [
      crc32('abc'),
      gunzipSync(whole).length,
      await through(whole),
      await through(damaged),
      await through(whole.subarray(0, 30)),
      await attempt(() => gunzipSync(damaged)),
      await through(Buffer.concat([whole, Buffer.from('junk')])),
    ];
  },
  'crypto: digests, signatures'() {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const signature = sign(undefined, Buffer.from('a'), privateKey);
    return [
      createHash('sha256').update('a').digest('hex'),
      verify(undefined, Buffer.from('a'), publicKey, signature),
      signature.length,
    ];
  },
  'text: Intl, sort order, locale'() {
    return [
      ['b', 'a', 'Z', 'ä'].sort((one, other) => one.localeCompare(other)),
      (1234567.891).toLocaleString('en'),
      new Intl.DateTimeFormat('en', { timeZone: 'UTC', dateStyle: 'medium' }).format(0),
      'ﬁ'.normalize('NFKC'),
      /\p{L}/u.test('é'),
      [...new Intl.Segmenter('en').segment('👩‍👩‍👧a')].length,
    ];
  },
  'text: a repeated group on two million letters'() {
    const letters = 'a'.repeat(2_000_000);
    return [/^(?:a|b)*$/.test(letters), /^[ab]*$/.test(letters), /^[ab]*(?:c[ab]*)*$/.test(letters)];
  },
  'text: messages of mistakes in a program'() {
    const missing = JSON.parse('{}');
    const open = '(';
    const tries = [() => missing.a.b, () => decodeURIComponent('%'), () => new RegExp(open), () => BigInt('x')];
    return tries.map((work) => {
      try {
        return work();
      } catch (error) {
        return [(error as Error).name, (error as Error).message];
      }
    });
  },
  'text: messages of JSON errors, stack'() {
    const failure = (text: string) => {
      try {
        return JSON.parse(text);
      } catch (error) {
        return (error as Error).message;
      }
    };
    return [failure('{"a":}'), failure(''), failure('[1,'), typeof new Error('x').stack];
  },
  'text: decoding with fatal'() {
    const decoder = new TextDecoder('utf-8', { fatal: true });
    try {
      return decoder.decode(Buffer.from([0xff]));
    } catch (error) {
      return [code(error), (error as Error).name];
    }
  },
  'process: versions and platform'() {
    return [
      process.platform,
      process.arch,
      typeof process.getuid,
      typeof process.getBuiltinModule,
      process.getBuiltinModule?.('node:tty')?.isatty(0) === isatty(0),
      typeof process.geteuid?.(),
      typeof process.hrtime.bigint(),
      typeof performance.now(),
    ];
  },
  async 'process: a title of its own'() {
    const { stdout } = await promisify(execFile)(self[0] ?? '', [...self.slice(1), '--title']);
    return stdout;
  },
  async 'process: raw mode of a terminal'() {
    let asked = false;
    const child = spawn('script', ['-qec', `${self.map((word) => `'${word}'`).join(' ')} --raw`, '/dev/null'], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    let said = '';
    child.stdout.on('data', (part: Buffer) => {
      said += part;
      if (!asked && said.includes('ready')) {
        asked = true;
        child.stdin.write('\u0003');
      }
    });
    await within(once(child, 'close'), 5000);
    child.kill();
    return said.trim();
  },
  async 'process: uncaught exception, rejection and exit code'() {
    const how = (word: string) => {
      const { status, stdout, stderr } = spawnSync(self[0] ?? '', [...self.slice(1), word]);
      return [status, stdout.toString().trim(), stderr.length > 0];
    };
    return [how('--throw'), how('--reject'), how('--exit-code'), how('--caught')];
  },
};

/** What a child of a probe does. */
const CHILDREN: Record<string, () => void> = {
  '--listen-fd'() {
    const server = createServer((_, reply) => reply.end('activated'));
    server.on('error', (error) => writeSync(1, `${code(error)}\n`));
    server.listen({ fd: 3 }, () => writeSync(1, 'listening\n'));
  },
  '--listen-fd-net'() {
    const inner = createServer((_, reply) => reply.end('activated'));
    const server = createNetServer((socket) => inner.emit('connection', socket));
    server.listen({ fd: 3 }, () => writeSync(1, 'listening\n'));
  },
  '--ask'() {
    const [address = ''] = process.argv.slice(-1);
    void Promise.all([fetch(`${address}fetch`).catch(() => undefined), ask({ port: 9, path: '/http' })]);
  },
  '--signals'() {
    for (const signal of ['SIGHUP', 'SIGTERM', 'SIGINT'] as const)
      process.on(signal, (name) => writeSync(1, `${name}\n`));
    setInterval(() => undefined, 1000);
    writeSync(1, 'ready\n');
  },
  '--write'() {
    try {
      for (let round = 0; round < 100_000; round++) writeSync(1, `${'x'.repeat(20)}\n`);
    } catch (error) {
      writeSync(2, `${code(error)}\n`);
    }
  },
  '--raw'() {
    process.stdin.setRawMode(true);
    process.stdin.once('data', (part) => {
      process.stdin.setRawMode(false);
      writeSync(1, JSON.stringify([...part]));
      process.exit(0);
    });
    writeSync(1, 'ready');
  },
  '--title'() {
    process.title = 'a title';
    writeSync(
      1,
      readFileSync('/proc/self/cmdline', 'utf8')
        .replace(/\0[\s\S]*/, '')
        .replace(/.*[/]/, ''),
    );
  },
  '--throw'() {
    throw new Error('x');
  },
  '--reject'() {
    void Promise.reject(new Error('x'));
  },
  '--exit-code'() {
    process.exitCode = 9;
    process.on('exit', (status) => writeSync(1, `exit ${status}`));
  },
  '--caught'() {
    process.on('uncaughtException', (error, origin) => {
      writeSync(1, `${error.message} ${origin}`);
      process.exit(4);
    });
    void Promise.reject(new Error('y'));
  },
};

async function main(words: readonly string[]): Promise<void> {
  const child = CHILDREN[words[0] ?? ''];
  if (child) {
    child();
    return;
  }
  const answers: Record<string, unknown> = {};
  for (const [name, probe] of Object.entries(PROBES)) {
    if (words[0] !== undefined && !name.includes(words[0])) continue;
    const folder = mkdtempSync(join(tmpdir(), 'probe-'));
    answers[name] = (await within(attempt(() => probe(folder)) as Promise<unknown>, 15_000)) ?? null;
    rmSync(folder, { recursive: true, force: true });
  }
  writeSync(1, `${JSON.stringify(answers, undefined, 1)}\n`);
  process.exit(0);
}

void main(process.argv.slice(2));
