import { messageOf, RdError } from '../../errors.ts';
import { isObject } from '../../json.ts';
import { fetchFailure } from '../../os/download.ts';
import { isThisComputer, withSafeRedirects } from '../../os/safe-redirects.ts';
import { bytesOf } from '../../os/stream-bytes.ts';
import type { ExtensionImage } from '../../settings/extension-image.ts';
import { isImageTag, registryOrigin } from '../../settings/image-reference.ts';

/** The signature of `fetch`, which tests replace. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Timeout and size limit of one response, and the number of pages of one list. */
const ANSWER_MS = 20_000;
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_PAGES = 50;
/** Maximum number of tags. */
const MAX_TAGS = 10_000;

/**
 * Fetches the tags of a repository from its registry: over HTTPS without credentials (with an anonymous token if required), or over plain HTTP from a
 * registry on the loopback.
 * Throws `ERR_NOT_FOUND` for an unknown repository, `ERR_CONNECTION` when it does not respond as a registry, `ERR_CANCELLED`.
 */
export async function registryTags(image: ExtensionImage, signal: AbortSignal, anyFetch: Fetch): Promise<string[]> {
  const base = registryOrigin(image.registry);
  const isAllowed = addressesFrom(new URL(base));
  const fetch = withSafeRedirects(anyFetch, isAllowed);
  const tags: string[] = [];
  let token: string | undefined;
  let next: URL | undefined = new URL(`${base}/v2/${image.repository}/tags/list`);
  for (let page = 0; next && page < MAX_PAGES && tags.length < MAX_TAGS; page += 1) {
    let response = await request(next, token, signal, fetch);
    if (response.status === 401 && token === undefined) {
      token = await publicToken(response, image, isAllowed, signal, fetch);
      response = await request(next, token, signal, fetch);
    }
    if (response.status !== 200) throw unexpectedStatus(image, response.status);
    const { tags: some } = await objectOf(response, image);
    if (Array.isArray(some)) tags.push(...tagsIn(some, MAX_TAGS - tags.length));
    next = nextPage(response, next);
  }
  return tags;
}

/** Returns at most `limit` tags; skips invalid ones. */
function tagsIn(list: readonly unknown[], limit: number): string[] {
  return list
    .filter((tag) => typeof tag === 'string')
    .filter(isImageTag)
    .slice(0, limit);
}

async function request(url: URL, token: string | undefined, signal: AbortSignal, fetch: Fetch): Promise<Response> {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  try {
    return await fetch(url.href, { headers, signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]) });
  } catch (cause) {
    throw unreachable(url, cause, signal);
  }
}

/**
 * Returns a check of addresses to which a registry may redirect: not from HTTPS to plaintext, and not from elsewhere to the servers of this computer,
 * which trust those who reach them.
 */
function addressesFrom(base: URL): (url: URL) => boolean {
  if (isThisComputer(base)) return ({ protocol }) => protocol === 'https:' || protocol === 'http:';
  return (url) => url.protocol === 'https:' && !LOCAL.test(url.hostname);
}

/** Matches hosts that are this computer under any name, as `URL` writes them. */
const LOCAL =
  /^(?:(?:.+\.)?localhost\.?|127(?:\.\d+){3}|0\.0\.0\.0|\[::1?\]|\[::ffff:(?:7f[0-9a-f]{2}:[0-9a-f]{1,4}|0:0)\])$/;

/** Fetches an anonymous token for the challenge of a registry: `WWW-Authenticate: Bearer realm="…",service="…",scope="…"`. */
async function publicToken(
  response: Response,
  image: ExtensionImage,
  isAllowed: (url: URL) => boolean,
  signal: AbortSignal,
  fetch: Fetch,
): Promise<string> {
  const challenge = response.headers.get('www-authenticate') ?? '';
  const words = new Map([...challenge.matchAll(/([a-z]+)="([^"]*)"/gi)].map(([, name, value]) => [name, value]));
  const realm = words.get('realm');
  if (!/^bearer /i.test(challenge) || realm === undefined || !URL.canParse(realm)) throw unexpectedStatus(image, 401);
  const url = new URL(realm);
  if (!isAllowed(url)) throw unexpectedStatus(image, 401);
  const service = words.get('service');
  if (service !== undefined) url.searchParams.set('service', service);
  url.searchParams.set('scope', `repository:${image.repository}:pull`);
  const answer = await request(url, undefined, signal, fetch);
  if (answer.status !== 200) throw unexpectedStatus(image, answer.status);
  const { token, access_token: other } = await objectOf(answer, image);
  if (typeof token === 'string') return token;
  if (typeof other === 'string') return other;
  throw unexpectedStatus(image, 401);
}

async function objectOf(response: Response, { registry }: ExtensionImage): Promise<Record<string, unknown>> {
  try {
    const body = response.body ? await bytesOf(response.body, MAX_BYTES) : '';
    const value: unknown = JSON.parse(body.toString());
    if (isObject(value)) return value;
    throw new Error('it is not an object');
  } catch (cause) {
    const text = messageOf(cause);
    throw new RdError('ERR_CONNECTION', `the registry ${registry} did not return a list of tags: ${text}`, {
      cause,
    });
  }
}

/** Returns the `next` of a `Link` header, on the same server only. */
function nextPage(response: Response, current: URL): URL | undefined {
  const target = /<([^>]+)>\s*;\s*rel="?next"?/.exec(response.headers.get('link') ?? '')?.[1];
  if (target === undefined || !URL.canParse(target, current.href)) return undefined;
  const next = new URL(target, current);
  return next.origin === current.origin ? next : undefined;
}

function unexpectedStatus({ registry, repository }: ExtensionImage, status: number): RdError {
  if (status === 404) return new RdError('ERR_NOT_FOUND', `the registry ${registry} has no ${repository}`);
  const why =
    status === 401 || status === 403 ? `does not allow anonymous access to ${repository}` : `answered ${status}`;
  return new RdError('ERR_CONNECTION', `the registry ${registry} ${why}`);
}

function unreachable(url: URL, cause: unknown, signal: AbortSignal): RdError {
  if (signal.aborted) return new RdError('ERR_CANCELLED', 'listing the tags of an image was canceled', { cause });
  const reason = fetchFailure(cause);
  return new RdError('ERR_CONNECTION', `the registry at ${url.host} cannot be reached: ${reason}`, { cause });
}
