/** A release of k3s: a version of Kubernetes, and which build of it. */
export interface K3sVersion {
  /** As released: `v1.33.6+k3s1`. */
  text: string;
  /** As in settings: `1.33.6`. */
  version: string;
  /** `1.33` */
  minor: string;
  numbers: readonly [major: number, minor: number, patch: number, build: number];
}

/** The oldest supported version, as in docs/kubernetes.md. */
export const OLDEST = '1.25.3';

const RELEASE = /^v?(\d{1,5})\.(\d{1,5})\.(\d{1,5})\+k3s(\d{1,5})$/;
const PLAIN = /^v?(\d{1,5})\.(\d{1,5})\.(\d{1,5})$/;

/** A release of k3s; undefined for anything else, such as a pre-release (`v1.33.0-rc1+k3s1`). */
export function parseK3s(text: string): K3sVersion | undefined {
  const match = RELEASE.exec(text);
  if (!match) return undefined;
  const [major = 0, minor = 0, patch = 0, build = 0] = match.slice(1).map(Number);
  const version = `${major}.${minor}.${patch}`;
  return {
    text: `v${version}+k3s${build}`,
    version,
    minor: `${major}.${minor}`,
    numbers: [major, minor, patch, build],
  };
}

/** `1.33.6` for `v1.33.6` and `1.33.6`; undefined for anything else. */
export function plainVersion(text: string): string | undefined {
  const match = PLAIN.exec(text);
  return match ? match.slice(1).map(Number).join('.') : undefined;
}

/** By version, then by build; negative where `a` is the older one. */
export function compareK3s(a: K3sVersion, b: K3sVersion): number {
  for (const [index, number] of a.numbers.entries()) {
    const difference = number - (b.numbers[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Whether it is supported. */
export function isSupported(release: K3sVersion): boolean {
  const oldest = parseK3s(`v${OLDEST}+k3s0`);
  return oldest !== undefined && compareK3s(release, oldest) >= 0;
}

/** Newest first; only the newest build of each version; unsupported ones left out. */
export function newestFirst(releases: readonly K3sVersion[]): K3sVersion[] {
  const sorted = releases.filter(isSupported).sort((a, b) => compareK3s(b, a));
  return sorted.filter((release, index) => sorted[index - 1]?.version !== release.version);
}
