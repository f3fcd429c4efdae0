import { RdError } from '../errors.ts';
import type { Fetch } from './fetch-text.ts';

const REDIRECTS = 5;
/** Option for the `fetch` of the standalone file's runtime, which uses the proxy variables even for this computer. */
const DIRECT = { proxy: false };

/** True if an address names this computer. */
export function isThisComputer({ hostname }: URL): boolean {
  return /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);
}

/** Follows redirects, even to other hosts, but never to an address that would not have been accepted itself. */
export function withSafeRedirects(fetch: Fetch, isAllowed: (url: URL) => boolean): Fetch {
  return async (url, init) => {
    let at = url;
    let headers = init.headers;
    for (let left = REDIRECTS; ; left -= 1) {
      const direct = isThisComputer(new URL(at)) ? DIRECT : {};
      const own = headers === undefined ? {} : { headers };
      const response = await fetch(at, { ...init, ...own, ...direct, redirect: 'manual' });
      const location = response.headers.get('location');
      if (response.status < 300 || response.status > 399 || location === null) return response;
      await response.body?.cancel();
      const next = URL.canParse(location, at) ? new URL(location, at) : undefined;
      if (!next || !isAllowed(next) || left === 0) {
        throw new RdError('ERR_CONNECTION', `${url} redirects to an address that is not accepted`, {
          details: [location],
          advice: 'Redirects must end at an https address.',
        });
      }
      if (next.origin !== new URL(at).origin) headers = withoutCredentials(headers);
      at = next.href;
    }
  };
}

/** Removes the credentials, which are for the first host, as `fetch` itself does. */
function withoutCredentials(headers: RequestInit['headers']): Headers {
  const kept = new Headers(headers);
  for (const name of ['authorization', 'cookie']) kept.delete(name);
  return kept;
}
