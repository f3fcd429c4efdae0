import { homeService, isEnding, mayRun, wasUnclean } from '../../../src/client/home-service.ts';
import { canonicalRequest, offlinePlan, readStoredForwards, readStoredSettings } from '../../../src/client/offline.ts';
import { type StoredHome, withKept } from '../../../src/client/offline-kept.ts';
import { refuseOtherDriver } from '../../../src/client/session/driver.ts';
import { homeOf } from '../../../src/client/session/home.ts';
import { previewChanges } from '../../../src/features/host-integration/parts.ts';
import { defined } from '../../../src/json.ts';
import type { Plan, PlanRequest } from '../../../src/plan/change.ts';
import type { PlannedHow } from '../../../src/plan/kept.ts';
import type { PartialRequest } from '../../../src/plan/leave-out.ts';
import type { UserFileFacts } from '../../../src/plan/user-files.ts';
import { readKept } from '../../../src/state/kept-file.ts';
import { hostOf, hostTargets, policiesOf } from '../../arguments/environment.ts';
import type { Io } from '../../command.ts';
import { nextDriver } from './next-driver.ts';

interface EstimateOptions {
  driver: string | undefined;
  how: PlannedHow;
  /** Name of the profile. */
  name: string | undefined;
}

/**
 * Plans against the stored settings, as the next service would. The plan is an estimate, because nothing has observed the machine.
 * @throws RdError for settings, policies and kept profiles that cannot be read; `ERR_SETTINGS_INVALID` for a request that the service would refuse.
 */
export async function estimate(request: PlanRequest, io: Io, { driver, how, name }: EstimateOptions): Promise<Plan> {
  const where = homeOf(io);
  const host = hostOf(io);
  const { platform } = host;
  const policies = await policiesOf(io, host);
  const stored = await readStoredSettings(where, platform, host, policies);
  refuseOtherDriver(stored.driver, driver);
  const next = await nextDriver(io, stored.driver, driver);
  const last = await homeService(where);
  const facts = {
    ...stored,
    left: mayRun(last),
    cut: wasUnclean(last),
    ending: isEnding(last),
    ...defined({ driver: next.driver }),
  };
  const files = await userFiles(next.driver, io);
  const resting = await next.atRest?.();
  const known = { ...(resting ? { driver: resting } : {}), ...(files ? { userFiles: files } : {}) };
  const accepted = canonicalRequest(request, stored, host);
  const home = { settings: facts, forwards: await readStoredForwards(where, resting) };
  const planOf = (asked: PartialRequest, { settings, forwards }: StoredHome) => {
    const { plan, deed } = offlinePlan(asked, settings, where, { ...known, forwards });
    return { plan: { ...plan, warnings: [...next.warnings, ...plan.warnings] }, deed };
  };
  const planned = planOf(accepted, home);
  const records = await readKept(where.keptFile);
  if (records.length === 0) return planned.plan;
  return withKept(planned, accepted, home, { records, kept: name, how, now: Date.now(), planOf });
}

/** Returns the state of the user's files. Assumes a real driver if none is available yet. */
async function userFiles(driver: string | undefined, io: Io): Promise<UserFileFacts | undefined> {
  const targets = hostTargets(io);
  return driver === 'simulated' || 'offBecause' in targets ? undefined : previewChanges(targets);
}
