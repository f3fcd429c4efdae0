/** The registry that a name without one means. */
export const HUB = 'docker.io';

/** Other names of the same registry: two spellings of one thing must not be two things to a list. */
const HUB_NAMES = [HUB, 'index.docker.io', 'registry-1.docker.io', 'registry.hub.docker.com'];

/** Names for which clients put `library/` in front of a repository of one part. */
const OFFICIAL_HUB_NAMES = [HUB, 'index.docker.io'];

/** One spelling per registry: lower case, without the port of https, Docker Hub under one name. */
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
 * Whether the first part of a name is a registry, by the rule of container clients: it has a dot, a port or a capital letter in
 * it, or is `localhost`. A name of one part is never a registry there.
 */
export function isRegistryPart(part: string): boolean {
  return /[.:A-Z]/.test(part) || part === 'localhost';
}

/** `host` or `host:port`, without a stray sign. Brackets hold an IPv6 address. */
export function isRegistryName(text: string): boolean {
  return /^(?:[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/.test(text);
}

/** True for names that container clients take as insecure registries of this machine: plain HTTP, and never through a proxy. */
export function isLoopback(registry: string): boolean {
  const host = registry.replace(/:\d+$/, '');
  return host === 'localhost' || host === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(host);
}
