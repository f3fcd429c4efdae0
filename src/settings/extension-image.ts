import { defined } from '../json.ts';
import {
  canonicalRegistry,
  HUB,
  hasOfficialImages,
  type ImageReference,
  isImageTag,
  isRepository,
  splitTag,
} from './image-reference.ts';

/** The image of an extension as written by the user. Digests are not supported. */
export interface ExtensionImage extends Omit<ImageReference, 'digest'> {
  /** Without the tag: the key of an installed extension. */
  name: string;
}

/** An entry of the list of allowed extensions. */
export interface ExtensionPattern {
  /** Registry with port, as written; absent for the default registry. */
  registry?: string;
  /** Empty for a whole registry; with a final slash for everything below. */
  name: string;
  tag?: string;
}

/** True for `[registry/]name` without a tag. */
export function isExtensionName(text: string): boolean {
  return isRepository(splitName(text).rest);
}

/** Parses `[registry/]name[:tag]`; undefined for anything else, including digests. */
export function parseExtensionImage(text: string): ExtensionImage | undefined {
  const { name, tag } = splitTag(text);
  if (!isExtensionName(name) || (tag !== undefined && !isImageTag(tag))) return undefined;
  const { registry = HUB, rest } = splitName(name);
  return { name, ...placeOf(registry, rest), ...defined({ tag }) };
}

/** Parses `[registry/]name[:tag]`, where the name may be empty after a registry or end in a slash. */
export function parseExtensionPattern(text: string): ExtensionPattern | undefined {
  const { registry, rest } = splitName(text);
  const { name, tag } = splitTag(rest);
  if (tag !== undefined && !isImageTag(tag)) return undefined;
  const whole = name === '' && registry !== undefined;
  if (!whole && !isRepository(name.endsWith('/') ? name.slice(0, -1) : name)) return undefined;
  return { ...defined({ registry }), name, ...defined({ tag }) };
}

/** True if a list of extension patterns permits an image, or, for a reference without a tag, any tag of it. Invalid patterns permit nothing. */
export function permits(patterns: readonly string[], image: ExtensionImage): boolean {
  return permitsOf(patterns)(image);
}

/** Returns a predicate that is true for images that a list of extension patterns permits. The patterns are parsed once and indexed by image name. */
export function permitsOf(patterns: readonly string[]): (image: ExtensionImage) => boolean {
  /** Tags by place; a place that ends in a slash stands for everything below. */
  const known = new Map<string, Set<string | undefined>>();
  for (const text of patterns) {
    const pattern = parseExtensionPattern(text);
    if (!pattern) continue;
    const { registry, repository } = placeOf(pattern.registry ?? HUB, pattern.name);
    // Docker Hub alone means its official images.
    const place = `${registry}/${repository === '' && registry === HUB ? 'library/' : repository}`;
    const tags = known.get(place) ?? new Set();
    known.set(place, tags.add(pattern.tag));
  }
  return ({ registry, repository, tag }) =>
    placesOf(`${registry}/${repository}`).some((place) => {
      const tags = known.get(place);
      return tags !== undefined && (tag === undefined || tags.has(undefined) || tags.has(tag));
    });
}

/** `a/b/c` → `a/b/c`, `a/`, `a/b/`. */
function placesOf(name: string): string[] {
  const places = [name];
  for (let at = name.indexOf('/'); at !== -1; at = name.indexOf('/', at + 1)) places.push(name.slice(0, at + 1));
  return places;
}

/** Splits off the registry. Stricter than container clients: a registry has two or more labels, and a port up to 65535; `localhost` is none. */
function splitName(text: string): { registry?: string; rest: string } {
  const slash = text.indexOf('/');
  const head = slash === -1 ? '' : text.slice(0, slash);
  return isDottedRegistry(head) ? { registry: head, rest: text.slice(slash + 1) } : { rest: text };
}

const DOTTED = /^[A-Za-z0-9]+(?:-+[A-Za-z0-9]+)*(?:\.[A-Za-z0-9]+(?:-+[A-Za-z0-9]+)*)+(?::(\d{1,5}))?$/;

function isDottedRegistry(text: string): boolean {
  const match = DOTTED.exec(text);
  return match !== null && Number(match[1] ?? 0) <= 65535;
}

function placeOf(registry: string, name: string): Pick<ImageReference, 'registry' | 'repository'> {
  const official = hasOfficialImages(registry) && name !== '' && !name.includes('/');
  return { registry: canonicalRegistry(registry), repository: official ? `library/${name}` : name };
}
