import { once } from 'node:events';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { exchangeOver, type OutgoingRequest, ProtocolError } from '../../src/client/http-exchange.ts';
import { overSocket } from '../../src/client/wire.ts';

/** A connection on which these bytes come, in pieces, once the request has been sent; it ends after them. */
function connection(pieces: readonly Buffer[], options: { staysOpen?: boolean } = {}) {
  let sent = '';
  const rest = [...pieces];
  const stream = new Duplex({
    read() {
      if (sent === '') return;
      const piece = rest.shift();
      if (piece) this.push(piece);
      else if (!options.staysOpen) this.push(null);
    },
    write(chunk, _encoding, done) {
      const isFirst = sent === '';
      sent += chunk.toString('latin1');
      if (isFirst) this._read(0);
      done();
    },
  });
  return { socket: stream as unknown as Socket, sent: () => sent };
}

async function exchanged(text: string, request: Partial<OutgoingRequest> = {}, cuts: readonly number[] = []) {
  const bytes = Buffer.from(text, 'latin1');
  const at = [0, ...[...cuts].map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  const pieces = at.slice(1).map((end, index) => bytes.subarray(at[index], end));
  const { socket, sent } = connection(pieces.filter(({ length }) => length > 0));
  const parts: Buffer[] = [];
  const result = await exchangeOver(
    overSocket(socket),
    { method: 'GET', path: '/', headers: {}, ...request },
    { onBody: (part) => void parts.push(part) },
  );
  return { ...result, body: Buffer.concat(parts).toString('latin1'), sent: sent() };
}

const RESPONSES: [what: string, text: string, expected: object][] = [
  [
    'a length',
    'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: "a"\r\n\r\nhello and more',
    {
      head: { status: 200, statusText: 'OK', headers: { 'content-length': '5', etag: '"a"' } },
      body: 'hello',
      reusable: true,
    },
  ],
  [
    'chunks',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: x\r\n\r\n',
    { body: 'hello world', reusable: true },
  ],
  ['the end of the connection', 'HTTP/1.0 200 OK\r\nServer: x\r\n\r\nhello', { body: 'hello', reusable: false }],
  [
    'a connection that closes',
    'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx',
    { reusable: false },
  ],
  [
    'no body',
    'HTTP/1.1 204 No Content\r\nA: 1\r\na: 2\r\n\r\n',
    { head: { status: 204, statusText: 'No Content', headers: { a: '1, 2' } }, body: '' },
  ],
  [
    'no reason phrase',
    'HTTP/1.1 418\r\nContent-Length: 0\r\n\r\n',
    { head: { status: 418, statusText: '', headers: { 'content-length': '0' } } },
  ],
  [
    'an interim response first',
    'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno',
    { head: { status: 400, statusText: 'Bad Request', headers: { 'content-length': '2' } }, body: 'no' },
  ],
];

describe('reads a response with', () => {
  test.each(RESPONSES)('%s, in whatever pieces it comes', async (_what, text, expected) => {
    expect(await exchanged(text)).toMatchObject(expected);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: 400 }), { maxLength: 6 }), async (cuts) => {
        expect(await exchanged(text, {}, cuts)).toMatchObject(expected);
      }),
    );
  });

  test('no body after HEAD, whatever its length says', async () => {
    const { body } = await exchanged('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n', { method: 'HEAD' });
    expect(body).toBe('');
  });
});

test.each([
  ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel', 'unexpected EOF'],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n', 'unexpected EOF'],
  ['', 'socket hang up'],
])('a response that ends early is an error: %j', async (text, message) => {
  await expect(exchanged(text)).rejects.toThrow(message);
});

test.each(['220 mail ready\r\n', '220 mail', 'HTTP/1.1 200 OK\r\nContent-', '\x16\x03\x01\x02', '<html>\n'])(
  'reports that what comes is not HTTP: %j',
  async (text) => {
    await expect(exchanged(text)).rejects.toBeInstanceOf(ProtocolError);
  },
);

test('a head without an end is refused', async () => {
  await expect(exchanged(`HTTP/1.1 200 OK\r\n${'A: b\r\n'.repeat(20_000)}`)).rejects.toBeInstanceOf(ProtocolError);
});

test('writes the head, and the body with its length in bytes', async () => {
  const answer = 'HTTP/1.1 204 x\r\n\r\n';
  const headers = { Host: 'localhost', 'If-Match': '"\u00e4"' };
  expect((await exchanged(answer, { method: 'PUT', path: '/a?b=%20', headers, body: '{"a":"\u00fc"}' })).sent).toBe(
    'PUT /a?b=%20 HTTP/1.1\r\nHost: localhost\r\nIf-Match: "\u00e4"\r\nContent-Length: 10\r\n\r\n{"a":"\u00c3\u00bc"}',
  );
  expect((await exchanged(answer, { method: 'POST' })).sent).toBe('POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n');
  expect((await exchanged(answer)).sent).toBe('GET / HTTP/1.1\r\n\r\n');
});

test.each([
  { method: 'GET / HTTP/1.1\r\nX: y\r\n\r\nGET' },
  { method: '' },
  { path: '/a b' },
  { path: '/a\r\nX: y' },
  { path: '' },
  { path: '/\u0100' },
  { headers: { 'A\r\nB': 'x' } },
  { headers: { A: 'x\r\nB: y' } },
  { headers: { A: '\u0100' } },
])('sends nothing of a request that cannot be written: %j', async (request) => {
  const { socket, sent } = connection([]);
  const asked = exchangeOver(
    overSocket(socket),
    { method: 'GET', path: '/', headers: {}, ...request },
    { onBody: () => undefined },
  );
  await expect(asked).rejects.toBeInstanceOf(TypeError);
  expect(sent()).toBe('');
});

test('what the reader throws ends the exchange', async () => {
  const { socket } = connection([Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx')]);
  const error = new Error('enough');
  const onBody = () => {
    throw error;
  };
  await expect(exchangeOver(overSocket(socket), { method: 'GET', path: '/', headers: {} }, { onBody })).rejects.toBe(
    error,
  );
});

test('a connection that has closed already is an error at once', async () => {
  const { socket } = connection([]);
  await once(socket.destroy(), 'close');
  const asked = exchangeOver(
    overSocket(socket),
    { method: 'GET', path: '/', headers: {} },
    { onBody: () => undefined },
  );
  await expect(asked).rejects.toMatchObject({ code: 'ECONNRESET' });
});
