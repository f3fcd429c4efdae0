import { type AllowList, createAllowList, explainImage, explainRegistry } from '../../allowed-images/allow-list.ts';
import { defined, isObject, parseJson } from '../../json.ts';
import { canonicalRegistry, formatReference, isDigest } from '../../settings/image-reference.ts';
import type { RegistryRequest } from './registry-request.ts';

/** The active list, shared by all servers of one engine. */
export interface PullPolicy {
  list(): AllowList;
  /** True if a pattern names that registry; one that begins with `*` applies to unlisted registries. */
  isExplicit(registry: string): boolean;
  /** Calls back after each `set`; returns the function that unsubscribes. */
  onChange(listener: () => void): () => void;
  /** Remembers the digests in responses to allowed requests. */
  learn(registry: string, repository: string, digests: readonly string[]): void;
  /** Remembers the redirect of an allowed request: the same content at another URL. */
  learnRedirect(url: URL, origin: RedirectOrigin): void;
  /** Returns the request whose redirect led to a URL, or undefined. */
  redirectOrigin(url: URL): RedirectOrigin | undefined;
  /** True if allowed requests may require a connection to `host[:port]`. */
  reaches(host: string): boolean;
  /** Replaces the list; no later request is decided by the old one. */
  set(patterns: readonly string[]): void;
  /** Returns the reason for refusing a registry request, as sentences, or undefined if it is allowed. `registry` is canonical. */
  refusal(registry: string, request: RegistryRequest): string | undefined;
}

/** A redirected request of a client, with its canonical registry. */
interface RedirectOrigin {
  registry: string;
  apiRequest: RegistryRequest;
}

/** Creates a policy that allows nothing until the first `set`. */
export function pullPolicy(): PullPolicy {
  let list = createAllowList([]);
  const learned = learnedDigests();
  const redirects = new Map<string, RedirectOrigin>();
  const listeners = new Set<() => void>();
  return {
    list: () => list,
    isExplicit: (registry) =>
      createAllowList(list.patterns.filter((pattern) => !pattern.startsWith('*'))).names(registry),
    learn: (registry, repository, digests) => learned.add(formatReference({ registry, repository }), digests),
    learnRedirect(url, origin) {
      redirects.set(withoutFragment(url), origin);
      for (const oldest of redirects.keys()) {
        if (redirects.size <= MAX_REDIRECTS) break;
        redirects.delete(oldest);
      }
    },
    redirectOrigin: (url) => redirects.get(withoutFragment(url)),
    reaches(host) {
      const registry = canonicalRegistry(host);
      const redirected = () => [...redirects.keys()].some((url) => canonicalRegistry(new URL(url).host) === registry);
      return list.reaches(registry) || redirected();
    },
    set(patterns) {
      list = createAllowList(patterns);
      learned.forget();
      redirects.clear();
      for (const listener of [...listeners]) listener();
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    refusal(registry, request) {
      switch (request.wants) {
        case 'manifest': {
          const { repository, tag, digest } = request;
          const image = {
            registry,
            repository,
            ...defined({ tag, digest }),
          };
          const known = digest !== undefined && learned.has(formatReference({ registry, repository }), digest);
          return known || list.allows(image) ? undefined : explainImage(image, list.patterns);
        }
        case 'content': {
          const image = { registry, repository: request.repository };
          return list.allowsSomeOf(registry, request.repository) ? undefined : explainImage(image, list.patterns);
        }
        case 'unclear':
          return `the URL is not in canonical form, so the request could be for an image that is not allowed`;
        case 'other':
        case 'unknown':
          return list.reaches(registry) ? undefined : explainRegistry(registry, list.patterns);
      }
    },
  };
}

/** Maximum number of remembered redirects, which clients follow at once; the oldest go first. */
const MAX_REDIRECTS = 1_000;

function withoutFragment({ href, hash }: URL): string {
  return href.slice(0, href.length - hash.length);
}

/** Maximum number of remembered manifests; the oldest go first. */
const MAX_MANIFESTS = 10_000;

/**
 * Remembers digests found in allowed responses. A client requests `busybox:1.36`, gets a digest, and requests that: without this memory a pattern
 * with a tag would never let an image through.
 */
export function learnedDigests() {
  const known = new Set<string>();
  const key = (repository: string, digest: string) => `${repository}@${digest}`;
  return {
    has: (repository: string, digest: string) => known.has(key(repository, digest)),
    add(repository: string, digests: readonly string[]) {
      for (const digest of digests) known.add(key(repository, digest));
      for (const oldest of known) {
        if (known.size <= MAX_MANIFESTS) break;
        known.delete(oldest);
      }
    },
    /** When the patterns change, everything has to be allowed anew. */
    forget: () => known.clear(),
  };
}

/** Returns the digests of the manifests in an index (one per platform); none for anything else. */
export function digestsOfIndex(body: string): string[] {
  const value = parseJson(body);
  if (!isObject(value) || !Array.isArray(value.manifests)) return [];
  return value.manifests.flatMap((entry) =>
    isObject(entry) && typeof entry.digest === 'string' && isDigest(entry.digest) ? [entry.digest] : [],
  );
}
