import { isImageName, isImageTag, parseExtensionPattern } from './image-name.ts';

/** An image by name, as a person writes it. */
export interface ImageReference {
  /** As written, without the tag: the key of an installed extension. */
  name: string;
  /** Without the default registry's other names: `docker.io`, `registry.example.com:5000`. */
  registry: string;
  /** Path in the registry: `library/busybox`. */
  repository: string;
  tag?: string;
}

const DEFAULT_REGISTRY = 'docker.io';
const DEFAULT_NAMES = ['docker.io', 'index.docker.io', 'registry-1.docker.io'];

/**
 * Reads `[registry[:port]/]name[:tag]`; undefined for anything else, a digest included. The colon of a port is told from that of
 * a tag by the slash after it. A registry has a dot in it; without one the image is of the default registry.
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

/** `registry/name`, the form that engines take without guessing. */
export function wholeName({ registry, repository }: Pick<ImageReference, 'registry' | 'repository'>): string {
  return `${registry}/${repository}`;
}

/**
 * Whether a list of extension patterns permits an image (settings facts, 3.5.5). Without a tag in the reference, whether it
 * permits some tag of it. Patterns that are none permit nothing.
 */
export function permits(patterns: readonly string[], image: ImageReference): boolean {
  return patterns.some((text) => {
    const pattern = parseExtensionPattern(text);
    if (!pattern) return false;
    if (pattern.tag !== undefined && image.tag !== undefined && pattern.tag !== image.tag) return false;
    // Of the default registry a bare name is an official image, and so is everything where only the registry is named.
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
