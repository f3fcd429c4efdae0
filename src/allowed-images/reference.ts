import { isImageName, isImageTag } from '../settings/image-name.ts';
import { canonicalRegistry, HUB, hasOfficialImages, isRegistryName, isRegistryPart } from './registry-name.ts';

/** An image reference in canonical form. */
export interface ImageReference {
  /** Canonical, `docker.io` for Docker Hub. */
  registry: string;
  /** With `library/` where clients add it. */
  repository: string;
  /** Absent together with the digest: every tag of the repository. */
  tag?: string;
  /** `sha256:…`, lower case. Takes precedence: clients with a digest ignore the tag. */
  digest?: string;
}

/** Longer texts are not image names; limits the work that untrusted text can cause. */
const MAX_LENGTH = 1024;
const DIGEST = /^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-f]{32,128}$/;

/** True for `algorithm:hexadecimal`. */
export function isDigest(text: string): boolean {
  return DIGEST.test(text);
}

/** Parses `[registry/]repository[:tag][@digest]` as container clients do; undefined for anything else. */
export function parseReference(text: string): ImageReference | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const at = text.indexOf('@');
  const digest = at === -1 ? undefined : text.slice(at + 1).toLowerCase();
  if (digest !== undefined && !isDigest(digest)) return undefined;
  const { registry, rest } = splitRegistry(at === -1 ? text : text.slice(0, at));
  const { name, tag } = splitTag(rest);
  if (!isRegistryName(registry) || !isRepository(name)) return undefined;
  if (tag !== undefined && !isImageTag(tag)) return undefined;
  return {
    registry: canonicalRegistry(registry),
    repository: hasOfficialImages(registry) && !name.includes('/') ? `library/${name}` : name,
    ...(tag === undefined ? {} : { tag }),
    ...(digest === undefined ? {} : { digest }),
  };
}

/** The default of a reference without tag and digest. */
export function withDefaultTag(reference: ImageReference): ImageReference {
  return reference.tag === undefined && reference.digest === undefined ? { ...reference, tag: 'latest' } : reference;
}

/** The full name, for display. */
export function formatReference({ registry, repository, tag, digest }: ImageReference): string {
  return `${registry}/${repository}${tag === undefined ? '' : `:${tag}`}${digest === undefined ? '' : `@${digest}`}`;
}

/** True for `name/name` as a registry names it. The map key grammar would parse a first part with a dot as a registry. */
export function isRepository(name: string): boolean {
  return !name.includes(':') && isImageName(`${HUB}/${name}`);
}

export function splitRegistry(text: string): { registry: string; rest: string } {
  const slash = text.indexOf('/');
  const head = slash === -1 ? '' : text.slice(0, slash);
  return isRegistryPart(head) ? { registry: head, rest: text.slice(slash + 1) } : { registry: HUB, rest: text };
}

/** A colon after the last slash begins the tag. */
export function splitTag(text: string): { name: string; tag?: string } {
  const colon = text.indexOf(':', text.lastIndexOf('/') + 1);
  return colon === -1 ? { name: text } : { name: text.slice(0, colon), tag: text.slice(colon + 1) };
}
