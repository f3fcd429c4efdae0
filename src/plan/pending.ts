import type { DriverInfo } from '../drivers/driver.ts';
import type { Settings } from '../settings/settings.gen.ts';
import type { Observed } from './observed.ts';
import { restartReasons } from './restart-reasons.ts';

/** Reasons of a restart that the live settings demand of what runs already, as clauses; empty when there is none. */
export function pendingRestart(live: Settings, observed: Observed, driver: DriverInfo): string[] {
  return Object.entries(restartReasons(live, observed, driver, live)).map(
    ([path, { current, desired }]) =>
      `${path}: runs with ${JSON.stringify(current)}, should be ${JSON.stringify(desired)}`,
  );
}
