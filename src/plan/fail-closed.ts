import type { DriverInfo } from '../drivers/driver.ts';
import { leafAt } from '../settings/leaf-paths.ts';
import type { SettingPath, Settings } from '../settings/settings.gen.ts';

/** Settings that protect: requesting one that the driver does not enforce must fail, because silence would imply safety. */
const PROTECTING: readonly SettingPath[] = [
  'containerEngine.allowedImages.enabled',
  'application.extensions.allowed.enabled',
];

/** A requested protection that this driver does not enforce. */
export interface Unprotected {
  path: SettingPath;
  reason: string;
}

/** Requested protections that the driver cannot enforce. If there are any, the backend must not start. */
export function unprotected(settings: Settings, driver: DriverInfo): Unprotected[] {
  return PROTECTING.flatMap((path) => {
    const support = driver.support[path];
    return support.level === 'unsupported' && leafAt(settings, path) === true ? [{ path, reason: support.reason }] : [];
  });
}
