import { release } from 'node:os';
import { join } from 'node:path';
import type { Driver, EngineName } from '../drivers/driver.ts';
import { createServiceDiagnostics, type ServiceDiagnostics } from '../features/diagnostics/diagnostics.ts';
import type { Extensions, RunningEngine } from '../features/extensions/contract.ts';
import { extensionDirectory } from '../features/extensions/directory.ts';
import { openExtensions } from '../features/extensions/manager.ts';
import type { PortForwards } from '../features/port-forwards/manager.ts';
import { type BackendData, createBackendData } from '../features/snapshots/backend-data.ts';
import { defined } from '../json.ts';
import { systemClock } from '../os/clock.ts';
import type { Log } from '../os/limited-log.ts';
import type { Controllers } from '../reconcile/contract.ts';
import type { WriteCounters } from '../reconcile/status-document.ts';
import type { Platform } from '../settings/field.ts';
import { isLocked } from '../settings/locks.ts';
import type { DesiredStore } from '../state/desired-store.ts';
import { readHistory } from '../state/history-file.ts';
import { loadKept, saveKept } from '../state/kept-file.ts';
import { identityOf, type Places } from '../state/places.ts';
import { type Applies, createApplies } from './applies.ts';
import type { Backend } from './backend.ts';
import type { Home } from './home.ts';
import type { ServiceOptions, Undo } from './options.ts';
import { createPlanner, type Planner } from './planner.ts';
import { openPortForwards } from './port-forwards.ts';
import { createWatch, type Watch, type WatchFeed } from './watch/watch.ts';

/** Notices that the status shows; the events and the log have all of them. */
const MOST_NOTICES = 50;

/** The parts of a service beside the backend. */
export interface Features {
  data: BackendData;
  portForwards: PortForwards;
  diagnostics: ServiceDiagnostics;
  extensions: Extensions;
  applies: Applies;
  planner: Planner;
  watch: Watch & WatchFeed;
  counters: WriteCounters;
  /** Calls back whenever the status may have changed. Returns the unsubscribe function. */
  onStatus(listener: () => void): () => void;
}

/**
 * Opens snapshots and resets, port forwards, diagnostics, extensions, applies, planner and watch. Throws `ERR_IO` if one of their files cannot be
 * read.
 */
export async function openFeatures(
  options: ServiceOptions,
  { places, log, listener, notices }: Home,
  backend: Backend,
  undo: Undo[],
): Promise<Features> {
  const { platform, env } = options;
  const { driver, host, policies, store, maintenance, controllers, recovered, integration } = backend;
  const { history, transactions, events, kubernetesVersions } = backend;
  const listeners = new Set<() => void>();
  const statusChanged = () => {
    events.noteNotices(notices);
    for (const listen of listeners) listen();
  };
  const notice = (text: string) => {
    notices.push(text);
    statusChanged();
    notices.splice(0, notices.length - MOST_NOTICES);
    events.noteNotices(notices);
  };
  const since = backend.layers.firstRun?.at;
  const data = createBackendData({
    ...{ places, driver, host, store, maintenance, controllers, recovered, history, notice },
    ...defined({ since }),
    failed: history.failed,
    log: log.write,
  });
  undo.push(['snapshots', () => data.close()]);
  history.onOldest(data.safetySnapshots.prune);
  let watch: (Watch & WatchFeed) | undefined;
  const portForwards = await openPortForwards({
    ...{ places, driver, controllers, store, history, transactions, notice },
    log: log.write,
    onChange: () => watch?.changed(),
  });
  undo.push(['port forwards', () => portForwards.close()]);
  const diagnostics = createServiceDiagnostics({
    platform,
    env,
    ...(options.self ? { self: options.self } : {}),
    data: places.data,
    secretFiles: [
      ...[places.settingsFile, places.previousSettingsFile, places.connectionFile],
      ...[places.keptFile, places.provenFile, places.transactionFile, places.snapshotKey],
    ],
    binDirectory: places.bin,
    contextName: identityOf(places).dockerContext,
    api: { port: listener.port, requested: options.port !== undefined },
    hasCluster: driver.hasCluster,
    ...defined({ confinement: driver.confinement }),
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
    ...{ places, platform, driver, controllers, store },
    log: log.write,
  });
  undo.push(['extensions', () => extensions.close()]);
  controllers.onChange(statusChanged);
  integration.onReport(statusChanged);
  transactions.onChange(statusChanged);
  const applies = createApplies({
    ...{ controllers, extensions, portForwards, clock: systemClock },
    wasRolledBack: transactions.wasRolledBack,
    log: log.write,
    onChange() {
      events.noteApply(applies.report());
      statusChanged();
    },
    onFinished: history.finished,
  });
  undo.push(['applies', async () => applies.close()]);
  const counters = { settingsPuts: 0, settingsWrites: 0 };
  const planner = createPlanner({
    ...{ store, controllers, driver, kubernetesVersions, portForwards, applies, counters },
    host: { platform, arch: process.arch, osVersion: release() },
    idle: options.idle ?? false,
    safetySnapshots: data.safetySnapshots,
    clock: systemClock,
    log: log.write,
    home: places.data,
    measured: history.measured,
    foresee: (write) => watch?.foresee(write) ?? [],
    ...(policies.locked ? { lockedBy: policies.locked.source } : {}),
  });
  const { records, notice: keptNotice } = await loadKept(places.keptFile, systemClock.now);
  if (keptNotice !== undefined) notice(keptNotice);
  watch = createWatch({
    ...{ planner, records, applies },
    oldestRollback: transactions.oldestRollback,
    save: (next) => saveKept(places.keptFile, next),
    files: integration,
    entries: records.length === 0 ? [] : await readHistory(places.historyFile),
    idle: options.idle ?? false,
    startedForApply: options.power === 'stopped',
    maintenance: () => maintenance.doing(),
    generation: () => store.snapshot().desired.generation,
    clock: systemClock,
    log: log.write,
    onChange: statusChanged,
  });
  undo.push(['watch', async () => watch?.close()]);
  listeners.add(watch.changed);
  return {
    ...{ data, portForwards, diagnostics, extensions, applies, planner, watch, counters },
    onStatus(listen) {
      listeners.add(listen);
      return () => listeners.delete(listen);
    },
  };
}

const PATH = 'application.extensions.installed';
const ENGINES: readonly EngineName[] = ['moby', 'containerd'];

interface Parts {
  places: Pick<Places, 'data'>;
  platform: Platform;
  driver: Driver;
  controllers: Controllers;
  store: DesiredStore;
  lockedBy?: string;
  log: Log;
}

/** Opens the extensions of a service, and notifies them of every engine that starts. Throws `ERR_IO`. */
async function serviceExtensions(parts: Parts): Promise<Extensions> {
  const { places, platform, driver, controllers, store, log } = parts;
  const extensions = await openExtensions({
    files: extensionDirectory(join(places.data, 'extensions')),
    platform,
    engine: () => runningEngine(driver, controllers),
    settings: () => store.snapshot().desired.settings.application.extensions,
    lockedBy: () => (isLocked(store.locks, PATH) ? (parts.lockedBy ?? 'a deployment profile') : undefined),
    async record(change, origin) {
      await store.write(({ desired }) => {
        const { settings } = desired;
        const { extensions: before } = settings.application;
        const installed = change({ ...before.installed });
        const application = { ...settings.application, extensions: { ...before, installed } };
        return { next: { settings: { ...settings, application } }, answer: undefined, ...origin };
      });
    },
    fetch: (url, init) => fetch(url, init),
    log,
  });
  let running: string | undefined;
  const checkEngine = () => {
    const now = runningEngine(driver, controllers)?.name;
    if (now !== undefined && now !== running) extensions.engineIsUp();
    running = now;
  };
  const unsubscribe = controllers.onChange(checkEngine);
  checkEngine();
  return {
    ...extensions,
    get ready() {
      return extensions.ready;
    },
    async close() {
      unsubscribe();
      await extensions.close();
    },
  };
}

function runningEngine(driver: Driver, controllers: Controllers): RunningEngine | undefined {
  const { engines } = controllers.status();
  const name = ENGINES.find((engine) => engines[engine].state === 'running');
  if (name === undefined) return undefined;
  const { images, companions } = driver.engines[name];
  return { name, ...(images ? { images } : {}), ...(companions ? { companions } : {}) };
}
