import { canonicalKubernetesVersion, isKubernetesVersion } from '../../src/settings/kubernetes-version.ts';

const PLAIN = /^\d+\.\d+\.\d+$/;

/**
 * Why the application quits over a locked version as soon as it starts a cluster (settings facts, 4.5). An empty one leaves the
 * choice to the application. Which versions a release offers is not known here.
 */
export function lockedVersionReason(version: string): string | undefined {
  if (version === '' || PLAIN.test(version)) return undefined;
  const plain = canonicalKubernetesVersion(version);
  if (plain !== version) return `a locked version in another spelling than ${plain} ends the start of the cluster`;
  return 'a locked version that is no plain X.Y.Z ends the start of the cluster';
}

/** Why the version of a defaults profile is replaced by the application's own choice (tool facts, 8.3). */
export function unusableVersionReason(version: string): string | undefined {
  if (version === '' || isKubernetesVersion(canonicalKubernetesVersion(version))) return undefined;
  return 'it is not a version, so the application takes its own default';
}
