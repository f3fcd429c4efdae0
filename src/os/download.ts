import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { RdError } from '../errors.ts';
import { writeFileAtomic } from './atomic-file.ts';
import { makeDirectory } from './directory.ts';
import { ioError } from './io-error.ts';
import { readableRecord } from './record.ts';
import { sizeText } from './size.ts';

export interface DownloadInput {
  url: string;
  /** sha256 of the whole file, 64 lowercase hexadecimal digits. */
  sha256: string;
  /** Directory of partial downloads, named by digest. */
  directory: string;
  fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** Received bytes, and the total, if the server sends it. */
  onProgress?(bytes: number, total: number | undefined): void;
  /** Called when an attempt failed and another one follows, with the reason. */
  onRetry?(reason: string): void;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** A server that sends nothing for this long is gone. */
  stallMs?: number;
  /** In bytes; by default 8 GiB, more than any downloaded file has. */
  maxBytes?: number;
  signal: AbortSignal;
}

/** A complete and verified download. */
export interface Download {
  path: string;
  bytes: number;
  /** Deletes the downloaded file. */
  discard(): Promise<void>;
}

const STALL_MS = 60_000;
const MAX_BYTES = 8 * 1024 ** 3;
/** Attempts without new bytes before giving up; an attempt with new bytes resets the count. */
const TRIES = 4;
const PAUSE_MS = 1_000;

interface Resumable {
  url: string;
  /** A validator that tells if the file on the server is unchanged. */
  mark?: string;
}

/**
 * Downloads a file completely, resumes a partial one if the server supports it, and verifies its digest.
 * @throws RdError `ERR_CONNECTION` when the server is unreachable or stalls (the partial file is kept for the next attempt),
 * `ERR_NOT_FOUND`
 *   for 404 and 410, `ERR_DRIVER_TERMINAL` for a wrong digest and an oversized file (nothing is kept), `ERR_IO`, `ERR_CANCELLED`.
 */
export async function download(input: DownloadInput): Promise<Download> {
  const { url, sha256, directory, signal } = input;
  if (!/^[0-9a-f]{64}$/.test(sha256)) throw new RdError('ERR_USAGE', 'the sha256 is not 64 hexadecimal digits');
  await makeDirectory(directory);
  const path = join(directory, `${sha256}.part`);
  const facts = join(directory, `${sha256}.json`);
  const discard = async () => {
    await Promise.all([path, facts].map((file) => rm(file, { force: true })));
  };
  for (let failures = 0; ; ) {
    const before = await sizeOf(path);
    try {
      await attempt(input, path, facts);
      break;
    } catch (error) {
      if (signal.aborted)
        throw new RdError('ERR_CANCELLED', 'the download was canceled; the next one resumes it', { cause: error });
      if (error instanceof RdError) {
        if (error.code === 'ERR_DRIVER_TERMINAL') await discard();
        throw error;
      }
      failures = (await sizeOf(path)) > before ? 1 : failures + 1;
      if (failures >= TRIES) throw unreachable(url, error, await resumableBytes(facts, path, url));
      input.onRetry?.(fetchFailure(error));
      await input.sleep(PAUSE_MS * 2 ** failures, signal);
    }
  }
  const bytes = await sizeOf(path);
  const actual = await digestOf(path, signal);
  if (actual === sha256) return { path, bytes, discard };
  await discard();
  throw new RdError('ERR_DRIVER_TERMINAL', `${url} is not the expected file: its sha256 is ${actual}`, {
    advice: 'Nothing was kept. Compare the checksum with the one from its publisher.',
  });
}

async function attempt(
  { url, sha256, fetch, onProgress, stallMs = STALL_MS, maxBytes = MAX_BYTES, signal }: DownloadInput,
  path: string,
  facts: string,
) {
  const known = await resumable(facts, url);
  const there = await resumableBytes(facts, path, url);
  const stalled = new AbortController();
  let timer = setTimeout(() => stalled.abort(), stallMs);
  const restartTimer = () => {
    clearTimeout(timer);
    timer = setTimeout(() => stalled.abort(), stallMs);
  };
  try {
    const response = await fetch(url, {
      signal: AbortSignal.any([signal, stalled.signal]),
      // Content encoding would change byte offsets.
      headers: {
        'accept-encoding': 'identity',
        ...(there > 0 && known?.mark !== undefined ? { range: `bytes=${there}-`, 'if-range': known.mark } : {}),
      },
    });
    // The partial file is complete already, or too long.
    if (response.status === 416 && there > 0) {
      await response.body?.cancel();
      if ((await digestOf(path, signal)) === sha256) return;
      await rm(path, { force: true });
      throw new Error('the partial download did not match');
    }
    const resumes = response.status === 206 && startOf(response) === there;
    if (!resumes && response.status !== 200) {
      await response.body?.cancel();
      throw refusalError(url, response.status);
    }
    const mark = response.headers.get('etag') ?? response.headers.get('last-modified') ?? undefined;
    // A weak ETag only means "equivalent", which is not enough to join two parts.
    await writeFileAtomic(
      facts,
      JSON.stringify({ url, ...(mark === undefined || mark.startsWith('W/') ? {} : { mark }) }),
    );
    await append(response, path, { url, from: resumes ? there : 0, maxBytes, onProgress, restartTimer });
  } finally {
    clearTimeout(timer);
  }
}

async function append(
  response: Response,
  path: string,
  {
    url,
    from,
    maxBytes,
    onProgress,
    restartTimer,
  }: Required<Pick<DownloadInput, 'url' | 'maxBytes'>> & {
    onProgress: DownloadInput['onProgress'];
    from: number;
    restartTimer: () => void;
  },
): Promise<void> {
  const length = Number(response.headers.get('content-length') ?? Number.NaN);
  const total = Number.isFinite(length) ? from + length : undefined;
  if (total !== undefined && total > maxBytes) {
    await response.body?.cancel();
    throw tooLarge(url, maxBytes);
  }
  let bytes = from;
  const file = await open(path, from > 0 ? 'a' : 'w', 0o600).catch((cause: unknown) => {
    throw ioError('write', path, cause);
  });
  try {
    for await (const chunk of response.body ?? []) {
      restartTimer();
      await file.appendFile(chunk).catch((cause: unknown) => {
        throw ioError('write', path, cause);
      });
      bytes += chunk.length;
      if (bytes > maxBytes) throw tooLarge(url, maxBytes);
      onProgress?.(bytes, total);
    }
    await file.sync();
  } finally {
    await file.close();
  }
  if (total !== undefined && bytes !== total) throw new Error(`the body ended after ${bytes} of ${total} bytes`);
}

function startOf(response: Response): number | undefined {
  const start = /^bytes (\d+)-/.exec(response.headers.get('content-range') ?? '')?.[1];
  return start === undefined ? undefined : Number(start);
}

function refusalError(url: string, status: number): Error {
  if (status === 404 || status === 410) {
    return new RdError('ERR_NOT_FOUND', `there is nothing at ${url} (HTTP ${status})`, {
      advice: 'Check the URL.',
    });
  }
  // Retried: an overloaded server responds with 503 for a while.
  if (status >= 500 || status === 429) return new Error(`HTTP ${status}`);
  return new RdError('ERR_CONNECTION', `${url} was refused with HTTP ${status}`, {
    advice: 'Open the URL in a browser to see why; URLs that require a login are not supported.',
  });
}

async function resumable(file: string, url: string): Promise<Resumable | undefined> {
  const record = await readableRecord(file);
  if (record?.url !== url) return undefined;
  return typeof record.mark === 'string' ? { url, mark: record.mark } : { url };
}

/** Returns the number of bytes that the next attempt at this address can skip. */
async function resumableBytes(facts: string, path: string, url: string): Promise<number> {
  return (await resumable(facts, url))?.mark === undefined ? 0 : await sizeOf(path);
}

async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}

async function digestOf(path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  try {
    await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash, { signal });
  } catch (cause) {
    if (signal.aborted)
      throw new RdError('ERR_CANCELLED', 'the download was canceled; the next one resumes it', { cause });
    throw ioError('read', path, cause);
  }
  return hash.digest('hex');
}

function tooLarge(url: string, most: number): RdError {
  return new RdError('ERR_DRIVER_TERMINAL', `${url} is larger than ${sizeText(most)}, the limit`, {
    advice: 'Nothing was kept. Check the URL.',
  });
}

function unreachable(url: string, cause: unknown, bytes: number): RdError {
  const reason = fetchFailure(cause);
  const kept = bytes > 0 ? ` ${bytes} bytes are kept, and the next attempt resumes there.` : '';
  return new RdError('ERR_CONNECTION', `could not download ${url}: ${reason}`, {
    cause,
    advice: `Check the URL and the network, and try again.${kept}`,
  });
}

/** Advice for programmers that Bun adds to its errors. */
const FOR_PROGRAMMERS = / (?:For more information, pass `verbose: true`.*|Is the computer able to access the url\?)$/;

/** Describes the failure of a fetch: in Node the system error is the cause of "fetch failed". */
export function fetchFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'AbortError' || error.name === 'TimeoutError') return 'the server sent nothing for too long';
  const { message } = error.cause instanceof Error && error.cause.message !== '' ? error.cause : error;
  return message.replace(FOR_PROGRAMMERS, '');
}
