import type { DriverInfo } from '../drivers/driver.ts';
import { leafAt } from '../settings/leaf-paths.ts';
import type { SettingPath, Settings } from '../settings/settings.gen.ts';

/** Switches that protect: asking for one that nothing enforces must stop, because silence would be taken for safety. */
const PROTECTING: readonly SettingPath[] = [
  'containerEngine.allowedImages.enabled',
  'application.extensions.allowed.enabled',
];

/** A protection that is asked for and that this driver does not give. */
export interface Unprotected {
  path: SettingPath;
  reason: string;
}

/** Protections in the settings that the driver cannot enforce. Whoever gets one must not start. */
export function unprotected(settings: Settings, driver: DriverInfo): Unprotected[] {
  return PROTECTING.flatMap((path) => {
    const support = driver.support[path];
    return support.level === 'unsupported' && leafAt(settings, path) === true ? [{ path, reason: support.reason }] : [];
  });
}
