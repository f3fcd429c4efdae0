import { isImageName, isImageTag, parseExtensionPattern } from './image-name.ts';

/** An image reference as written by the user. */
export interface ImageReference {
  /** Without the tag: the key of an installed extension. */
  name: string;
  /** Normalized for the default registry: `docker.io`, `registry.example.com:5000`. */
  registry: string;
  /** Path in the registry: `library/busybox`. */
  repository: string;
  tag?: string;
}

const DEFAULT_REGISTRY = 'docker.io';
const DEFAULT_NAMES = ['docker.io', 'index.docker.io', 'registry-1.docker.io'];

/**
 * Parses `[registry[:port]/]name[:tag]`; undefined for anything else, including digests. A colon followed by a slash
 * belongs to the port. A registry contains a dot; without one the image is in the default registry.
 */
export function parseImageReference(text: string): ImageReference | undefined {
  const colon = text.indexOf(':', text.lastIndexOf('/') + 1);
  const name = colon === -1 ? text : text.slice(0, colon);
  const tag = colon === -1 ? undefined : text.slice(colon + 1);
  if (!isImageName(name) || (tag !== undefined && !isImageTag(tag))) return undefined;
  const parsed = parseExtensionPattern(name);
  if (!parsed) return undefined;
  return { name, ...placeOf(parsed.registry, parsed.name), ...(tag === undefined ? {} : { tag }) };
}

/** `registry/name`, unambiguous for engines. */
export function wholeName({ registry, repository }: Pick<ImageReference, 'registry' | 'repository'>): string {
  return `${registry}/${repository}`;
}

/**
 * Whether a list of extension patterns permits an image, or, for a reference without a tag, any tag of it. Invalid
 * patterns permit nothing.
 */
export function permits(patterns: readonly string[], image: ImageReference): boolean {
  return patterns.some((text) => {
    const pattern = parseExtensionPattern(text);
    if (!pattern) return false;
    if (pattern.tag !== undefined && image.tag !== undefined && pattern.tag !== image.tag) return false;
    // In the default registry a bare name is an official image; a pattern with only a registry permits everything in
    // it.
    const { registry, repository } = placeOf(pattern.registry, pattern.name);
    if (registry !== image.registry) return false;
    return (
      repository === '' ||
      (repository.endsWith('/') ? image.repository.startsWith(repository) : repository === image.repository)
    );
  });
}

function placeOf(registry: string | undefined, name: string): Pick<ImageReference, 'registry' | 'repository'> {
  const host = registry?.toLowerCase().replace(/:443$/, '') ?? DEFAULT_REGISTRY;
  if (!DEFAULT_NAMES.includes(host)) return { registry: host, repository: name };
  return { registry: DEFAULT_REGISTRY, repository: name.includes('/') ? name : `library/${name}` };
}
