import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chmod, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { RdError } from '../../../errors.ts';
import { readIfThere, writeFileAtomic } from '../../../os/atomic-file.ts';
import { makeDirectory } from '../../../os/directory.ts';
import { download } from '../../../os/download.ts';
import { ioError } from '../../../os/io-error.ts';
import { type K3sVersion, parseK3s } from './releases.ts';
import { type Fetch, smallText } from './sources.ts';

/** Release file name. */
export type Architecture = 'amd64' | 'arm64' | 'armhf';

/** Files of a release on this host, verified against their digests. */
interface Artefacts {
  /** Mode 0755. */
  program: string;
  /** A tar archive, compressed with gzip, that every engine can load. */
  images: string;
}

/** Files of releases, kept for reuse. */
export interface ArtefactStore {
  /**
   * Verifies existing files and downloads only missing ones.
   * @throws RdError as `download`, and `ERR_DRIVER_TERMINAL` for a release without such files.
   */
  fetch(release: K3sVersion, architecture: Architecture, signal: AbortSignal): Promise<Artefacts>;
  /** Releases that need no download any more. */
  kept(architecture: Architecture): Promise<K3sVersion[]>;
}

export interface ArtefactsInput {
  /** Base URL with one directory per release. */
  url: string;
  /** The cache directory, with one directory per release. */
  directory: string;
  fetch: Fetch;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  onProgress?(file: string, bytes: number, total: number | undefined): void;
  stallMs?: number;
}

const SUMS_BYTES = 256 * 1024;
const SUMS_LIMIT_MS = 30_000;

/** Names of the files of a release, see https://github.com/k3s-io/k3s/releases. */
export function artefactNames(architecture: Architecture) {
  return {
    program: architecture === 'amd64' ? 'k3s' : `k3s-${architecture}`,
    images: `k3s-airgap-images-${architecture === 'armhf' ? 'arm' : architecture}.tar.gz`,
    sums: `sha256sum-${architecture === 'armhf' ? 'arm' : architecture}.txt`,
  };
}

/** By architecture of the host as Node names it, which the machine shares. */
export function architectureOf(processor: string): Architecture {
  if (processor === 'arm64') return 'arm64';
  return processor === 'arm' ? 'armhf' : 'amd64';
}

export function artefactStore(input: ArtefactsInput): ArtefactStore {
  const { url, directory } = input;
  const underWay = new Map<string, Promise<Artefacts>>();
  const homeOf = (release: K3sVersion) => join(directory, release.text);

  async function bring(release: K3sVersion, architecture: Architecture, signal: AbortSignal): Promise<Artefacts> {
    const home = homeOf(release);
    const names = artefactNames(architecture);
    const text = await sums(release, names.sums, signal);
    const wanted = [names.program, names.images].map((name) => ({ name, sum: sumIn(text, name) }));
    try {
      for (const { name, sum } of wanted) {
        if (sum === undefined) throw nameless(release, name, names.sums);
        await place(release, name, sum, signal);
      }
    } catch (error) {
      // A wrong digest list, local or remote, must not block retries.
      if (error instanceof RdError && error.code === 'ERR_DRIVER_TERMINAL')
        await rm(join(home, names.sums), { force: true });
      throw error;
    }
    await chmod(join(home, names.program), 0o755);
    return { program: join(home, names.program), images: join(home, names.images) };
  }

  /** The digest list is cached like everything else: a release never changes. */
  async function sums(release: K3sVersion, name: string, signal: AbortSignal): Promise<string> {
    const file = join(homeOf(release), name);
    const kept = await readIfThere(file);
    if (kept !== undefined) return kept;
    const from = {
      url: fileUrl(release, name),
      fetch: input.fetch,
      limitMs: SUMS_LIMIT_MS,
      mostBytes: SUMS_BYTES,
      signal,
    };
    const text = await smallText(from).catch((error: unknown) => {
      if (!(error instanceof RdError) || error.code !== 'ERR_NOT_FOUND') throw error;
      throw new RdError('ERR_DRIVER_TERMINAL', `there is no release ${release.text} of k3s: ${error.message}`, {
        cause: error,
        advice: 'Choose another kubernetes.version.',
      });
    });
    await writeFileAtomic(file, text);
    return text;
  }

  async function place(release: K3sVersion, name: string, sum: string, signal: AbortSignal): Promise<void> {
    const file = join(homeOf(release), name);
    if (await exists(file)) {
      if ((await sumOf(file, signal)) === sum) return;
      await rm(file, { force: true });
    }
    const from = fileUrl(release, name);
    const { onProgress } = input;
    const done = await download({
      url: from,
      sha256: sum,
      directory: join(directory, 'downloads'),
      fetch: input.fetch,
      sleep: input.sleep,
      ...(onProgress ? { onProgress: (bytes, total) => onProgress(name, bytes, total) } : {}),
      ...(input.stallMs === undefined ? {} : { stallMs: input.stallMs }),
      signal,
    });
    await makeDirectory(homeOf(release));
    await rename(done.path, file).catch((cause: unknown) => {
      throw ioError('write', file, cause);
    });
    await done.discard();
  }

  function nameless(release: K3sVersion, name: string, list: string): RdError {
    return new RdError('ERR_DRIVER_TERMINAL', `${release.text} has no file ${name}: ${list} does not name it`, {
      advice: `Choose another kubernetes.version, or look at ${fileUrl(release, list)}.`,
    });
  }

  function fileUrl(release: K3sVersion, name: string): string {
    return `${url}/${encodeURIComponent(release.text)}/${name}`;
  }

  return {
    async fetch(release, architecture, signal) {
      const key = `${release.text} ${architecture}`;
      for (;;) {
        const other = underWay.get(key);
        if (!other) break;
        // A waiter is unaffected by the cancellation of another caller, and takes over.
        const theirs = await other.catch((error: unknown) => {
          if (!(error instanceof RdError) || error.code !== 'ERR_CANCELLED') throw error;
        });
        if (theirs) return theirs;
        if (signal.aborted) throw new RdError('ERR_CANCELLED', `fetching ${release.text} was canceled`);
      }
      const own = bring(release, architecture, signal);
      underWay.set(key, own);
      try {
        return await own;
      } finally {
        underWay.delete(key);
      }
    },
    async kept(architecture) {
      const names = await readdir(directory).catch(() => []);
      const releases = names.flatMap((name) => parseK3s(name) ?? []);
      const whole = await Promise.all(
        releases.map(async (release) => {
          const files = Object.values(artefactNames(architecture)).map((name) => exists(join(homeOf(release), name)));
          return (await Promise.all(files)).every(Boolean);
        }),
      );
      return releases.filter((_, index) => whole[index]);
    },
  };
}

async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    (facts) => facts.isFile(),
    () => false,
  );
}

async function sumOf(file: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  try {
    await pipeline(createReadStream(file, { highWaterMark: 1 << 20 }), hash, { signal });
  } catch (cause) {
    if (signal.aborted) throw new RdError('ERR_CANCELLED', `reading ${file} was canceled`, { cause });
    throw ioError('read', file, cause);
  }
  return hash.digest('hex');
}

/**
 * The digest of a file in the output of `sha256sum`: 64 lowercase digits. Undefined when no line names exactly that file, or when two lines
 * disagree.
 */
export function sumIn(text: string, file: string): string | undefined {
  const sums = text.split('\n').flatMap((line) => {
    const match = /^([0-9a-fA-F]{64}) [ *](.+?)\r?$/.exec(line);
    return match?.[2] === file && match[1] !== undefined ? [match[1].toLowerCase()] : [];
  });
  return new Set(sums).size === 1 ? sums[0] : undefined;
}
