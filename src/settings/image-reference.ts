import { defined } from '../json.ts';

/**
 * An image reference, for extensions, allowed images and engines. The parts are matched one by one: a single regular
 * expression for this grammar takes exponential time on near matches.
 *
 * ```
 * reference  = [registry '/'] repository [':' tag] ['@' digest]
 * repository = component { '/' component }
 * ```
 */
export interface ImageReference {
  /** Canonical: lower case, `docker.io` for Docker Hub, without the HTTPS port. */
  registry: string;
  /** With `library/` where clients add it. */
  repository: string;
  /** Absent together with the digest: every tag of the repository. */
  tag?: string;
  /** `sha256:…`, lower case. Takes precedence: clients with a digest ignore the tag. */
  digest?: string;
}

/** The default registry. */
export const HUB = 'docker.io';

/** Aliases of the same registry: all spellings mean the same images. */
const HUB_NAMES = [HUB, 'index.docker.io', 'registry-1.docker.io', 'registry.hub.docker.com'];

/** Aliases for which clients prefix `library/` to a one-part repository. */
const OFFICIAL_HUB_NAMES = [HUB, 'index.docker.io'];

/** Longer texts are not image references; limits the work that untrusted text can cause. */
const MAX_LENGTH = 1024;

/** Parses a reference as container clients do; undefined for anything else. */
export function parseReference(text: string): ImageReference | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const at = text.indexOf('@');
  const digest = at === -1 ? undefined : text.slice(at + 1).toLowerCase();
  if (digest !== undefined && !isDigest(digest)) return undefined;
  const { name, tag } = splitTag(at === -1 ? text : text.slice(0, at));
  if (tag !== undefined && !isImageTag(tag)) return undefined;
  const { registry, rest } = splitRegistry(name);
  if (!isRegistryName(registry) || !isRepository(rest)) return undefined;
  return {
    registry: canonicalRegistry(registry),
    repository: hasOfficialImages(registry) && !rest.includes('/') ? `library/${rest}` : rest,
    ...defined({ tag, digest }),
  };
}

/** Adds the tag `latest` to a reference without tag and digest. */
export function withDefaultTag(reference: ImageReference): ImageReference {
  return reference.tag === undefined && reference.digest === undefined ? { ...reference, tag: 'latest' } : reference;
}

/** Returns `registry/repository`, unambiguous for engines. */
export function fullName({ registry, repository }: Pick<ImageReference, 'registry' | 'repository'>): string {
  return `${registry}/${repository}`;
}

/** Formats the whole reference, for display. */
export function formatReference({ tag, digest, ...place }: ImageReference): string {
  return `${fullName(place)}${tag === undefined ? '' : `:${tag}`}${digest === undefined ? '' : `@${digest}`}`;
}

/** Splits at the colon that begins the tag: the first one after the last slash. */
export function splitTag(text: string): { name: string; tag?: string } {
  const colon = text.indexOf(':', text.lastIndexOf('/') + 1);
  return colon === -1 ? { name: text } : { name: text.slice(0, colon), tag: text.slice(colon + 1) };
}

/**
 * Splits off the registry by the rule of container clients: the first part of a name is a registry if it contains a
 * dot, a port or a capital letter, or is `localhost`. A one-part name never contains a registry.
 */
export function splitRegistry(text: string): { registry: string; rest: string } {
  const slash = text.indexOf('/');
  const head = slash === -1 ? '' : text.slice(0, slash);
  return /[.:A-Z]/.test(head) || head === 'localhost'
    ? { registry: head, rest: text.slice(slash + 1) }
    : { registry: HUB, rest: text };
}

/** Returns the canonical name of a registry: lower case, without the HTTPS port, one name for Docker Hub. */
export function canonicalRegistry(written: string): string {
  const name = written.toLowerCase().replace(/:443$/, '');
  return HUB_NAMES.includes(name) ? HUB : name;
}

/** True for registries in which `nginx` means `library/nginx`. */
export function hasOfficialImages(written: string): boolean {
  return OFFICIAL_HUB_NAMES.includes(written.toLowerCase());
}

/** Returns the origin of the API of a canonical registry. */
export function registryOrigin(registry: string): string {
  if (registry === HUB) return 'https://registry-1.docker.io';
  return `${isLoopback(registry) ? 'http' : 'https'}://${registry}`;
}

/** True for names that container clients treat as insecure local registries: plain HTTP, and never through a proxy. */
export function isLoopback(registry: string): boolean {
  const host = registry.replace(/:\d+$/, '');
  return host === 'localhost' || host === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** True for a valid `host` or `host:port`. Brackets hold an IPv6 address. */
export function isRegistryName(text: string): boolean {
  return /^(?:[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/.test(text);
}

/** True for `algorithm:hexadecimal`. */
export function isDigest(text: string): boolean {
  return /^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-f]{32,128}$/.test(text);
}

/** True for 1 to 128 letters, digits, `_`, `.` and `-`, not starting with `.` or `-`. */
export function isImageTag(text: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/.test(text);
}

/** Runs of lowercase letters and digits, separated by a dot, one or two underscores, or hyphens. */
const COMPONENT = /^[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*$/;

/** True for a repository path such as `name/name`. */
export function isRepository(text: string): boolean {
  return text.split('/').every((part) => COMPONENT.test(part));
}
