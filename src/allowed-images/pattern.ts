import { defined, type JsonObject, type JsonValue } from '../json.ts';
import {
  canonicalRegistry,
  hasOfficialImages,
  type ImageReference,
  isDigest,
  isRegistryName,
  splitRegistry,
  splitTag,
} from '../settings/image-reference.ts';
import { leafAt } from '../settings/leaf-paths.ts';
import type { SettingPath } from '../settings/settings.gen.ts';

/**
 * One entry of `containerEngine.allowedImages.patterns`. The grammar, with its examples, is in `docs/allowed-images.md`:
 *
 * ```
 * pattern    = '*' | host | [registry '/'] path [':' tag] ['@' digest]
 * path       = part { '/' part } ['/']      a final '/' or '/*': everything below
 * part, tag  = may hold '*': any characters, but never a '/'
 * ```
 */
export interface Pattern {
  /** Canonical; may contain `*`. */
  registry: string;
  /** Globs, one for each part of the repository. */
  parts: readonly string[];
  /** At least one more part must follow. */
  below: boolean;
  /** Glob; absent: any tag. */
  tag?: string;
  /** Exact. A tag beside it is ignored. */
  digest?: string;
}

/** A parsed pattern, or, in `unusable`, the reason that it matches nothing, as a clause. */
export type ParsedPattern = { pattern: Pattern } | { unusable: string };

const MAX_LENGTH = 512;
const PART = /^[a-z0-9._*-]+$/;
const TAG = /^[A-Za-z0-9_*][A-Za-z0-9_.*-]{0,127}$/;
const EVERYTHING: Pattern = { registry: '*', parts: [], below: true };

/** Parses a pattern. Never throws: the setting accepts any text, and an invalid pattern matches nothing. */
export function parsePattern(text: string): ParsedPattern {
  const written = text.trim();
  if (written === '') return { unusable: 'it is blank' };
  if (written.length > MAX_LENGTH) return { unusable: `it is longer than ${MAX_LENGTH} characters` };
  if (written === '*') return { pattern: EVERYTHING };
  if (isHostAlone(written)) return { pattern: { registry: canonicalRegistry(written), parts: [], below: true } };
  const at = written.indexOf('@');
  const digest = at === -1 ? undefined : written.slice(at + 1).toLowerCase();
  if (digest !== undefined && !isDigest(digest)) return { unusable: 'what follows the @ is no digest' };
  const { name, tag } = splitTag(at === -1 ? written : written.slice(0, at));
  if (tag !== undefined && !TAG.test(tag)) return { unusable: `"${tag}" is no tag` };
  const { registry, rest: path } = splitRegistry(name.toLowerCase());
  if (!isRegistryName(registry.replaceAll('*', 'x'))) return { unusable: `"${registry}" is no name of a registry` };
  const chosen = { ...defined({ tag, digest }) };
  // A leading slash is invalid; after a registry, a lone slash means all of it.
  return path === name.toLowerCase() && /^(?:\/|$)/.test(path)
    ? { unusable: 'it begins with no name' }
    : withPath(registry, path, chosen);
}

export function matchesPattern(pattern: Pattern, reference: ImageReference): boolean {
  if (!matchesRepository(pattern, reference.registry, reference.repository)) return false;
  // Clients pull by digest, whatever tag accompanies it.
  if (pattern.digest !== undefined) return pattern.digest === reference.digest;
  if (pattern.tag === undefined) return true;
  if (reference.digest !== undefined || reference.tag === undefined) return false;
  return matchesGlob(pattern.tag, reference.tag);
}

/** True if some tag or digest of the repository could match. */
export function matchesRepository(pattern: Pattern, registry: string, repository: string): boolean {
  if (!matchesGlob(pattern.registry, registry)) return false;
  const found = repository.split('/');
  const { parts, below } = pattern;
  if (below ? found.length <= parts.length : found.length !== parts.length) return false;
  return parts.every((part, index) => matchesGlob(part, found[index] ?? ''));
}

/** True for a host alone, such as `ghcr.io` or `localhost:5000`. Not for `busybox:1.36`: the dot of a host comes before its port. */
function isHostAlone(text: string): boolean {
  if (text.includes('/') || text.includes('@')) return false;
  const host = text.replace(/:\d{1,5}$/, '');
  const named = host === 'localhost' || host.startsWith('[') || host.includes('.');
  return named && isRegistryName(text.replaceAll('*', 'x'));
}

function withPath(registry: string, path: string, chosen: Pick<Pattern, 'tag' | 'digest'>): ParsedPattern {
  const stem = path.replace(/\/+$/, '');
  // `.*` is a common regular expression habit; no part of a repository begins with a dot.
  const parts = (stem === '' ? [] : stem.split('/')).map((part) => (part === '.*' ? '*' : part));
  const wrong = parts.find((part) => !PART.test(part));
  if (wrong !== undefined) return { unusable: wrong === '' ? 'a part of its path is empty' : notAPart(wrong) };
  const open = stem !== path || stem === '';
  if (open && Object.keys(chosen).length > 0) return { unusable: 'there is no image before its tag or digest' };
  const star = parts.at(-1) === '*';
  const fixed = star ? parts.slice(0, -1) : parts;
  const official = !open && !star && fixed.length === 1 && hasOfficialImages(registry);
  return {
    pattern: {
      registry: canonicalRegistry(registry),
      parts: official ? ['library', ...fixed] : fixed,
      below: open || star,
      ...chosen,
    },
  };
}

function notAPart(part: string): string {
  return `"${part}" can be no part of an image's name; the only sign with a meaning is *`;
}

/**
 * True if a text matches a glob in which `*` stands for any characters, possibly none. The text between two stars is matched at its first occurrence,
 * which leaves the most for the rest, so nothing is tried twice.
 */
export function matchesGlob(glob: string, text: string): boolean {
  const [first = '', ...more] = glob.split('*');
  const last = more.pop();
  if (last === undefined) return glob === text;
  if (!text.startsWith(first)) return false;
  let at = first.length;
  for (const between of more) {
    const found = text.indexOf(between, at);
    if (found === -1) return false;
    at = found + between.length;
  }
  return text.length - last.length >= at && text.endsWith(last);
}

/** Path of the setting with the list of patterns. */
export const PATTERNS: SettingPath = 'containerEngine.allowedImages.patterns';

/** Maximum number of patterns with a warning each. */
const MOST_WARNED = 20;

/** Warnings cached by list, because a plan is made in parts and applied afterwards. */
const warned = new WeakMap<readonly JsonValue[], readonly string[]>();

/**
 * Warns about image patterns that cannot match anything. They do not block, because the setting accepts any text, but
 * such a pattern is probably a mistake. A list is parsed once.
 */
export function patternWarnings(settings: JsonObject): readonly string[] {
  const patterns = leafAt(settings, PATTERNS);
  if (!Array.isArray(patterns)) return [];
  const warnings = warned.get(patterns) ?? warningsOf(patterns);
  warned.set(patterns, warnings);
  return warnings;
}

function warningsOf(patterns: readonly JsonValue[]): string[] {
  const useless = [...new Set(patterns)].flatMap((text) => {
    const parsed = typeof text === 'string' ? parsePattern(text) : undefined;
    return parsed && 'unusable' in parsed ? [{ text, reason: parsed.unusable }] : [];
  });
  const more = useless.length - MOST_WARNED;
  return [
    ...useless
      .slice(0, MOST_WARNED)
      .map(({ text, reason }) => `The pattern ${JSON.stringify(text)} in "${PATTERNS}" matches nothing: ${reason}.`),
    ...(more > 0 ? [`Another ${more} patterns in "${PATTERNS}" match nothing.`] : []),
  ];
}
