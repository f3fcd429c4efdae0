import { refuseUnskipped } from '../../../src/client/apply.ts';
import { readStoredSettings } from '../../../src/client/offline.ts';
import { homeOf } from '../../../src/client/session/home.ts';
import { type ErrorCode, RdError } from '../../../src/errors.ts';
import type { PlanRequest } from '../../../src/plan/change.ts';
import type { PlannedHow } from '../../../src/plan/kept.ts';
import { hostOf, policiesOf } from '../../arguments/environment.ts';
import type { Io } from '../../command.ts';
import { estimate } from '../plan/estimate.ts';
import { nextDriver } from '../plan/next-driver.ts';

interface Skips {
  skipLocked: boolean;
  skipUnsupported: boolean;
}

interface StartRequest extends Skips {
  request: PlanRequest;
  driver: string | undefined;
  how: PlannedHow;
  /** Name of the profile. */
  name: string | undefined;
}

/** Errors of an invalid request. Others are left to the service, which repairs some of their causes. */
const REFUSALS: readonly ErrorCode[] = [
  'ERR_SETTING_LOCKED',
  'ERR_SETTING_UNSUPPORTED',
  'ERR_SETTING_KEPT',
  'ERR_SETTINGS_INVALID',
];

/**
 * Refuses a request that the service would refuse, before one is started for it: its start records a driver and changes files of the user. Throws one
 * of `REFUSALS`. Without a driver that can run, the start reports that itself.
 */
export async function refuseAtStart({ request, driver, how, name, ...skips }: StartRequest, io: Io): Promise<void> {
  const where = homeOf(io);
  const host = hostOf(io);
  try {
    const stored = await readStoredSettings(where, host.platform, host, await policiesOf(io, host));
    const { atRest } = await nextDriver(io, stored.driver, driver);
    if (!atRest) return;
    refuseUnskipped(await estimate(request, io, { driver, how, name }), skips);
  } catch (error) {
    if (!(error instanceof RdError) || REFUSALS.includes(error.code)) throw error;
  }
}
