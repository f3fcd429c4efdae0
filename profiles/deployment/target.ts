import type { JsonObject } from '../../src/json.ts';
import { type CheckContext, type CheckFinding, checkSettings } from '../../src/settings/check.ts';
import { PLATFORM_NAMES, type Platform } from '../../src/settings/field.ts';
import { formatFinding } from '../../src/settings/finding.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
import type { DeploymentInput } from './input.ts';

/**
 * What is taken for granted of the computers that a profile is for: an up-to-date system, and on macOS a processor of Apple,
 * where everything that a Mac can do is allowed.
 */
export function targetContext(platform: Platform): CheckContext {
  return { platform, arch: platform === 'darwin' ? 'arm64' : 'x64' };
}

const DEPENDS: readonly CheckFinding['code'][] = ['platform', 'conflict', 'kubernetes-version'];

/**
 * Why the application would refuse these settings in a profile, as warnings with their place: settings that its system does not
 * have, and values that do not go together with each other or with the defaults.
 */
export async function refusals(
  { document, at }: Pick<DeploymentInput, 'document' | 'at'>,
  settings: JsonObject,
  platform: Platform,
): Promise<string[]> {
  const version = Math.min(Number(settings.version), SCHEMA_VERSION);
  const written = { document, at, settings: { ...settings, version } };
  const { findings } = await checkSettings(written, targetContext(platform));
  return findings
    .filter(({ code }) => DEPENDS.includes(code))
    .map(({ code, ...finding }) => {
      const where = code === 'conflict' ? ' where nothing else is set' : '';
      return `the application on ${PLATFORM_NAMES[platform]} would refuse this profile${where}: ${formatFinding(finding)}`;
    });
}
