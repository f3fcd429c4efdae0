import { homeService, isEnding, mayRun, wasUnclean } from '../../../src/client/home-service.ts';
import { acceptedRequest, offlinePlan, storedForwards, storedSettings } from '../../../src/client/offline.ts';
import { type StoredHome, withKept } from '../../../src/client/offline-kept.ts';
import { refuseOtherDriver } from '../../../src/client/session/driver.ts';
import { homeOf } from '../../../src/client/session/home.ts';
import { previewChanges } from '../../../src/features/host-integration/parts.ts';
import type { Plan, PlanRequest } from '../../../src/plan/change.ts';
import type { PlannedHow } from '../../../src/plan/kept.ts';
import { withPortForwards } from '../../../src/plan/port-forwards.ts';
import { readKept } from '../../../src/state/kept-file.ts';
import { hostOf, hostTargets, policiesOf } from '../../arguments/environment.ts';
import type { Io } from '../../command.ts';
import { nextDriver } from './next-driver.ts';

interface EstimateOptions {
  driver: string | undefined;
  how: PlannedHow;
  /** Of the profile. */
  name: string | undefined;
}

/**
 * The plan against the stored settings, as the next service would make it: an estimate, because nothing has looked at the machine.
 * @throws RdError for settings, policies and kept profiles that cannot be read; `ERR_SETTINGS_INVALID` for what the service would refuse.
 */
export async function estimate(request: PlanRequest, io: Io, { driver, how, name }: EstimateOptions): Promise<Plan> {
  const where = homeOf(io);
  const host = hostOf(io);
  const { platform } = host;
  const policies = await policiesOf(io, host);
  const stored = await storedSettings(where, platform, host, policies);
  refuseOtherDriver(stored.driver, driver);
  const next = await nextDriver(io, stored.driver, driver);
  const last = await homeService(where);
  const facts = {
    ...stored,
    left: mayRun(last),
    cut: wasUnclean(last),
    ending: isEnding(last),
    ...(next.driver === undefined ? {} : { driver: next.driver }),
  };
  const files = await userFiles(next.driver, io);
  const accepted = acceptedRequest(request, stored, host);
  const home = { settings: facts, forwards: await storedForwards(where) };
  const planOf = (asked: PlanRequest, { settings, forwards }: StoredHome) => {
    const made = offlinePlan(asked, settings, where, files);
    const plan = { ...made, warnings: [...next.warnings, ...made.warnings] };
    return asked.portForwards ? withPortForwards(plan, asked.portForwards, forwards) : plan;
  };
  const plan = planOf(accepted, home);
  const records = await readKept(where.keptFile);
  if (records.length === 0) return plan;
  return withKept(plan, accepted, home, { records, kept: name, how, now: Date.now(), planOf });
}

/** The state of the user's files. Where no driver is available yet, assumes a real one. */
async function userFiles(driver: string | undefined, io: Io): Promise<Parameters<typeof offlinePlan>[3]> {
  const hasCluster = driver === 'qemu';
  const targets = hostTargets(io);
  if (driver === 'simulated' || 'offBecause' in targets) return { hasCluster };
  return { facts: await previewChanges(targets), hasCluster };
}
