import { join } from 'node:path';
import type { Applies } from '../api/context.ts';
import type { Driver } from '../drivers/driver.ts';
import type { Extensions } from '../features/extensions/contract.ts';
import { createPortForwards, type ForwardsInput, type PortForwards } from '../features/port-forwards/manager.ts';
import { forwardFile } from '../features/port-forwards/store.ts';
import { systemClock } from '../os/clock.ts';
import { identityOf, type Places } from '../state/places.ts';
import { createApplies } from './applies.ts';
import type { Backend } from './backend.ts';
import { type BackendData, createBackendData } from './backend-data.ts';
import { createServiceDiagnostics, type ServiceDiagnostics } from './diagnostics.ts';
import { serviceExtensions } from './extensions.ts';
import type { Home } from './home.ts';
import type { ServiceOptions, Undo } from './options.ts';

/** What a service does beside running the backend. */
export interface Features {
  data: BackendData;
  portForwards: PortForwards;
  diagnostics: ServiceDiagnostics;
  extensions: Extensions;
  applies: Applies;
  /** Calls back whenever the status may have changed. Returns the function that ends it. */
  onStatus(listener: () => void): () => void;
}

/** Opens snapshots and resets, port forwards, diagnostics, extensions and what finishes an apply. */
export async function openFeatures(
  options: ServiceOptions,
  { here, log, listener, notices }: Home,
  { driver, host, policies, store, maintenance, controllers, recovered, integration, kubernetesVersions }: Backend,
  undo: Undo[],
): Promise<Features> {
  const { platform, env } = options;
  const notice = (text: string) => void notices.push(text);
  const data = createBackendData({
    ...{ here, driver, host, store, maintenance, controllers, recovered, notice },
    log: log.write,
  });
  undo.push(['snapshots', () => data.close()]);
  const portForwards = await openPortForwards(here, driver, { controllers, log: log.write, notice });
  undo.push(['port forwards', () => portForwards.close()]);
  const diagnostics = createServiceDiagnostics({
    platform,
    env,
    ...(options.self ? { self: options.self } : {}),
    data: here.data,
    secretFiles: [here.settingsFile, here.previousSettingsFile, here.connectionFile],
    binDirectory: here.bin,
    contextName: identityOf(here).dockerContext,
    api: { port: listener.port, asked: options.port !== undefined },
    hasCluster: driver.hasCluster,
    integration,
    settings: () => store.snapshot().desired.settings,
    kubernetesVersions,
    controllers,
    clock: systemClock,
    log: log.write,
  });
  undo.push(['diagnostics', () => diagnostics.close()]);
  const extensions = await serviceExtensions({
    ...(policies.locked ? { lockedBy: policies.locked.source } : {}),
    ...{ here, platform, driver, controllers, store },
    log: log.write,
  });
  undo.push(['extensions', () => extensions.close()]);
  const listeners = new Set<() => void>();
  const statusChanged = () => {
    for (const listen of listeners) listen();
  };
  controllers.onChange(statusChanged);
  const applies = createApplies({
    ...{ controllers, extensions, portForwards, clock: systemClock },
    log: log.write,
    onChange: statusChanged,
  });
  undo.push(['applies', async () => applies.close()]);
  return {
    ...{ data, portForwards, diagnostics, extensions, applies },
    onStatus(listen) {
      listeners.add(listen);
      return () => listeners.delete(listen);
    },
  };
}

/** The port forwards of this home. The file is beside the recorded state: forwards belong to this machine, not to the settings. */
function openPortForwards(
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
