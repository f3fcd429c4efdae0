import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RdError } from '../../errors.ts';
import { defined } from '../../json.ts';
import { download } from '../../os/download.ts';
import { type Fetch, fetchText } from '../../os/fetch-text.ts';
import { ioError, systemCode } from '../../os/io-error.ts';
import { readRegular } from '../../os/regular-file.ts';
import { isThisComputer, withSafeRedirects } from '../../os/safe-redirects.ts';

/** A place of releases: `BASE/latest` names the newest one, and `BASE/VERSION/` has the files of each. */
export interface ReleaseSource {
  /** Name for people. */
  name: string;
  /**
   * Reads a small text of at most `maxBytes`.
   * @throws RdError `ERR_NOT_FOUND`, `ERR_CONNECTION`, `ERR_IO`, `ERR_CANCELLED`.
   */
  text(path: readonly string[], maxBytes: number): Promise<string>;
  /**
   * Makes the program of a release available on this disk. Its content is not to be trusted: the caller that copies it must compare the digest.
   * @throws RdError the errors of `download`, for an address.
   */
  program(path: readonly string[], sha256: string): Promise<{ path: string; discard(): Promise<void> }>;
}

/** Options for fetching releases. */
export interface SourceOptions {
  fetch: Fetch;
  /** Directory of partial downloads. */
  downloads: string;
  /** Reports the received bytes, and the total, if the server sends it. */
  onProgress(bytes: number, total: number | undefined): void;
  onRetry(reason: string): void;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  signal: AbortSignal;
  limits?: Limits;
}

/** Limits in milliseconds. */
interface Limits {
  textMs: number;
  programMs: number;
  programBytes: number;
}

const LIMITS: Limits = { textMs: 30_000, programMs: 3_600_000, programBytes: 2 ** 30 };

/**
 * Returns the releases at a base: an https address (http on this computer only), a `file:` address, or an absolute path.
 * @throws RdError `ERR_USAGE` for anything else.
 */
export function releaseSource(base: string, options: SourceOptions): ReleaseSource {
  const directory = directoryOf(base);
  return directory === undefined ? addressSource(addressOf(base), options) : directorySource(directory);
}

function directoryOf(base: string): string | undefined {
  if (/^(?:\/|[A-Za-z]:[\\/]|\\\\)/.test(base)) return base;
  if (!base.startsWith('file:')) return undefined;
  try {
    return fileURLToPath(base);
  } catch (cause) {
    throw wrongBase(base, 'it is not the address of a directory on this computer', cause);
  }
}

function addressOf(base: string): string {
  const url = URL.canParse(base) ? new URL(base) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) throw wrongBase(base, 'it is neither an address nor an absolute path');
  // Not quoted, because the value may contain a password.
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw wrongBase(url.host, 'an address must not have a user name, a password, a query or a fragment');
  }
  if (!isAllowed(url)) throw wrongBase(base, 'http is for this computer only');
  return url.href.replace(/\/+$/, '');
}

function isAllowed(url: URL): boolean {
  return url.protocol === 'https:' || (url.protocol === 'http:' && isThisComputer(url));
}

function wrongBase(base: string, why: string, cause?: unknown): RdError {
  return new RdError('ERR_USAGE', `${JSON.stringify(base)} is not a valid release URL: ${why}`, {
    ...defined({ cause }),
    advice: 'Give an https address, or the absolute path of a directory.',
  });
}

function addressSource(base: string, options: SourceOptions): ReleaseSource {
  const { fetch, downloads: directory, onProgress, onRetry, sleep, signal, limits = LIMITS } = options;
  const safeFetch = withSafeRedirects(fetch, isAllowed);
  const urlOf = (path: readonly string[]) => [base, ...path.map(encodeURIComponent)].join('/');
  return {
    name: base,
    text: (path, maxBytes) =>
      fetchText({ url: urlOf(path), fetch: safeFetch, limitMs: limits.textMs, maxBytes, signal }),
    async program(path, sha256) {
      const tooLong = AbortSignal.timeout(limits.programMs);
      const either = AbortSignal.any([signal, tooLong]);
      const url = urlOf(path);
      const maxBytes = limits.programBytes;
      const input = { url, sha256, directory, fetch: safeFetch, maxBytes, onProgress, onRetry, sleep, signal: either };
      return download(input).catch((cause: unknown) => {
        if (tooLong.aborted && !signal.aborted) {
          const minutes = Math.round(limits.programMs / 60_000);
          throw new RdError('ERR_CONNECTION', `${url} could not be downloaded in ${minutes} minutes`, {
            cause,
            advice: 'Try again: the next attempt resumes the download if the server allows it.',
          });
        }
        throw isUnfit(cause) ? refusedFile(cause) : cause;
      });
    },
  };
}

/** Whether `download` found another file, or one that is too large. */
function isUnfit(error: unknown): error is RdError {
  return error instanceof RdError && error.code === 'ERR_DRIVER_TERMINAL';
}

function refusedFile(cause: RdError): RdError {
  return new RdError('ERR_UPGRADE_REFUSED', cause.message, {
    cause,
    advice: 'Nothing was changed, and nothing of it was kept. Report it to the publisher of the release.',
  });
}

function directorySource(directory: string): ReleaseSource {
  return {
    name: directory,
    async text(path, maxBytes) {
      const file = join(directory, ...path);
      try {
        return (await readRegular(file, { follow: true, limit: maxBytes })).toString('utf8');
      } catch (cause) {
        throw ioError('read', file, cause, systemCode(cause) === 'ENOENT' ? 'ERR_NOT_FOUND' : 'ERR_IO');
      }
    },
    program: async (path) => ({ path: join(directory, ...path), discard: async () => undefined }),
  };
}
