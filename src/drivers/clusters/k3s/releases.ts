import semver from 'semver';
import { RdError } from '../../../errors.ts';
import { hasShape, isObject, parseJson } from '../../../json.ts';
import { readIfThere, writeFileAtomic } from '../../../os/atomic-file.ts';
import { type Fetch, fetchText } from '../../../os/fetch-text.ts';

/** A release of k3s: a version of Kubernetes, and a build of it. */
export interface K3sVersion {
  /** As released: `v1.33.6+k3s1`. */
  text: string;
  /** As in settings: `1.33.6`. */
  version: string;
  build: number;
}

/** The oldest supported version, as in docs/kubernetes.md. */
const OLDEST = '1.25.3';

const RELEASE = /^v?(\d{1,5}\.\d{1,5}\.\d{1,5})\+k3s(\d{1,5})$/;

/** Parses a release of k3s; undefined for anything else, such as a pre-release (`v1.33.0-rc1+k3s1`). */
export function parseK3s(text: string): K3sVersion | undefined {
  const [, version = '', digits] = RELEASE.exec(text) ?? [];
  if (semver.valid(version) === null) return undefined;
  const build = Number(digits);
  return { text: `v${version}+k3s${build}`, version, build };
}

/** Compares by version, then by build; negative if `a` is older. */
export function compareK3s(a: K3sVersion, b: K3sVersion): number {
  return semver.compare(a.version, b.version) || a.build - b.build;
}

/** Sorts releases, newest first; keeps only the newest build of each version, and leaves out unsupported ones. */
export function newestFirst(releases: readonly K3sVersion[]): K3sVersion[] {
  const sorted = releases.filter(({ version }) => semver.gte(version, OLDEST)).sort((a, b) => compareK3s(b, a));
  return sorted.filter((release, index) => sorted[index - 1]?.version !== release.version);
}

export interface ReleasesInput {
  /** Address of the channel list. */
  url: string;
  /** File that caches the list between services. */
  cacheFile: string;
  fetch: Fetch;
  /** Milliseconds since 1970. */
  now(): number;
}

interface KnownReleases {
  /** Newest first; one for each version. */
  releases: readonly K3sVersion[];
  /** The reason that the server's list could not be used; the releases are then those of an earlier list and the built-in ones. */
  failure?: RdError;
}

/** The releases of k3s. */
export interface Releases {
  /** Returns the known releases. Never throws for an unreachable server, but falls back to earlier lists. `limitMs`: timeout for the server. */
  known(limitMs: number, signal: AbortSignal): Promise<KnownReleases>;
  /**
   * Returns the newest build of a version. `kept`: releases that can be installed without the network, whatever the
   * list says.
   * @throws RdError `ERR_DRIVER_TERMINAL` when there is none, with those available.
   */
  find(version: string, kept: readonly K3sVersion[], limitMs: number, signal: AbortSignal): Promise<K3sVersion>;
}

const FRESH_MS = 60 * 60_000;
const MAX_BYTES = 1024 * 1024;
const CACHE_FORMAT = 1;

interface Cached {
  formatVersion: number;
  at: number;
  url: string;
  /** Every release in any list so far: none is ever withdrawn. */
  releases: readonly string[];
}

export function k3sReleases({ url, cacheFile, fetch, now }: ReleasesInput): Releases {
  async function known(limitMs: number, signal: AbortSignal): Promise<KnownReleases> {
    const cached = await readCache(cacheFile, url);
    const age = cached ? now() - cached.at : Number.POSITIVE_INFINITY;
    // After the clock was set back the age is meaningless.
    if (cached && age >= 0 && age < FRESH_MS) return { releases: withShipped(cached.releases) };
    try {
      const releases = [...new Set([...(await fetchList(limitMs, signal)), ...(cached?.releases ?? [])])];
      const value: Cached = { formatVersion: CACHE_FORMAT, at: now(), url, releases };
      // Best effort: without a cache the list is fetched again.
      await writeFileAtomic(cacheFile, `${JSON.stringify(value, undefined, 2)}\n`).catch(() => undefined);
      return { releases: withShipped(releases) };
    } catch (failure) {
      if (!(failure instanceof RdError)) throw failure;
      return { releases: withShipped(cached?.releases ?? []), failure };
    }
  }

  async function fetchList(limitMs: number, signal: AbortSignal): Promise<string[]> {
    const text = await fetchText({ url, fetch, limitMs, maxBytes: MAX_BYTES, signal });
    const releases = channelReleases(parseJson(text));
    // The cached list is better than one without a single readable entry.
    if (releases.length > 0) return releases;
    throw new RdError('ERR_CONNECTION', `${url} did not return a list of k3s channels`, {
      advice: 'A network that requires a login responds like this; open the address in a browser.',
    });
  }

  return {
    known,
    async find(version, kept, limitMs, signal) {
      const { releases: listed, failure } = await known(limitMs, signal);
      const releases = newestFirst([...listed, ...kept]);
      const match = releases.find((release) => release.version === version);
      if (match) return match;
      const limits = failure ? ' among the known ones, and the list of releases could not be fetched' : '';
      const newest = releases.slice(0, 8).map((release) => release.version);
      throw new RdError('ERR_DRIVER_TERMINAL', `there is no release of k3s for "${version}"${limits}`, {
        ...(failure ? { cause: failure, details: [failure.message] } : {}),
        advice: `Set kubernetes.version to one of ${newest.join(', ')}.`,
      });
    },
  };
}

function withShipped(texts: readonly string[]): K3sVersion[] {
  return newestFirst([...texts, ...SHIPPED_RELEASES].flatMap((text) => parseK3s(text) ?? []));
}

/** Reads the cached list, ignoring one of another server, and a damaged one. */
async function readCache(file: string, url: string): Promise<Cached | undefined> {
  const value = parseJson((await readIfThere(file).catch(() => undefined)) ?? '');
  const isOurs = hasShape<Cached>(value, { formatVersion: 0, at: 0, url: '', releases: [] });
  return isOurs && value.formatVersion === CACHE_FORMAT && value.url === url ? value : undefined;
}

/**
 * Built-in releases, for a first start without the network: the last release of each minor version, as named in public repositories in
 * November 2025. Nothing is installed because of this list alone: digests come from the server with the files.
 */
export const SHIPPED_RELEASES: readonly string[] = [
  'v1.34.2+k3s1',
  'v1.33.6+k3s1',
  'v1.32.10+k3s1',
  'v1.31.14+k3s1',
  'v1.30.14+k3s1',
  'v1.29.15+k3s1',
  'v1.28.15+k3s1',
  'v1.27.16+k3s1',
];

/**
 * Returns the newest release of each channel in a channel list, https://update.k3s.io/v1-release/channels. Skips unknown entries, because its format
 * has changed before: entries without a release, pre-releases, type names. Empty for anything else, such as a captive portal's login page.
 */
export function channelReleases(value: unknown): string[] {
  const entries = isObject(value) && Array.isArray(value.data) ? value.data : [];
  return entries.flatMap((entry) => {
    const release = isObject(entry) && typeof entry.latest === 'string' ? parseK3s(entry.latest) : undefined;
    return release ? [release.text] : [];
  });
}
