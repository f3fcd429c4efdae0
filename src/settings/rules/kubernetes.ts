import type { JsonValue } from '../../json.ts';
import { isKubernetesVersion } from '../kubernetes-version.ts';
import type { Rule } from './rule.ts';

/** A changed version must be available; empty lets the service choose. Any valid one passes while the list is unknown. */
export const kubernetesVersion: Rule = ({ desired, changed, context }) => {
  if (!changed || typeof desired !== 'string' || desired === '') return [];
  const offered = context.kubernetesVersions ?? [];
  if (offered.length > 0 ? offered.includes(desired) : isKubernetesVersion(desired)) return [];
  return [
    { code: 'kubernetes-version', message: versionNotFound(desired), fatal: false, expected: expectation(offered) },
  ];
};

/** Accepts a value of any type. */
export function versionNotFound(value: JsonValue): string {
  return `Kubernetes version "${value}" not found.`;
}

function expectation(offered: readonly string[]): string {
  if (offered.length === 0) return 'a version such as "1.30.2"';
  return `one of ${offered.slice(0, 10).join(', ')}${offered.length > 10 ? ', …' : ''}`;
}
