import {
  canonicalRegistry,
  formatReference,
  type ImageReference,
  parseReference,
  withDefaultTag,
} from '../settings/image-reference.ts';
import { matchesGlob, matchesPattern, matchesRepository, type Pattern, parsePattern } from './pattern.ts';

/** The parsed patterns of an allow list. */
export interface AllowList {
  patterns: readonly string[];
  /** Patterns that match nothing, each with the reason as a clause. */
  unusable: readonly { pattern: string; reason: string }[];
  /** True if the image is allowed. A reference without tag and digest means every tag. */
  allows(reference: ImageReference): boolean;
  /** True if some tag or digest of the repository is allowed. */
  allowsSomeOf(registry: string, repository: string): boolean;
  /** True if anything in that registry is allowed. */
  names(registry: string): boolean;
  /** True if pulling allowed images may require a connection to `host[:port]`. Coarser than the other checks. */
  reaches(host: string): boolean;
  /** Every image is allowed, and therefore also an archive of unknown content. */
  allowsEverything: boolean;
  /** Characters of the patterns that every image has to be compared with, because no name can index them. */
  effort: number;
}

export function createAllowList(patterns: readonly string[]): AllowList {
  const parsed = patterns.map((text) => ({ text, ...parsePattern(text) }));
  const usable: Pattern[] = parsed.flatMap((entry) => ('pattern' in entry ? [entry.pattern] : []));
  const index = indexPatterns(usable);
  const names = (registry: string) => usable.some((pattern) => matchesGlob(pattern.registry, registry));
  return {
    patterns: [...patterns],
    unusable: parsed.flatMap((entry) => ('unusable' in entry ? [{ pattern: entry.text, reason: entry.unusable }] : [])),
    effort: index.effort,
    allows: (reference) =>
      index.near(reference.registry, reference.repository).some((pattern) => matchesPattern(pattern, reference)),
    allowsSomeOf: (registry, repository) =>
      index.near(registry, repository).some((pattern) => matchesRepository(pattern, registry, repository)),
    names,
    reaches(host) {
      const registry = canonicalRegistry(host);
      return names(registry) || usable.some((pattern) => needsHost(pattern.registry, registry));
    },
    allowsEverything: usable.some(
      ({ registry, parts, below, tag, digest }) =>
        registry === '*' && parts.length === 0 && below && tag === undefined && digest === undefined,
    ),
  };
}

/** True if a list with these patterns allows the image; the default tag is `latest`. */
export function isAllowed(patterns: readonly string[], image: string): boolean {
  return allowsImage(createAllowList(patterns), image);
}

/** True if a parsed list allows the image, for lists that are checked more than once; the default tag is `latest`. */
export function allowsImage(list: AllowList, image: string): boolean {
  const reference = parseReference(image);
  return reference !== undefined && list.allows(withDefaultTag(reference));
}

/**
 * Aliases of well-known registries, and the hosts that issue their tokens. Clients need both before they ask for an image. Hosts of layers are
 * learned from the registries' answers.
 */
const COMPANIONS: readonly { registry: string; hosts: readonly string[] }[] = [
  {
    registry: 'docker.io',
    hosts: ['registry-1.docker.io', 'index.docker.io', 'registry.hub.docker.com', 'auth.docker.io'],
  },
  { registry: 'registry.gitlab.com', hosts: ['gitlab.com'] },
  { registry: 'registry.redhat.io', hosts: ['sso.redhat.com'] },
];

/** True if clients of a registry in a pattern (as a glob) need that host. */
function needsHost(registry: string, host: string): boolean {
  return COMPANIONS.some(
    (row) =>
      (matchesGlob(registry, row.registry) || matchesGlob(row.registry, registry)) &&
      row.hosts.some((glob) => matchesGlob(glob, host)),
  );
}

const SETTING = 'containerEngine.allowedImages.patterns';
/** Maximum number of patterns in a message. */
const SHOWN = 5;

/** Returns the refusal of an image: the image, the setting, and the remedy. One line each, because they are sent in headers. */
export function explainImage(reference: ImageReference, patterns: readonly string[]): string {
  const name = formatReference(reference);
  const what = reference.tag === undefined && reference.digest === undefined ? `all tags of ${name}` : name;
  return `${what} is not among the allowed images: ${SETTING} ${listText(patterns)}. ${advice(name)}`;
}

export function explainRegistry(registry: string, patterns: readonly string[]): string {
  return `nothing of ${registry} is among the allowed images: ${SETTING} ${listText(patterns)}. ${advice(`${registry}/*`)}`;
}

/** Returns the refusal of images without a known name. `what`: the way that they would arrive, as a subject. */
export function explainUnnamed(what: string): string {
  return `${what} can bring in any image, and only those in ${SETTING} are allowed. Allow every image with the pattern *, or pull the image by its name.`;
}

function advice(pattern: string): string {
  return `To allow it, add ${pattern} to that setting (rdctl apply), or ask whoever manages it.`;
}

function listText(patterns: readonly string[]): string {
  if (patterns.length === 0) return 'is empty';
  const more = patterns.length > SHOWN ? ` and ${patterns.length - SHOWN} more` : '';
  return `has ${patterns.slice(0, SHOWN).map(printable).join(', ')}${more}`;
}

/** Makes text safe for one line: the setting may contain any text, including line breaks. */
function printable(text: string): string {
  const short = text.length > 60 ? `${text.slice(0, 57)}...` : text;
  return JSON.stringify(short)
    .slice(1, -1)
    .replace(/[^ -~]/g, '?');
}

/** Patterns indexed by the names in them, so that an image is not compared with thousands of them. */
interface PatternIndex {
  /** Returns all patterns that may match something in this repository, and perhaps others. */
  near(registry: string, repository: string): Pattern[];
  /** Characters of the patterns that are compared with every repository. */
  effort: number;
}

function indexPatterns(patterns: readonly Pattern[]): PatternIndex {
  const exact = new Map<string, Pattern[]>();
  const below = new Map<string, Pattern>();
  const anywhere: Pattern[] = [];
  let effort = 0;
  for (const pattern of patterns) {
    const key = [pattern.registry, ...pattern.parts].join('/');
    if (key.includes('*')) {
      anywhere.push(pattern);
      effort += key.length + 1;
      continue;
    }
    // Below a path there are no tags, so one pattern per path suffices.
    if (pattern.below) below.set(key, pattern);
    else if (!exact.get(key)?.push(pattern)) exact.set(key, [pattern]);
  }
  return {
    effort,
    near(registry, repository) {
      const found = [...(exact.get(`${registry}/${repository}`) ?? [])];
      let stem = registry;
      for (const part of repository.split('/')) {
        const pattern = below.get(stem);
        if (pattern) found.push(pattern);
        stem = `${stem}/${part}`;
      }
      return anywhere.length === 0 ? found : found.concat(anywhere);
    },
  };
}
