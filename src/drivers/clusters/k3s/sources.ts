import { RdError } from '../../../errors.ts';
import { fetchFailure } from '../../../os/download.ts';
import { bytesOf } from '../../../os/stream-bytes.ts';

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Where releases of k3s come from; without a trailing slash. */
export interface K3sSources {
  /** The list of channels. */
  channels: string;
  /** Base URL with one directory per release. */
  releases: string;
}

const CHANNELS = 'https://update.k3s.io/v1-release/channels';
const RELEASES = 'https://github.com/k3s-io/k3s/releases/download';

/**
 * `RDCTL_K3S_CHANNELS_URL` and `RDCTL_K3S_RELEASES_URL`, else the official sources of k3s.
 * @throws RdError `ERR_USAGE` for a value that is not an HTTP URL.
 */
export function k3sSources(env: Readonly<Record<string, string | undefined>>): K3sSources {
  return {
    channels: address(env, 'RDCTL_K3S_CHANNELS_URL', CHANNELS),
    releases: address(env, 'RDCTL_K3S_RELEASES_URL', RELEASES),
  };
}

function address(env: Readonly<Record<string, string | undefined>>, name: string, usual: string): string {
  const value = env[name];
  if (value === undefined || value === '') return usual;
  const url = URL.canParse(value) ? new URL(value) : undefined;
  // The value may contain a password.
  if (!url || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '') {
    throw new RdError('ERR_USAGE', `${name} is not an http or https URL without a query`, {
      advice: `Correct it, or unset it to use ${usual}.`,
    });
  }
  return value.replace(/\/+$/, '');
}

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
