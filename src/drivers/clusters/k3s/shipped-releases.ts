/**
 * Releases that are known without asking anybody, for a first start without the network. Origin: the last release of each minor
 * version, as scripts and documents in public repositories name them (November 2025); the server of releases itself was
 * out of reach when this was written. Nothing is installed on the word of this list: sums come from the server with the files.
 */
export const SHIPPED_RELEASES: readonly string[] = [
  'v1.34.2+k3s1',
  'v1.33.6+k3s1',
  'v1.32.10+k3s1',
  'v1.31.14+k3s1',
  'v1.30.14+k3s1',
  'v1.29.15+k3s1',
  'v1.28.15+k3s1',
  'v1.27.16+k3s1',
];

/** Of that list. */
export const SHIPPED_CHANNELS: Readonly<Record<string, string>> = { stable: 'v1.33.6+k3s1', latest: 'v1.34.2+k3s1' };
