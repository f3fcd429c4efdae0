import type { DesiredDocument } from '../../../profiles/document/load.ts';
import { offlinePlan, storedForwards, storedSettings } from '../../../src/client/offline.ts';
import type { StoredHome } from '../../../src/client/offline-kept.ts';
import { refuseOtherDriver } from '../../../src/client/session/driver.ts';
import type { Service } from '../../../src/client/session/find.ts';
import { homeOf } from '../../../src/client/session/home.ts';
import type { LiveState, Plan, PlanRequest } from '../../../src/plan/change.ts';
import type { PlannedHow } from '../../../src/plan/kept.ts';
import { withPortForwards } from '../../../src/plan/port-forwards.ts';
import { hostOf, hostTargets } from '../../arguments/environment.ts';
import { errorWithPositions, requestOf } from '../../arguments/profile-files.ts';
import type { Io } from '../../command.ts';
import { PLAN_WAIT_MS, patientClient } from '../../views/service-activity.ts';
import { nextDriver } from './next-driver.ts';

/** What a plan needs of a desired state; not every one has a document. */
export type Planned = Pick<DesiredDocument, 'request' | 'portForwards' | 'prunePortForwards'> &
  Partial<Pick<DesiredDocument, 'locate' | 'files' | 'metadata' | 'maintenance'>>;

interface PlanOptions {
  driver?: string;
  timeout?: number;
  /** What will carry the plan out. */
  how?: PlannedHow;
  /** The plan will be saved. */
  isToSave?: boolean;
}

/**
 * The plan for a desired state: from the running service, waiting for an observation if needed, otherwise estimated
 * from the stored settings. `live`: the state of the service that it was compared with.
 */
export async function planFor(
  desired: Planned,
  service: Service | undefined,
  io: Io,
  { driver, timeout = PLAN_WAIT_MS, how = 'apply', isToSave = false }: PlanOptions,
): Promise<{ plan: Plan; live?: LiveState }> {
  // Applying a saved plan updates no kept profile.
  const name = isToSave ? undefined : desired.metadata?.name;
  if (!service) return { plan: await estimate(desired, io, { driver, how, name }) };
  if (!service.client.foreign) refuseOtherDriver(service.status.driver.name, driver);
  return patientClient(service.client, io, () => timeout)
    .planWithLive(requestOf(desired), {
      ...(desired.maintenance ? { maintenance: desired.maintenance } : {}),
      ...(name === undefined ? {} : { kept: name }),
      how,
    })
    .catch((error: unknown) => {
      throw errorWithPositions(error, desired.locate);
    });
}

interface EstimateOptions {
  driver: string | undefined;
  how: PlannedHow;
  /** Of the profile. */
  name: string | undefined;
}

async function estimate(desired: Planned, io: Io, { driver, how, name }: EstimateOptions): Promise<Plan> {
  const where = homeOf(io);
  const host = hostOf(io);
  const { platform } = host;
  const { policiesOf } = await import('../../arguments/environment.ts');
  const policies = await policiesOf(io, host);
  const stored = await storedSettings(where, platform, host, policies);
  refuseOtherDriver(stored.driver, driver);
  const next = await nextDriver(io, stored.driver, driver);
  const { homeService, mayRun, wasUnclean } = await import('../../../src/client/home-service.ts');
  const last = await homeService(where);
  const facts = {
    ...stored,
    left: mayRun(last),
    cut: wasUnclean(last),
    ...(next.driver === undefined ? {} : { driver: next.driver }),
  };
  const files = await userFiles(next.driver, io);
  const home = { settings: facts, forwards: await storedForwards(where) };
  const planOf = (request: PlanRequest, { settings, forwards }: StoredHome) => {
    const made = offlinePlan(request, settings, where, files);
    const plan = { ...made, warnings: [...next.warnings, ...made.warnings] };
    return request.portForwards ? withPortForwards(plan, request.portForwards, forwards) : plan;
  };
  const request = requestOf(desired);
  const plan = planOf(request, home);
  const { readKept } = await import('../../../src/state/kept-file.ts');
  const records = await readKept(where.keptFile);
  if (records.length === 0) return plan;
  const { withKept } = await import('../../../src/client/offline-kept.ts');
  const { timeZone: zone } = Intl.DateTimeFormat().resolvedOptions();
  return withKept(plan, request, home, { records, kept: name, how, now: Date.now(), zone, planOf });
}

/** The state of the user's files. Where no driver is available yet, assumes a real one. */
async function userFiles(driver: string | undefined, io: Io): Promise<Parameters<typeof offlinePlan>[3]> {
  const hasCluster = driver === 'qemu';
  const targets = hostTargets(io);
  if (driver === 'simulated' || 'offBecause' in targets) return { hasCluster };
  const { previewChanges } = await import('../../../src/features/host-integration/parts.ts');
  return { facts: await previewChanges(targets), hasCluster };
}
