import type { DesiredDocument } from '../../../profiles/document/load.ts';
import { offlinePlan, storedForwards, storedSettings } from '../../../src/client/offline.ts';
import { refuseOtherDriver } from '../../../src/client/session/driver.ts';
import type { Service } from '../../../src/client/session/find.ts';
import { homeOf } from '../../../src/client/session/home.ts';
import type { LiveState, Plan } from '../../../src/plan/change.ts';
import { mentionsForwards, withPortForwards } from '../../../src/plan/port-forwards.ts';
import { hostOf, hostTargets } from '../../arguments/environment.ts';
import { errorWithPositions, forwardsOf, requestOf } from '../../arguments/profile-files.ts';
import type { Io } from '../../command.ts';
import { PLAN_WAIT_MS, patientClient } from '../../views/service-activity.ts';
import { nextDriver } from './next-driver.ts';

/** What a plan needs of a desired state; not every one has a document. */
export type Planned = Pick<DesiredDocument, 'request' | 'portForwards' | 'prunePortForwards'> &
  Partial<Pick<DesiredDocument, 'locate' | 'files' | 'metadata' | 'maintenance'>>;

/**
 * The plan for a desired state: from the running service, waiting for an observation if needed, otherwise estimated
 * from the stored settings. `live`: the state of the service that it was compared with.
 */
export async function planFor(
  desired: Planned,
  service: Service | undefined,
  io: Io,
  { driver, timeout = PLAN_WAIT_MS }: { driver?: string; timeout?: number },
): Promise<{ plan: Plan; live?: LiveState }> {
  if (!service) return { plan: await estimate(desired, io, driver) };
  if (!service.client.foreign) refuseOtherDriver(service.status.driver.name, driver);
  return patientClient(service.client, io, () => timeout)
    .planWithLive(requestOf(desired), desired.maintenance ? { maintenance: desired.maintenance } : {})
    .catch((error: unknown) => {
      throw errorWithPositions(error, desired.locate);
    });
}

async function estimate(desired: Planned, io: Io, driver: string | undefined): Promise<Plan> {
  const where = homeOf(io);
  const host = hostOf(io);
  const { platform } = host;
  const { policiesOf } = await import('../../arguments/environment.ts');
  const policies = await policiesOf(io, host);
  const stored = await storedSettings(where, platform, host, policies);
  refuseOtherDriver(stored.driver, driver);
  const next = await nextDriver(io, stored.driver, driver);
  const { homeService, mayRun, wasUnclean } = await import('../../../src/client/home-service.ts');
  const home = await homeService(where);
  const facts = {
    ...stored,
    left: mayRun(home),
    cut: wasUnclean(home),
    ...(next.driver === undefined ? {} : { driver: next.driver }),
  };
  const estimated = offlinePlan(desired.request, facts, where, await userFiles(next.driver, io));
  const plan = { ...estimated, warnings: [...next.warnings, ...estimated.warnings] };
  const wanted = forwardsOf(desired);
  return mentionsForwards(wanted) ? withPortForwards(plan, wanted, await storedForwards(where)) : plan;
}

/** The state of the user's files. Where no driver is available yet, assumes a real one. */
async function userFiles(driver: string | undefined, io: Io): Promise<Parameters<typeof offlinePlan>[3]> {
  const hasCluster = driver === 'qemu';
  const targets = hostTargets(io);
  if (driver === 'simulated' || 'offBecause' in targets) return { hasCluster };
  const { previewChanges } = await import('../../../src/features/host-integration/parts.ts');
  return { facts: await previewChanges(targets), hasCluster };
}
