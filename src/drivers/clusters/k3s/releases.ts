import { RdError } from '../../../errors.ts';
import { isObject, parseJson } from '../../../json.ts';
import { readIfThere, writeFileAtomic } from '../../../os/atomic-file.ts';
import { type Fetch, smallText } from './sources.ts';

/** A release of k3s: a version of Kubernetes, and which build of it. */
export interface K3sVersion {
  /** As released: `v1.33.6+k3s1`. */
  text: string;
  /** As in settings: `1.33.6`. */
  version: string;
  /** `1.33` */
  minor: string;
  numbers: readonly [major: number, minor: number, patch: number, build: number];
}

/** The oldest supported version, as in docs/kubernetes.md. */
const OLDEST = '1.25.3';

const RELEASE = /^v?(\d{1,5})\.(\d{1,5})\.(\d{1,5})\+k3s(\d{1,5})$/;
const PLAIN = /^v?(\d{1,5})\.(\d{1,5})\.(\d{1,5})$/;

/** A release of k3s; undefined for anything else, such as a pre-release (`v1.33.0-rc1+k3s1`). */
export function parseK3s(text: string): K3sVersion | undefined {
  const match = RELEASE.exec(text);
  if (!match) return undefined;
  const [major = 0, minor = 0, patch = 0, build = 0] = match.slice(1).map(Number);
  const version = `${major}.${minor}.${patch}`;
  return {
    text: `v${version}+k3s${build}`,
    version,
    minor: `${major}.${minor}`,
    numbers: [major, minor, patch, build],
  };
}

/** `1.33.6` for `v1.33.6` and `1.33.6`; undefined for anything else. */
export function plainVersion(text: string): string | undefined {
  const match = PLAIN.exec(text);
  return match ? match.slice(1).map(Number).join('.') : undefined;
}

/** By version, then by build; negative where `a` is the older one. */
export function compareK3s(a: K3sVersion, b: K3sVersion): number {
  for (const [index, number] of a.numbers.entries()) {
    const difference = number - (b.numbers[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Whether it is supported. */
export function isSupported(release: K3sVersion): boolean {
  const oldest = parseK3s(`v${OLDEST}+k3s0`);
  return oldest !== undefined && compareK3s(release, oldest) >= 0;
}

/** Newest first; only the newest build of each version; unsupported ones left out. */
export function newestFirst(releases: readonly K3sVersion[]): K3sVersion[] {
  const sorted = releases.filter(isSupported).sort((a, b) => compareK3s(b, a));
  return sorted.filter((release, index) => sorted[index - 1]?.version !== release.version);
}

export interface ReleasesInput {
  /** Address of the channel list. */
  url: string;
  /** Where the list is cached between services. */
  cacheFile: string;
  fetch: Fetch;
  /** Milliseconds since 1970. */
  now(): number;
}

/** The known releases. */
interface KnownReleases {
  /** Newest first; one for each version. */
  releases: readonly K3sVersion[];
  channels: Channels;
  /** Source of the channels: `server` now, or within the last hour; `cache`: an earlier list; `shipped`: the built-in one. */
  source: 'server' | 'cache' | 'shipped';
  /** Why the server could not be used. */
  failure?: RdError;
}

/** The releases of k3s. */
export interface Releases {
  /** Never throws for an unreachable server: falls back to the known releases. `limitMs`: timeout for the server. */
  known(limitMs: number, signal: AbortSignal): Promise<KnownReleases>;
  /**
   * The release of a version (`1.33.6`: its newest build), of an exact release (`v1.33.6+k3s1`) or of a channel (`stable`, `1.33`).
   * @throws RdError `ERR_DRIVER_TERMINAL` when there is none, with those available.
   */
  find(wanted: string, limitMs: number, signal: AbortSignal): Promise<K3sVersion>;
}

const FRESH_MS = 60 * 60_000;
const MAX_BYTES = 1024 * 1024;
const CACHE_FORMAT = 1;

interface Cached {
  at: number;
  url: string;
  channels: Channels;
  /** Every release in any list so far: none is ever withdrawn. */
  releases: readonly string[];
}

export function k3sReleases({ url, cacheFile, fetch, now }: ReleasesInput): Releases {
  async function known(limitMs: number, signal: AbortSignal): Promise<KnownReleases> {
    const cached = await readCache(cacheFile, url);
    const age = cached ? now() - cached.at : Number.POSITIVE_INFINITY;
    // After the clock was set back the age is meaningless.
    if (cached && age >= 0 && age < FRESH_MS) return view(cached.channels, cached.releases, 'server');
    try {
      const channels = await ask(limitMs, signal);
      const releases = [...new Set([...channels.values(), ...(cached?.releases ?? [])])];
      // Best effort: without a cache the list is fetched again.
      await writeFileAtomic(cacheFile, cacheText({ at: now(), url, channels, releases })).catch(() => undefined);
      return view(channels, releases, 'server');
    } catch (error) {
      if (!(error instanceof RdError)) throw error;
      const found = cached
        ? view(cached.channels, cached.releases, 'cache')
        : view(new Map(Object.entries(SHIPPED_CHANNELS)), [], 'shipped');
      return { ...found, failure: error };
    }
  }

  async function ask(limitMs: number, signal: AbortSignal): Promise<Channels> {
    const text = await smallText({ url, fetch, limitMs, mostBytes: MAX_BYTES, signal });
    const channels = readChannels(parseJson(text));
    if (channels) return channels;
    throw new RdError('ERR_CONNECTION', `${url} answered with something that is no list of channels of k3s`, {
      advice: 'A network that wants a login answers like that; open the address in a browser.',
    });
  }

  return {
    known,
    async find(wanted, limitMs, signal) {
      const exact = parseK3s(wanted);
      if (exact) return supported(exact);
      const list = await known(limitMs, signal);
      const found = byVersion(list, wanted) ?? byChannel(list, wanted);
      if (found) return supported(found);
      throw unknownVersion(wanted, list);
    },
  };
}

function view(channels: Channels, releases: readonly string[], source: KnownReleases['source']): KnownReleases {
  const all = [...channels.values(), ...releases, ...SHIPPED_RELEASES].flatMap((text) => parseK3s(text) ?? []);
  return { releases: newestFirst(all), channels, source };
}

function byVersion({ releases }: KnownReleases, wanted: string): K3sVersion | undefined {
  const version = plainVersion(wanted);
  return version === undefined ? undefined : releases.find((release) => release.version === version);
}

function byChannel({ releases, channels }: KnownReleases, wanted: string): K3sVersion | undefined {
  const named = channels.get(wanted) ?? channels.get(`v${wanted}`);
  if (named !== undefined) return parseK3s(named);
  const minor = wanted.replace(/^v/, '');
  return releases.find((release) => release.minor === minor);
}

function supported(release: K3sVersion): K3sVersion {
  if (isSupported(release)) return release;
  throw new RdError(
    'ERR_DRIVER_TERMINAL',
    `Kubernetes ${release.version} is older than ${OLDEST}, the oldest supported`,
    {
      advice: `Set kubernetes.version to ${OLDEST} or a later one.`,
    },
  );
}

function unknownVersion(wanted: string, { releases, source, failure }: KnownReleases): RdError {
  const some = releases.slice(0, 8).map(({ version }) => version);
  const heard = source === 'server' ? '' : ' among those known here, and the list of releases could not be fetched';
  return new RdError('ERR_DRIVER_TERMINAL', `there is no release of k3s for "${wanted}"${heard}`, {
    ...(failure ? { cause: failure, details: [failure.message] } : {}),
    // Settings hold exact versions only; a channel is refused earlier.
    advice: `Set kubernetes.version to one of ${some.join(', ')}.`,
  });
}

function cacheText({ at, url, channels, releases }: Cached): string {
  const value = { formatVersion: CACHE_FORMAT, at, url, channels: Object.fromEntries(channels), releases };
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

/** Ignores a list of another server, and a damaged one. */
async function readCache(file: string, url: string): Promise<Cached | undefined> {
  const text = await readIfThere(file).catch(() => undefined);
  const value = text === undefined ? undefined : parseJson(text);
  if (!isObject(value) || value.formatVersion !== CACHE_FORMAT || value.url !== url) return undefined;
  const { at, channels, releases } = value;
  if (typeof at !== 'number' || !isObject(channels) || !Array.isArray(releases)) return undefined;
  const named = Object.entries(channels).flatMap(([name, text]): [string, string][] =>
    typeof text === 'string' && parseK3s(text) ? [[name, text]] : [],
  );
  return { at, url, channels: new Map(named), releases: releases.filter((text) => typeof text === 'string') };
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

/** Of that list. */
export const SHIPPED_CHANNELS: Readonly<Record<string, string>> = { stable: 'v1.33.6+k3s1', latest: 'v1.34.2+k3s1' };

/** Newest release of each channel, by channel name: `stable`, `latest`, `v1.33`. */
export type Channels = ReadonlyMap<string, string>;

/**
 * Parses a channel list, https://update.k3s.io/v1-release/channels. Skips what is unknown, because its format has changed before: entries
 * without a release, pre-releases, type names. Undefined for anything else, such as a captive portal's login page.
 */
export function readChannels(value: unknown): Channels | undefined {
  if (!isObject(value) || !Array.isArray(value.data)) return undefined;
  const channels = new Map<string, string>();
  for (const entry of value.data) {
    if (!isObject(entry) || typeof entry.latest !== 'string') continue;
    const name = typeof entry.name === 'string' ? entry.name : entry.id;
    const release = parseK3s(entry.latest);
    if (typeof name === 'string' && name !== '' && release) channels.set(name, release.text);
  }
  // A list without a single readable entry is invalid; the cached one is better.
  return channels.size > 0 ? channels : undefined;
}
