import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chmod, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { RdError } from '../../../errors.ts';
import { readIfThere, writeFileAtomic } from '../../../os/atomic-file.ts';
import { makeDirectory } from '../../../os/directory.ts';
import { download } from '../../../os/download.ts';
import { type Fetch, fetchText } from '../../../os/fetch-text.ts';
import { ioError } from '../../../os/io-error.ts';
import { type K3sVersion, parseK3s } from './releases.ts';

/** The spelling used in the names of release files. */
export type Architecture = 'amd64' | 'arm64';

/** The architecture of this host, and of its machine. */
export const HOST_ARCHITECTURE: Architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';

/** Files of a release on this host, verified against their digests. */
interface Artifacts {
  /** Mode 0755. */
  program: string;
  /** A tar archive, compressed with gzip, that every engine can load. */
  images: string;
}

/** Files of releases, kept for reuse. */
export interface ArtifactStore {
  /**
   * Verifies existing files and downloads only missing ones.
   * @throws RdError with the errors of `download`, and `ERR_DRIVER_TERMINAL` for a release without such files.
   */
  fetch(release: K3sVersion, architecture: Architecture, signal: AbortSignal): Promise<Artifacts>;
  /** Lists the releases that are already downloaded. */
  kept(architecture: Architecture): Promise<K3sVersion[]>;
}

export interface ArtifactsInput {
  /** Base URL with one directory per release. */
  url: string;
  /** The cache directory, with one directory per release. */
  directory: string;
  fetch: Fetch;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

const SUMS_BYTES = 256 * 1024;
const SUMS_LIMIT_MS = 30_000;

/** Returns the names of the files of a release, see https://github.com/k3s-io/k3s/releases. */
export function artifactNames(architecture: Architecture) {
  return {
    program: architecture === 'amd64' ? 'k3s' : `k3s-${architecture}`,
    images: `k3s-airgap-images-${architecture}.tar.gz`,
    sums: `sha256sum-${architecture}.txt`,
  };
}

export function artifactStore({ url, directory, fetch, sleep }: ArtifactsInput): ArtifactStore {
  const directoryOf = (release: K3sVersion) => join(directory, release.text);
  const urlOf = (release: K3sVersion, name: string) => `${url}/${encodeURIComponent(release.text)}/${name}`;

  /** Reads the digest list, cached because a release never changes. */
  async function readSums(release: K3sVersion, name: string, signal: AbortSignal): Promise<string> {
    const file = join(directoryOf(release), name);
    const cached = await readIfThere(file);
    if (cached !== undefined) return cached;
    const source = { url: urlOf(release, name), fetch, limitMs: SUMS_LIMIT_MS, maxBytes: SUMS_BYTES, signal };
    const text = await fetchText(source).catch((error: unknown) => {
      if (!(error instanceof RdError) || error.code !== 'ERR_NOT_FOUND') throw error;
      throw new RdError('ERR_DRIVER_TERMINAL', `there is no release ${release.text} of k3s: ${error.message}`, {
        cause: error,
        advice: 'Choose another kubernetes.version.',
      });
    });
    await writeFileAtomic(file, text);
    return text;
  }

  async function ensureFile(release: K3sVersion, name: string, sha256: string, signal: AbortSignal): Promise<void> {
    const file = join(directoryOf(release), name);
    if (await exists(file)) {
      if ((await sumOf(file, signal)) === sha256) return;
      await rm(file, { force: true });
    }
    const downloads = join(directory, 'downloads');
    const done = await download({ url: urlOf(release, name), sha256, directory: downloads, fetch, sleep, signal });
    await makeDirectory(directoryOf(release));
    await rename(done.path, file).catch((cause: unknown) => {
      throw ioError('write', file, cause);
    });
    await done.discard();
  }

  return {
    async fetch(release, architecture, signal) {
      const { program, images, sums } = artifactNames(architecture);
      const text = await readSums(release, sums, signal);
      try {
        for (const name of [program, images]) {
          const sum = sumIn(text, name);
          if (sum === undefined) {
            throw new RdError('ERR_DRIVER_TERMINAL', `${release.text} has no file ${name}: ${sums} does not name it`, {
              advice: `Choose another kubernetes.version, or look at ${urlOf(release, sums)}.`,
            });
          }
          await ensureFile(release, name, sum, signal);
        }
      } catch (error) {
        // A wrong digest list, local or remote, must not block retries.
        if (error instanceof RdError && error.code === 'ERR_DRIVER_TERMINAL')
          await rm(join(directoryOf(release), sums), { force: true });
        throw error;
      }
      const home = directoryOf(release);
      await chmod(join(home, program), 0o755);
      return { program: join(home, program), images: join(home, images) };
    },
    async kept(architecture) {
      const names = (await readdir(directory).catch(() => [])).sort();
      const kept: K3sVersion[] = [];
      for (const release of names.flatMap((name) => parseK3s(name) ?? [])) {
        const files = Object.values(artifactNames(architecture)).map((name) => join(directoryOf(release), name));
        if ((await Promise.all(files.map(exists))).every(Boolean)) kept.push(release);
      }
      return kept;
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
 * Returns the digest of a file in the output of `sha256sum`: 64 lowercase digits. Undefined when no line names exactly that file, or when two lines
 * disagree.
 */
export function sumIn(text: string, file: string): string | undefined {
  const sums = text.split('\n').flatMap((line) => {
    const match = /^([0-9a-fA-F]{64}) [ *](.+?)\r?$/.exec(line);
    return match?.[2] === file && match[1] !== undefined ? [match[1].toLowerCase()] : [];
  });
  return new Set(sums).size === 1 ? sums[0] : undefined;
}
