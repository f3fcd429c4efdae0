/** The default registry. */
export const HUB = 'docker.io';

/** Aliases of the same registry: both spellings must match the same patterns. */
const HUB_NAMES = [HUB, 'index.docker.io', 'registry-1.docker.io', 'registry.hub.docker.com'];

/** Registries for which clients prefix `library/` to a one-part repository. */
const OFFICIAL_HUB_NAMES = [HUB, 'index.docker.io'];

/** Canonical registry name: lower case, without the HTTPS port, one name for Docker Hub. */
export function canonicalRegistry(written: string): string {
  const lower = written.toLowerCase();
  const name = lower.endsWith(':443') ? lower.slice(0, -':443'.length) : lower;
  return HUB_NAMES.includes(name) ? HUB : name;
}

/** True where `nginx` means `library/nginx`. */
export function hasOfficialImages(written: string): boolean {
  return OFFICIAL_HUB_NAMES.includes(written.toLowerCase());
}

/**
 * Whether the first part of a name is a registry, by the rule of container clients: it contains a dot, a port or a capital letter, or is
 * `localhost`. A one-part name never contains a registry.
 */
export function isRegistryPart(part: string): boolean {
  return /[.:A-Z]/.test(part) || part === 'localhost';
}

/** A valid `host` or `host:port`. Brackets hold an IPv6 address. */
export function isRegistryName(text: string): boolean {
  return /^(?:[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/.test(text);
}

/** True for names that container clients treat as insecure local registries: plain HTTP, and never through a proxy. */
export function isLoopback(registry: string): boolean {
  const host = registry.replace(/:\d+$/, '');
  return host === 'localhost' || host === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(host);
}
