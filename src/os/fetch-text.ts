import { RdError } from '../errors.ts';
import { fetchFailure } from './download.ts';
import { bytesOf } from './stream-bytes.ts';

/** `fetch`, replaceable by tests. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

interface FetchTextInput {
  url: string;
  fetch: Fetch;
  limitMs: number;
  maxBytes: number;
  signal: AbortSignal;
}

/**
 * Fetches a small text, following redirects.
 * @throws RdError `ERR_NOT_FOUND` for 404 and 410, `ERR_CONNECTION` for every other failure, `ERR_CANCELLED`.
 */
export async function fetchText({ url, fetch, limitMs, maxBytes, signal }: FetchTextInput): Promise<string> {
  const timeout = AbortSignal.timeout(limitMs);
  try {
    const response = await fetch(url, { signal: AbortSignal.any([signal, timeout]), headers: { accept: '*/*' } });
    if (!response.ok) {
      await response.body?.cancel();
      const isMissing = response.status === 404 || response.status === 410;
      if (isMissing) throw new RdError('ERR_NOT_FOUND', `${url} was not found (HTTP ${response.status})`);
      throw new RdError('ERR_CONNECTION', `${url} returned HTTP ${response.status}`, { advice: 'Try again later.' });
    }
    return response.body ? (await bytesOf(response.body, maxBytes)).toString('utf8') : '';
  } catch (cause) {
    if (signal.aborted) throw new RdError('ERR_CANCELLED', `fetching ${url} was canceled`, { cause });
    if (cause instanceof RdError) throw cause;
    const reason = timeout.aborted ? `no response within ${limitMs / 1000} s` : fetchFailure(cause);
    throw new RdError('ERR_CONNECTION', `${url} could not be fetched: ${reason}`, {
      cause,
      advice: 'Check the network, and the proxy if there is one.',
    });
  }
}
