import { RdError } from '../../../errors.ts';

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

interface SmallTextInput {
  url: string;
  fetch: Fetch;
  limitMs: number;
  mostBytes: number;
  signal: AbortSignal;
}

/**
 * Fetches a small text, following redirects.
 * @throws RdError `ERR_NOT_FOUND` for 404 and 410, `ERR_CONNECTION` for every other failure, `ERR_CANCELLED`.
 */
export async function smallText({ url, fetch, limitMs, mostBytes, signal }: SmallTextInput): Promise<string> {
  const late = AbortSignal.timeout(limitMs);
  try {
    const response = await fetch(url, { signal: AbortSignal.any([signal, late]), headers: { accept: '*/*' } });
    if (!response.ok) {
      await response.body?.cancel();
      throw answered(url, response.status);
    }
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of response.body ?? []) {
      size += chunk.length;
      if (size > mostBytes) throw new Error(`the response is larger than ${mostBytes} bytes`);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString('utf8');
  } catch (cause) {
    if (signal.aborted) throw new RdError('ERR_CANCELLED', `fetching ${url} was canceled`, { cause });
    if (cause instanceof RdError) throw cause;
    throw new RdError('ERR_CONNECTION', `${url} could not be fetched: ${reasonOf(cause, late.aborted, limitMs)}`, {
      cause,
      advice: 'Check the network, and the proxy if there is one.',
    });
  }
}

function answered(url: string, status: number): RdError {
  if (status === 404 || status === 410) return new RdError('ERR_NOT_FOUND', `${url} was not found (HTTP ${status})`);
  return new RdError('ERR_CONNECTION', `${url} returned HTTP ${status}`, { advice: 'Try again later.' });
}

/** The system error is the cause of "fetch failed". */
function reasonOf(error: unknown, late: boolean, limitMs: number): string {
  if (late) return `no response within ${limitMs / 1000} s`;
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error && error.cause.message !== '' ? error.cause.message : error.message;
}
