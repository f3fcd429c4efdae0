import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { releaseSource, type SourceOptions } from '../../../src/features/upgrade/source.ts';
import { served } from '../../helpers/releases.ts';
import { temporaryDirectory } from '../../helpers/temp-home.ts';

const BODY = Buffer.alloc(400_000, 'rdctl');
const SUM = createHash('sha256').update(BODY).digest('hex');

function sourceAt(base: string, options: Partial<SourceOptions> = {}) {
  const downloads = join(temporaryDirectory(), 'downloads');
  const source = releaseSource(base, {
    fetch,
    downloads,
    onProgress: () => undefined,
    onRetry: () => undefined,
    sleep: async () => undefined,
    signal: new AbortController().signal,
    ...options,
  });
  return { source, downloads };
}

test('a download that breaks off counts for nothing, and the next one resumes it', async () => {
  let isBroken = true;
  const offsets: string[] = [];
  const base = await served((request, response) => {
    const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
    offsets.push(String(from));
    response.setHeader('etag', '"one"');
    response.setHeader('content-length', BODY.length - from);
    if (from > 0) response.setHeader('content-range', `bytes ${from}-${BODY.length - 1}/${BODY.length}`);
    response.writeHead(from > 0 ? 206 : 200);
    if (isBroken) response.write(BODY.subarray(from, -1), () => response.destroy());
    else response.end(BODY.subarray(from));
  });
  const { source, downloads } = sourceAt(base);
  await expect(source.program(['0.2.0', 'file'], SUM)).rejects.toMatchObject({ code: 'ERR_CONNECTION' });
  expect(readdirSync(downloads).sort()).toEqual([`${SUM}.json`, `${SUM}.part`]);
  isBroken = false;
  const { path, discard } = await source.program(['0.2.0', 'file'], SUM);
  expect(offsets.at(-1)).toMatch(/^[1-9]\d*$/);
  expect(readFileSync(path).equals(BODY)).toBe(true);
  await discard();
  expect(readdirSync(downloads)).toEqual([]);
});

test('a file with another digest is refused, and nothing of it is kept', async () => {
  const base = await served((_, response) => void response.end(BODY.subarray(1)));
  const { source, downloads } = sourceAt(base);
  await expect(source.program(['0.2.0', 'file'], SUM)).rejects.toMatchObject({
    code: 'ERR_UPGRADE_REFUSED',
    message: expect.stringContaining('is not the expected file'),
  });
  expect(readdirSync(downloads)).toEqual([]);
});

const endless: RequestListener = (_, response) => {
  const more = () => {
    while (response.write(BODY));
  };
  response.on('drain', more);
  more();
};
/** Answers, and never says anything more. */
const silent: RequestListener = (_, response) => void response.writeHead(200).write('0');
const LIMITS = { textMs: 60_000, programMs: 60_000, programBytes: 1_000_000 };

test('an endless answer ends at its limit', async () => {
  const base = await served(endless);
  const { source, downloads } = sourceAt(base, { limits: LIMITS });
  await expect(source.text(['latest'], 256)).rejects.toThrow('it is larger than 256 bytes');
  await expect(source.program(['0.2.0', 'file'], SUM)).rejects.toThrow('is larger than 976.6 KiB, the limit');
  expect(readdirSync(downloads)).toEqual([]);
});

test('a silent answer ends at its limit', async () => {
  const base = await served(silent);
  const { source } = sourceAt(base, { limits: { ...LIMITS, textMs: 50, programMs: 50 } });
  await expect(source.text(['latest'], 256)).rejects.toThrow('no response within 0.05 s');
  await expect(source.program(['0.2.0', 'file'], SUM)).rejects.toThrow('could not be downloaded in');
});

test('an interrupted command ends a download', async () => {
  const base = await served(silent);
  const stop = new AbortController();
  const { source, downloads } = sourceAt(base, { signal: stop.signal, onProgress: () => stop.abort('SIGINT') });
  await expect(source.program(['0.2.0', 'file'], SUM)).rejects.toMatchObject({ code: 'ERR_CANCELLED' });
  expect(existsSync(join(downloads, `${SUM}.part`))).toBe(true);
});

test('redirects are followed, but not in circles', async () => {
  const base = await served((request, response) => {
    if (request.url === '/latest') response.writeHead(302, { location: '/other' }).end();
    else if (request.url === '/other') response.end('0.2.0\n');
    else response.writeHead(302, { location: '/circle' }).end();
  });
  const { source } = sourceAt(base);
  expect(await source.text(['latest'], 256)).toBe('0.2.0\n');
  await expect(source.text(['circle'], 256)).rejects.toThrow('redirects to an address that is not accepted');
});
