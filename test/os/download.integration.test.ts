import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type DownloadInput, download } from '../../src/os/download.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const BODY = Buffer.from(Array.from({ length: 200_000 }, (_, index) => index % 251));
const SUM = createHash('sha256').update(BODY).digest('hex');
const never = new AbortController().signal;

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** A server that gives these responses in turn; the last one repeats. */
async function server(...answers: Answer[]) {
  const requests: IncomingMessage[] = [];
  const http = createServer((request, response) => {
    const answer = answers[Math.min(requests.length, answers.length - 1)];
    requests.push(request);
    answer?.(request, response);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    http.closeAllConnections();
    http.close();
  });
  const { port } = http.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/image.tar`, requests };
}

/** All of it, or the rest from the requested offset. */
const serves: Answer = (request, response) => {
  const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
  const goesOn = from > 0 && request.headers['if-range'] === '"one"';
  response.setHeader('etag', '"one"');
  const body = goesOn ? BODY.subarray(from) : BODY;
  response.setHeader('content-length', body.length);
  if (goesOn) response.setHeader('content-range', `bytes ${from}-${BODY.length - 1}/${BODY.length}`);
  response.writeHead(goesOn ? 206 : 200).end(body);
};

/** Called once the client has received something: before that, a break may lose what is on the way. */
let onReceived: () => void = () => undefined;

/** Closes the connection after some of the announced length. */
const breaksAfter =
  (bytes: number, etag: string): Answer =>
  (_, response) => {
    onReceived = () => response.destroy();
    response.writeHead(200, { etag, 'content-length': BODY.length });
    response.write(BODY.subarray(0, bytes));
  };
const breaks = breaksAfter(BODY.length / 2, '"one"');

const says =
  (status: number): Answer =>
  (_, response) =>
    void response.writeHead(status).end('no');

function get(url: string, directory: string, more: Partial<DownloadInput> = {}) {
  const onProgress = () => onReceived();
  onTestFinished(() => {
    onReceived = () => undefined;
  });
  return download({
    url,
    sha256: SUM,
    directory,
    fetch,
    onProgress,
    sleep: async () => undefined,
    signal: never,
    ...more,
  });
}

test('downloads the whole file, reports progress, and can be discarded', async () => {
  const directory = join(temporaryDirectory(), 'downloads');
  const { url } = await server(serves);
  const seen: [number, number | undefined][] = [];
  const done = await get(url, directory, { onProgress: (bytes, total) => seen.push([bytes, total]) });
  expect(readFileSync(done.path).equals(BODY)).toBe(true);
  expect(seen.at(-1)).toEqual([BODY.length, BODY.length]);
  await done.discard();
  expect(readdirSync(directory)).toEqual([]);
});

test('resumes where the connection broke', async () => {
  const { url, requests } = await server(breaks, serves);
  const done = await get(url, temporaryDirectory());
  expect(readFileSync(done.path).equals(BODY)).toBe(true);
  expect(requests).toHaveLength(2);
  expect(requests[1]?.headers.range).toMatch(/^bytes=[1-9]\d*-$/);
});

test('reports why it retries', async () => {
  const { url } = await server(says(503), serves);
  const reasons: string[] = [];
  await get(url, temporaryDirectory(), { onRetry: (reason) => reasons.push(reason) });
  expect(reasons).toEqual(['HTTP 503']);
});

test('says why a connection failed, without advice to programmers', async () => {
  const { url } = await server((_, response) => response.destroy());
  await expect(get(url, temporaryDirectory())).rejects.toMatchObject({
    code: 'ERR_CONNECTION',
    message: expect.stringMatching(/: (?:other side closed|.* was closed unexpectedly\.)$/),
  });
});

test('resumes in another process', async () => {
  const directory = temporaryDirectory();
  const { url, requests } = await server(breaks, says(503), says(503), says(503), serves);
  await expect(get(url, directory)).rejects.toMatchObject({
    code: 'ERR_CONNECTION',
    advice: expect.stringContaining('are kept'),
  });
  const elsewhere = await server(says(503));
  await expect(get(elsewhere.url, directory)).rejects.toMatchObject({
    advice: 'Check the URL and the network, and try again.',
  });
  const before = requests.length;
  expect(readFileSync((await get(url, directory)).path).equals(BODY)).toBe(true);
  expect(requests[before]?.headers.range).toMatch(/^bytes=[1-9]\d*-$/);
});

test('starts over when the file on the server has changed, or has no reliable validator', async () => {
  const changed: Answer = (request, response) => {
    expect(request.headers['if-range']).toBe('"one"');
    response.writeHead(200, { etag: '"two"', 'content-length': BODY.length }).end(BODY);
  };
  const one = await server(breaks, changed);
  expect(readFileSync((await get(one.url, temporaryDirectory())).path).equals(BODY)).toBe(true);

  const two = await server(breaksAfter(1000, 'W/"one"'), serves);
  expect(readFileSync((await get(two.url, temporaryDirectory())).path).equals(BODY)).toBe(true);
  expect(two.requests[1]?.headers.range).toBeUndefined();
});

test('keeps nothing of a file with a wrong checksum', async () => {
  const directory = temporaryDirectory();
  const { url } = await server((_, response) => void response.end('something else'));
  await expect(get(url, directory)).rejects.toMatchObject({
    code: 'ERR_DRIVER_TERMINAL',
    message: expect.stringContaining('is not the expected file'),
  });
  expect(readdirSync(directory)).toEqual([]);
});

test.each([
  ['takes what a killed command had all of', BODY],
  ['begins anew when what a killed command left is too long', Buffer.concat([BODY, Buffer.from('x')])],
])('%s', async (_, left) => {
  const directory = temporaryDirectory();
  const { url } = await server(says(416), serves);
  writeFileSync(join(directory, `${SUM}.part`), left);
  writeFileSync(join(directory, `${SUM}.json`), JSON.stringify({ url, mark: '"one"' }));
  expect(readFileSync((await get(url, directory)).path).equals(BODY)).toBe(true);
});

test('follows a redirect', async () => {
  const target = await server(serves);
  const { url } = await server((_, response) => void response.writeHead(302, { location: target.url }).end());
  expect(readFileSync((await get(url, temporaryDirectory())).path).equals(BODY)).toBe(true);
});

test.each([
  [404, 'ERR_NOT_FOUND', 1],
  [403, 'ERR_CONNECTION', 1],
  [503, 'ERR_CONNECTION', 4],
])('HTTP %i is %s after %i attempts', async (status, code, tries) => {
  const { url, requests } = await server(says(status));
  await expect(get(url, temporaryDirectory())).rejects.toMatchObject({ code, message: expect.stringContaining(url) });
  expect(requests).toHaveLength(tries);
});

test('gives up on a silent server', async () => {
  const { url } = await server(() => undefined);
  await expect(get(url, temporaryDirectory(), { stallMs: 20 })).rejects.toMatchObject({
    code: 'ERR_CONNECTION',
    message: expect.stringContaining('sent nothing for too long'),
  });
});

test('stops when it is canceled, and keeps the partial file', async () => {
  const directory = temporaryDirectory();
  const stop = new AbortController();
  const half: Answer = (_, response) => {
    response.writeHead(200, { etag: '"one"', 'content-length': BODY.length });
    response.write(BODY.subarray(0, 1000));
  };
  const { url } = await server(half);
  const going = get(url, directory, { signal: stop.signal, onProgress: () => stop.abort() });
  await expect(going).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  expect(existsSync(join(directory, `${SUM}.part`))).toBe(true);
});

test('reports that nothing listens', async () => {
  const { url } = await server(serves);
  const free = url.replace(/:\d+/, ':9');
  await expect(get(free, temporaryDirectory())).rejects.toMatchObject({ code: 'ERR_CONNECTION' });
});

/** Sends endlessly, and counts what was read. */
const endless =
  (length?: number): Answer =>
  (_, response) => {
    response.writeHead(200, length === undefined ? {} : { 'content-length': length });
    const more = () => {
      while (!response.destroyed && response.write(BODY));
      if (!response.destroyed) response.once('drain', more);
    };
    more();
  };

test.each([
  ['says that it has more', endless(2_000_000)],
  ['does not stop', endless()],
])('a server that %s more than allowed is given up at once, and nothing is kept', async (_what, answer) => {
  const { url, requests } = await server(answer);
  const directory = temporaryDirectory();
  await expect(get(url, directory, { maxBytes: 1_000_000 })).rejects.toMatchObject({
    code: 'ERR_DRIVER_TERMINAL',
    message: expect.stringContaining('larger than 976.6 KiB'),
  });
  expect(requests).toHaveLength(1);
  expect(readdirSync(directory)).toEqual([]);
});
