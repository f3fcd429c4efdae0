import { join } from 'node:path';
import type { Log } from '../api/context.ts';
import type { Driver, EngineName } from '../drivers/driver.ts';
import type { Extensions, RunningEngine } from '../features/extensions/contract.ts';
import { extensionDirectory } from '../features/extensions/directory.ts';
import { openExtensions } from '../features/extensions/manager.ts';
import type { Controllers } from '../reconcile/contract.ts';
import type { Platform } from '../settings/field.ts';
import { isLocked } from '../settings/locks.ts';
import type { DesiredStore } from '../state/desired-store.ts';
import type { Places } from '../state/places.ts';

const PATH = 'application.extensions.installed';
const ENGINES: readonly EngineName[] = ['moby', 'containerd'];

interface Parts {
  here: Pick<Places, 'data'>;
  platform: Platform;
  driver: Driver;
  controllers: Controllers;
  store: DesiredStore;
  lockedBy?: string;
  log: Log;
}

/** The extensions of a service. They hear of every engine that comes up. Throws `ERR_IO`. */
export async function serviceExtensions(parts: Parts): Promise<Extensions> {
  const { here, platform, driver, controllers, store, log } = parts;
  const extensions = await openExtensions({
    files: extensionDirectory(join(here.data, 'extensions')),
    platform,
    engine: () => runningEngine(driver, controllers),
    settings: () => store.snapshot().desired.settings.application.extensions,
    lockedBy: () => (isLocked(store.locks, PATH) ? (parts.lockedBy ?? 'a deployment profile') : undefined),
    async record(change) {
      await store.write(({ desired }) => {
        const { settings, power } = desired;
        const { extensions: before } = settings.application;
        const installed = change({ ...before.installed });
        const application = { ...settings.application, extensions: { ...before, installed } };
        return { next: { settings: { ...settings, application }, power }, answer: undefined };
      });
    },
    fetch: (url, init) => fetch(url, init),
    log,
  });
  let up: string | undefined;
  const look = () => {
    const now = runningEngine(driver, controllers)?.name;
    if (now !== undefined && now !== up) extensions.engineIsUp();
    up = now;
  };
  const stopLooking = controllers.onChange(look);
  look();
  return {
    ...extensions,
    get ready() {
      return extensions.ready;
    },
    async close() {
      stopLooking();
      await extensions.close();
    },
  };
}

function runningEngine(driver: Driver, controllers: Controllers): RunningEngine | undefined {
  const { engines } = controllers.status();
  const name = ENGINES.find((each) => engines[each].state === 'running');
  if (name === undefined) return undefined;
  const { images, companions } = driver.engines[name];
  return { name, ...(images ? { images } : {}), ...(companions ? { companions } : {}) };
}
