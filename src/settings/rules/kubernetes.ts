import { isKubernetesVersion } from '../kubernetes-version.ts';
import type { Rule } from './rule.ts';

/**
 * A changed version must be offered; empty is left to the service, which a change can ask for only while the cluster is off.
 * While no version is known every real version passes.
 */
export const kubernetesVersion: Rule = ({ desired, changed, result, context }) => {
  if (!changed || typeof desired !== 'string') return [];
  if (desired === '' && result('kubernetes.enabled') !== true) return [];
  const offered = context.kubernetesVersions ?? [];
  if (offered.length > 0 ? offered.includes(desired) : isKubernetesVersion(desired)) return [];
  const message = `Kubernetes version "${desired}" not found.`;
  return [{ code: 'kubernetes-version', message, fatal: false, expected: expectation(offered) }];
};

function expectation(offered: readonly string[]): string {
  if (offered.length === 0) return 'a version such as "1.30.2"';
  return `one of ${offered.slice(0, 10).join(', ')}${offered.length > 10 ? ', …' : ''}`;
}
