import { arch, homedir, release, totalmem } from 'node:os';
import type { DesiredDocument } from '../profiles/document.ts';
import { offlinePlan, storedSettings } from '../src/client/offline.ts';
import { withPortForwards } from '../src/client/port-forwards.ts';
import type { Plan } from '../src/plan/change.ts';
import { places } from '../src/storage/places.ts';
import type { Io } from './command.ts';
import { refuseOtherDriver } from './driver-name.ts';
import { withPlaces } from './placed-errors.ts';
import { supportedPlatform } from './platform.ts';
import type { Service } from './service.ts';

/** The plan for a desired state: by the service if one runs, else estimated from what is stored. */
export async function planFor(
  desired: DesiredDocument,
  service: Service | undefined,
  io: Io,
  driver: string | undefined,
): Promise<Plan> {
  if (service) refuseOtherDriver(service.status.driver.name, driver);
  const plan = service
    ? await service.client.plan(desired.request, { signal: io.signal }).catch((error: unknown) => {
        throw withPlaces(error, desired.locate);
      })
    : await estimate(desired, io, driver);
  return withPortForwards(plan, desired.portForwards);
}

async function estimate(desired: DesiredDocument, io: Io, driver: string | undefined): Promise<Plan> {
  const platform = supportedPlatform(io.platform);
  const where = places(io.env, platform, homedir());
  const host = { arch: arch(), osRelease: release(), memoryBytes: totalmem() };
  const { policiesOf } = await import('./policies.ts');
  const policies = await policiesOf(io, { ...host, platform });
  const stored = await storedSettings(where, platform, host, policies);
  refuseOtherDriver(stored.driver, driver);
  const asked = stored.driver ?? (driver || io.env.RDCTL_DRIVER || undefined);
  const { homeService, mayRun } = await import('../src/client/home-service.ts');
  const left = mayRun(await homeService(where));
  return offlinePlan(desired.request, { ...stored, left, ...(asked === undefined ? {} : { driver: asked }) }, where);
}
