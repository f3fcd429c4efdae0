import { createServer } from 'node:http';
import { createServer as createTcpServer, type Server } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import type { Connection, Transport } from '../../src/client/connection.ts';
import { answerLimit, httpTransport, withinTime } from '../../src/client/http.ts';

async function listening(server: Server): Promise<Connection> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    host: '127.0.0.1',
    port: address.port,
    user: 'user',
    password: 'pa:ss wörd',
    foreign: false,
    reached: { by: 'word' },
    file: '/f.json',
  };
}

const answering = (status: number, body: string, headers: Record<string, string> = {}) =>
  listening(createServer((_request, response) => response.writeHead(status, headers).end(body)));

test('sends the body byte for byte, with credentials and length', async () => {
  const connection = await listening(
    createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', () =>
        response.end(JSON.stringify({ headers: request.headers, body: Buffer.concat(parts).toString() })),
      );
    }),
  );
  const answer = await httpTransport(connection, { method: 'PUT', path: '/x?a=%C3%A4', body: '{"a":"ü"}' });
  const { headers, body } = JSON.parse(answer.body.toString());
  expect(body).toBe('{"a":"ü"}');
  expect(headers).toMatchObject({ 'content-type': 'application/json', 'content-length': '10', connection: 'close' });
  expect(Buffer.from(headers.authorization.slice(6), 'base64').toString()).toBe('user:pa:ss wörd');
});

test('bypasses proxies', async () => {
  const connection = await answering(200, 'direct');
  process.env.HTTP_PROXY = 'http://127.0.0.1:1';
  process.env.NODE_USE_ENV_PROXY = '1';
  onTestFinished(() => {
    delete process.env.HTTP_PROXY;
    delete process.env.NODE_USE_ENV_PROXY;
  });
  expect((await httpTransport(connection, { method: 'GET', path: '/' })).body.toString()).toBe('direct');
});

test('reports that nothing listens, with a remedy', async () => {
  const connection = await answering(200, '');
  const closed = { ...connection, port: 1 };
  await expect(httpTransport(closed, { method: 'GET', path: '/' })).rejects.toMatchObject({
    code: 'ERR_NOT_RUNNING',
    message: 'connection refused: no service listens on 127.0.0.1:1',
    advice: 'Start it with `rdctl start`.',
  });
});

test('reports a timeout, a canceled call, and an unknown host', async () => {
  const silent = await listening(createServer(() => undefined));
  await expect(httpTransport(silent, { method: 'GET', path: '/', timeoutMs: 20 })).rejects.toMatchObject({
    code: 'ERR_DEADLINE',
  });
  await expect(httpTransport(silent, { method: 'GET', path: '/', signal: AbortSignal.abort() })).rejects.toMatchObject({
    code: 'ERR_CANCELLED',
  });
  await expect(
    httpTransport({ ...silent, host: 'nowhere.invalid' }, { method: 'GET', path: '/x' }),
  ).rejects.toMatchObject({
    code: 'ERR_CONNECTION',
    message: `Get "http://nowhere.invalid:${silent.port}/x": dial tcp: lookup nowhere.invalid: no such host`,
  });
  await expect(httpTransport(silent, { method: 'GET', path: '/a b' })).rejects.toMatchObject({
    code: 'ERR_CONNECTION',
  });
});

test('recognizes another program on the port by its answers', async () => {
  const notHttp = await listening(createTcpServer((socket) => socket.end('220 mail ready\r\n')));
  await expect(createClient(notHttp).settings()).rejects.toThrow(
    /another program answers on .* \/f\.json: its response is not HTTP/,
  );
  for (const [status, body] of [
    [200, '<html>'],
    [200, '[]'],
    [200, '{"hello":1}'],
    [404, 'Cannot GET /v1/settings'],
    [401, 'log in please'],
  ] as const) {
    const connection = await answering(status, body);
    await expect(createClient(connection).settings()).rejects.toMatchObject({
      code: 'ERR_CONNECTION',
      message: expect.stringMatching(/^another program answers on 127\.0\.0\.1:\d+, the address in \/f\.json: /),
    });
  }
});

test.each([
  [
    400,
    'errors in attempt to update settings:\na\nb',
    {},
    'ERR_SETTINGS_INVALID',
    'errors in attempt to update settings:\na\nb',
  ],
  [400, '', {}, 'ERR_SETTINGS_INVALID', '400 Bad Request'],
  [403, 'no such host here', {}, 'ERR_FORBIDDEN', '403 Forbidden (unexpected server error)'],
  [
    404,
    'Unknown command: PUT /v1/settings',
    {},
    'ERR_NOT_FOUND',
    '404 Not Found (unexpected server error): the service has no PUT /v1/settings',
  ],
  [412, 'moved', {}, 'ERR_PRECONDITION_FAILED', 'moved'],
  [413, 'too long', {}, 'ERR_BODY_TOO_LARGE', '413 Payload Too Large'],
  [
    500,
    'Internal Server Error',
    {},
    'ERR_INTERNAL',
    '500 Internal Server Error: server-side problem: please consult the server logs for more information',
  ],
  [
    500,
    'could not write x',
    {},
    'ERR_INTERNAL',
    '500 Internal Server Error: server-side problem: please consult the server logs for more information',
  ],
  [503, 'not ready', {}, 'ERR_NOT_READY', '503 Service Unavailable (unexpected server error)'],
  [418, 'x', {}, 'ERR_CONNECTION', "418 I'm a Teapot (unexpected server error)"],
  [
    400,
    '{"code":"ERR_PLAN_INVALID","message":"m","advice":"a","details":["d"]}',
    { 'content-type': 'application/json; charset=utf-8' },
    'ERR_PLAN_INVALID',
    'm',
  ],
])('%i %j becomes a typed error', async (status, body, headers, code, message) => {
  const connection = await answering(status, body, headers);
  await expect(createClient(connection).putSettings({ version: 19 })).rejects.toMatchObject({ code, message });
});

test.each([
  [undefined, 'of /f.json', /^\/f\.json is .* `rdctl shutdown` and `rdctl start`\.$/],
  ['--password', 'of --password', /^Correct --password, or omit it to use the one in \/f\.json\.$/],
  ['--password-file /p', 'of --password-file /p', /^Correct --password-file \/p, or omit it/],
  ['RDCTL_PASSWORD', 'of RDCTL_PASSWORD', /^Correct RDCTL_PASSWORD, or unset it to use the one in \/f\.json\.$/],
])(
  'a password from %s that is refused: reports who refused it, its source and a remedy',
  async (passwordFrom, source, advice) => {
    for (const body of ['Unauthorized', '{"code":"ERR_UNAUTHORIZED","message":"Unauthorized"}']) {
      const connection = await answering(401, body);
      const client = createClient({ ...connection, ...(passwordFrom === undefined ? {} : { passwordFrom }) });
      await expect(client.status()).rejects.toMatchObject({
        code: 'ERR_UNAUTHORIZED',
        message: `401 Unauthorized: user/password not accepted by http://127.0.0.1:${connection.port} for the user "user" with the password ${source}`,
        advice: expect.stringMatching(advice),
      });
    }
  },
);

test('never takes a web page for an answer of a service, whatever its status', async () => {
  for (const status of [200, 400, 401, 403, 500]) {
    const connection = await answering(status, '<html>hello</html>', { 'content-type': 'text/html' });
    const error = await createClient(connection)
      .putSettings({ version: 19 })
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'ERR_CONNECTION', message: expect.stringContaining('is a web page') });
  }
});

test('every request has a timeout, shortened to the time the command has left', async () => {
  expect(answerLimit({ method: 'GET' })).toBe(10_000);
  expect(answerLimit({ method: 'PUT' })).toBe(60_000);
  const asked: (number | undefined)[] = [];
  const transport: Transport = async (_connection, request) => {
    asked.push(request.timeoutMs);
    return { status: 200, statusText: '', headers: {}, body: Buffer.from('{}') };
  };
  const connection = await answering(200, '');
  let left = 3000;
  const limited = withinTime(() => left, transport);
  await limited(connection, { method: 'GET', path: '/' });
  await limited(connection, { method: 'GET', path: '/', timeoutMs: 20 });
  left = 30_000;
  await limited(connection, { method: 'GET', path: '/' });
  left = -5;
  await limited(connection, { method: 'GET', path: '/' });
  expect(asked).toEqual([3000, 20, 10_000, 1]);
});

test('an answer that never ends times out as well', async () => {
  const dripping = await listening(
    createServer((_request, response) => {
      const timer = setInterval(() => response.write('x'), 5);
      response.on('close', () => clearInterval(timer));
    }),
  );
  await expect(httpTransport(dripping, { method: 'GET', path: '/', timeoutMs: 60 })).rejects.toMatchObject({
    code: 'ERR_DEADLINE',
    message: `127.0.0.1:${dripping.port} (the address in /f.json) did not answer within 60 ms`,
  });
});

test('reports an answer that breaks off', async () => {
  const cutting = await listening(
    createServer((_request, response) => {
      response.writeHead(200, { 'Content-Length': '10' }).write('{"a"');
      setImmediate(() => response.destroy());
    }),
  );
  await expect(httpTransport(cutting, { method: 'GET', path: '/' })).rejects.toMatchObject({
    code: 'ERR_CONNECTION',
    message: 'unexpected EOF',
  });
});

test('receives large answers whole', async () => {
  const big = JSON.stringify({ version: 19, kubernetes: {}, text: 'x'.repeat(3_000_000) });
  const { text } = await createClient(await answering(200, big)).settings();
  expect(text).toBe(big);
});

test.each([
  ['a status', (client: ReturnType<typeof createClient>) => client.status(), '{"kind":"Status","version":19}'],
  [
    'a plan',
    (client: ReturnType<typeof createClient>) => client.plan({ settings: {}, state: 'unmanaged', prune: [] }),
    '{"kind":"Plan","changes":[]}',
  ],
])('does not mistake what only looks like %s for one', async (_what, ask, body) => {
  const client = createClient(await answering(200, body));
  await expect(ask(client)).rejects.toThrow(/another program answers/);
});
