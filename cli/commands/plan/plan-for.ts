import type { DesiredDocument } from '../../../profiles/document/load.ts';
import { refuseOtherDriver } from '../../../src/client/session/driver.ts';
import type { Service } from '../../../src/client/session/find.ts';
import { defined } from '../../../src/json.ts';
import type { LiveState, Plan } from '../../../src/plan/change.ts';
import type { PlannedHow } from '../../../src/plan/kept.ts';
import { errorWithPositions, requestOf } from '../../arguments/profile-files.ts';
import type { Io } from '../../command.ts';
import { PLAN_WAIT_MS, patientClient } from '../../views/service-activity.ts';

/** The parts of a desired state that a plan reads; not every state has a document. */
export type Planned = Pick<DesiredDocument, 'request' | 'portForwards' | 'prunePortForwards'> &
  Partial<Pick<DesiredDocument, 'locate' | 'files' | 'metadata' | 'maintenance'>>;

interface PlanOptions {
  driver?: string;
  timeout?: number;
  /** Origin of the write that will carry the plan out. */
  how?: PlannedHow;
  /** Whether the plan will be saved. */
  isToSave?: boolean;
}

/**
 * Plans a desired state: with the running service, waiting for an observation if needed; otherwise estimated from the stored settings. `live` is the
 * state of the service that the plan was compared with.
 */
export async function planFor(
  desired: Planned,
  service: Service | undefined,
  io: Io,
  { driver, timeout = PLAN_WAIT_MS, how = 'apply', isToSave = false }: PlanOptions,
): Promise<{ plan: Plan; live?: LiveState }> {
  // Applying a saved plan updates no kept profile.
  const name = isToSave ? undefined : desired.metadata?.name;
  const positioned = (error: unknown) => {
    throw errorWithPositions(error, desired.locate);
  };
  if (!service) {
    const { estimate } = await import('./estimate.ts');
    return { plan: await estimate(requestOf(desired), io, { driver, how, name }).catch(positioned) };
  }
  if (!service.client.foreign) refuseOtherDriver(service.status.driver.name, driver);
  return patientClient(service.client, io, () => timeout)
    .planWithLive(requestOf(desired), {
      ...(desired.maintenance ? { maintenance: desired.maintenance } : {}),
      ...defined({ kept: name }),
      how,
    })
    .catch(positioned);
}
