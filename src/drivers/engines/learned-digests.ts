import { isObject } from '../../json.ts';
import { isDigest } from '../../settings/image-reference.ts';

/** Number of remembered manifests; the oldest go first. */
const MAX_MANIFESTS = 10_000;
/** An index or manifest is small; the OCI distribution specification requires servers to accept no more than 4 MiB. */
export const MAX_MANIFEST = 4 * 1024 * 1024;

/**
 * Digests found in allowed responses. A client requests `busybox:1.36`, gets a digest, and requests that: without this memory a pattern
 * with a tag would never let an image through.
 */
export interface LearnedDigests {
  has(repository: string, digest: string): boolean;
  add(repository: string, digests: readonly string[]): void;
  /** When the patterns change, everything has to be allowed anew. */
  forget(): void;
}

export function learnedDigests(): LearnedDigests {
  const known = new Set<string>();
  const key = (repository: string, digest: string) => `${repository}@${digest}`;
  return {
    has: (repository, digest) => known.has(key(repository, digest)),
    add(repository, digests) {
      for (const digest of digests) known.add(key(repository, digest));
      for (const oldest of known) {
        if (known.size <= MAX_MANIFESTS) break;
        known.delete(oldest);
      }
    },
    forget: () => known.clear(),
  };
}

/** Digests of the manifests in an index (one per platform); none for anything else. */
export function digestsOfIndex(body: string): string[] {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return [];
  }
  if (!isObject(value) || !Array.isArray(value.manifests)) return [];
  return value.manifests.flatMap((entry) =>
    isObject(entry) && typeof entry.digest === 'string' && isDigest(entry.digest) ? [entry.digest] : [],
  );
}
