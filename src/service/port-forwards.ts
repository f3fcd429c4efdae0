import { join } from 'node:path';
import type { Driver } from '../drivers/driver.ts';
import { createPortForwards, type ForwardsInput, type PortForwards } from '../port-forwards/manager.ts';
import { forwardFile } from '../port-forwards/store.ts';
import { systemClock } from '../reconcile/clock.ts';
import type { Places } from '../storage/places.ts';

/** The port forwards of this home. The file is beside the recorded state: forwards belong to this machine, not to the settings. */
export function openPortForwards(
  { state }: Places,
  driver: Driver,
  { controllers, log, notice }: Pick<ForwardsInput, 'controllers' | 'log' | 'notice'>,
): Promise<PortForwards> {
  return createPortForwards({
    store: forwardFile(join(state, 'port-forwards.json')),
    cluster: driver.cluster,
    driverName: driver.name,
    controllers,
    clock: systemClock,
    log,
    notice,
  });
}
