import { matchesGlob } from './glob.ts';
import type { Pattern } from './pattern.ts';
import { matchesPattern, matchesRepository, parsePattern } from './pattern.ts';
import type { ImageReference } from './reference.ts';
import { parseReference, withDefaultTag } from './reference.ts';
import { canonicalRegistry } from './registry-name.ts';
import { leadsTo } from './storage-hosts.ts';

/** The patterns of a list, read once. */
export interface AllowList {
  patterns: readonly string[];
  /** Patterns that can match nothing, each with the reason as a clause. */
  unusable: readonly { pattern: string; reason: string }[];
  /** A reference without tag and digest asks for every tag. */
  allows(reference: ImageReference): boolean;
  /** Whether some tag or digest of it is allowed. */
  allowsSomeOf(registry: string, repository: string): boolean;
  /** Whether anything of that registry is allowed. */
  names(registry: string): boolean;
  /** Whether a client with only allowed images to fetch may connect to `host[:port]`: coarser than all others. */
  reaches(host: string): boolean;
  /** Whether every image is: then an archive of unknown content is as well. */
  allowsEverything: boolean;
}

export function createAllowList(patterns: readonly string[]): AllowList {
  const parsed = patterns.map((text) => ({ text, ...parsePattern(text) }));
  const usable: Pattern[] = parsed.flatMap((entry) => ('pattern' in entry ? [entry.pattern] : []));
  const names = (registry: string) => usable.some((pattern) => matchesGlob(pattern.registry, registry));
  return {
    patterns: [...patterns],
    unusable: parsed.flatMap((entry) => ('unusable' in entry ? [{ pattern: entry.text, reason: entry.unusable }] : [])),
    allows: (reference) => usable.some((pattern) => matchesPattern(pattern, reference)),
    allowsSomeOf: (registry, repository) => usable.some((pattern) => matchesRepository(pattern, registry, repository)),
    names,
    reaches(host) {
      const registry = canonicalRegistry(host);
      return names(registry) || usable.some((pattern) => leadsTo(pattern.registry, registry));
    },
    allowsEverything: usable.some(
      ({ registry, parts, below, tag, digest }) =>
        registry === '*' && parts.length === 0 && below && tag === undefined && digest === undefined,
    ),
  };
}

/** Whether a list with these patterns lets that image through; `latest` where the name says nothing else. */
export function isAllowed(patterns: readonly string[], image: string): boolean {
  const reference = parseReference(image);
  return reference !== undefined && createAllowList(patterns).allows(withDefaultTag(reference));
}
