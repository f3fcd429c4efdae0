import type { CheckContext } from '../../src/settings/check.ts';
import type { Platform } from '../../src/settings/field.ts';

/**
 * What is taken for granted of the computers that a profile is for: an up-to-date system, and on macOS a processor of Apple,
 * where everything that a Mac can do is allowed.
 */
export function targetContext(platform: Platform): CheckContext {
  return { platform, arch: platform === 'darwin' ? 'arm64' : 'x64' };
}
