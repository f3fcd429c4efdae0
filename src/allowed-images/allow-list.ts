import {
  canonicalRegistry,
  formatReference,
  type ImageReference,
  parseReference,
  withDefaultTag,
} from '../settings/image-reference.ts';
import { matchesGlob, matchesPattern, matchesRepository, type Pattern, parsePattern } from './pattern.ts';

/** The parsed patterns of a list. */
export interface AllowList {
  patterns: readonly string[];
  /** Patterns that match nothing, each with the reason as a clause. */
  unusable: readonly { pattern: string; reason: string }[];
  /** A reference without tag and digest means every tag. */
  allows(reference: ImageReference): boolean;
  /** Whether some tag or digest of it is allowed. */
  allowsSomeOf(registry: string, repository: string): boolean;
  /** Whether anything in that registry is allowed. */
  names(registry: string): boolean;
  /** Whether pulling allowed images may require a connection to `host[:port]`: coarser than all others. */
  reaches(host: string): boolean;
  /** Whether every image is allowed: then an archive of unknown content is as well. */
  allowsEverything: boolean;
  /** Characters of the patterns with which every image has to be compared, because a name is no key to them. */
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

/** Whether a list with these patterns allows that image; the default tag is `latest`. */
export function isAllowed(patterns: readonly string[], image: string): boolean {
  return allowsImage(createAllowList(patterns), image);
}

/** The same for a list that is asked more than once. */
export function allowsImage(list: AllowList, image: string): boolean {
  const reference = parseReference(image);
  return reference !== undefined && list.allows(withDefaultTag(reference));
}

/**
 * Further names of well-known registries, and where they issue tokens. Clients need both before they ask for an image. Where layers are is known
 * from the registries' answers.
 */
const COMPANIONS: readonly { registry: string; hosts: readonly string[] }[] = [
  {
    registry: 'docker.io',
    hosts: ['registry-1.docker.io', 'index.docker.io', 'registry.hub.docker.com', 'auth.docker.io'],
  },
  { registry: 'registry.gitlab.com', hosts: ['gitlab.com'] },
  { registry: 'registry.redhat.io', hosts: ['sso.redhat.com'] },
];

/** Whether clients of a registry in a pattern (as a glob) need that host. */
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

/** The refusal: what, which setting, and what to do. One line each, because they are sent in headers. */
export function explainImage(reference: ImageReference, patterns: readonly string[]): string {
  const name = formatReference(reference);
  const what = reference.tag === undefined && reference.digest === undefined ? `all tags of ${name}` : name;
  return `${what} is not among the allowed images: ${SETTING} ${listText(patterns)}. ${advice(name)}`;
}

export function explainRegistry(registry: string, patterns: readonly string[]): string {
  return `nothing of ${registry} is among the allowed images: ${SETTING} ${listText(patterns)}. ${advice(`${registry}/*`)}`;
}

/** `what`: how the images would arrive, as a subject. */
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

/** The setting may contain any text, including line breaks. */
function printable(text: string): string {
  const short = text.length > 60 ? `${text.slice(0, 57)}...` : text;
  return JSON.stringify(short)
    .slice(1, -1)
    .replace(/[^ -~]/g, '?');
}

/** Patterns by what they name, so that an image is not compared with each of thousands. */
interface PatternIndex {
  /** All patterns that may match something in this repository, and perhaps others. */
  near(registry: string, repository: string): Pattern[];
  /** Characters of the patterns that are near every repository. */
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
    // Below a path there are no tags, so one pattern says it all.
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
