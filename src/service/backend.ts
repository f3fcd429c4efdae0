import { release, totalmem } from 'node:os';
import { withOfferedVersion } from '../../profiles/policies/interpretation.ts';
import { policyPlaces, policyPrograms } from '../../profiles/policies/places.ts';
import { layerFacts, type Policies } from '../../profiles/policies/policy.ts';
import { readPolicies } from '../../profiles/policies/read.ts';
import { BACKEND_STOP_MS } from '../client/home-service.ts';
import type { Driver } from '../drivers/driver.ts';
import { RdError } from '../errors.ts';
import type { EventBody } from '../events/event.ts';
import { createHostIntegration, type FollowingIntegration } from '../features/host-integration/integration.ts';
import { prepareKey } from '../features/snapshots/adoption.ts';
import { type Recovered, recoverBackend } from '../features/snapshots/recovery.ts';
import { defined, type JsonObject } from '../json.ts';
import { systemClock } from '../os/clock.ts';
import type { LogFile } from '../os/log-file.ts';
import { userHome } from '../os/user-directories.ts';
import { unprotected } from '../plan/blocks.ts';
import { type Author, lastingChanges, type RecordedChange, recordedChanges } from '../plan/history.ts';
import type { FirstRun, LayerFacts } from '../plan/layers.ts';
import { decideUpdate, type UpdateContext, updateError } from '../plan/settings-update.ts';
import type { Controllers, Desired, LoopStatus } from '../reconcile/contract.ts';
import { createControllers } from '../reconcile/controllers.ts';
import { createMaintenance, IDLE, type Maintenance } from '../reconcile/maintenance.ts';
import { DEFAULT_BLOCKS } from '../settings/blocks.gen.ts';
import { blocksOf } from '../settings/blocks.ts';
import { SCHEMA_VERSION, type Settings } from '../settings/settings.gen.ts';
import { backendLock } from '../state/backend-lock.ts';
import {
  createDesiredStore,
  type DesiredStore,
  type DesiredStoreInput,
  type Recorded,
} from '../state/desired-store.ts';
import { finishWrite, readWrittenSettings, recordWritten, saveDesired, stateOf } from '../state/desired-write.ts';
import { readWholeHistory } from '../state/history-file.ts';
import type { Places } from '../state/places.ts';
import { withReserve } from '../state/reserve.ts';
import { saveSettings } from '../state/settings-file.ts';
import { type SettingsHost, startupSettings } from '../state/startup-settings.ts';
import { readFirstRun, recordFirstRun, saveState } from '../state/state-file.ts';
import { transactionFiles } from '../state/transaction-files.ts';
import { clusterVersions, openDriver, readStoredState } from './driver.ts';
import { writeDurably } from './durable-write.ts';
import { createServiceEvents, type ServiceEvents, serviceEvent } from './events.ts';
import { openServiceHistory, recordedPhases, type ServiceHistory } from './history.ts';
import type { Home } from './home.ts';
import type { ServiceOptions, Undo } from './options.ts';
import type { Transactions } from './transactions/contract.ts';
import { createTransactions } from './transactions/transactions.ts';

/** The desired state, the loop that reaches it, and the integration with the user's files. */
export interface Backend {
  driver: Driver;
  /** Why this driver was chosen. */
  reason: string;
  host: SettingsHost;
  policies: Policies;
  layers: LayerFacts;
  kubernetesVersions(): readonly string[] | undefined;
  controllers: Controllers;
  store: DesiredStore;
  history: ServiceHistory;
  maintenance: Maintenance;
  recovered: Recovered;
  integration: FollowingIntegration;
  transactions: Transactions;
  events: ServiceEvents;
  /** True while the lock file of a snapshot operation exists. */
  isLocked(): Promise<boolean>;
  isLockedByOther(): Promise<boolean>;
}

/** Callbacks and queries of the service that the backend needs. */
export interface BackendHooks {
  isStopping(): boolean;
  /** Called with every new desired state and its origin, once it is durable. */
  onDesired: DesiredStoreInput['onChange'];
  /** Called after every durable write, including the first one at startup. */
  onWritten(by: Author): void;
  /** True while a restored snapshot has not been seen running; undefined while the service starts. */
  isRestoreUnproven(): boolean | undefined;
  /** The `mayDelete` of the loop; false while the service starts. */
  mayDelete(installed: string): boolean;
}

/**
 * Recovers the state that an earlier service left, determines the initial desired state, and starts the loop.
 * @throws RdError when no driver can run, or settings or policies are unusable.
 */
export async function openBackend(
  options: ServiceOptions,
  { places, log, notices, adopts, ending, check }: Home,
  undo: Undo[],
  hooks: BackendHooks,
): Promise<Backend> {
  const { platform } = options;
  const host: SettingsHost = { platform, arch: process.arch, osRelease: release(), memoryBytes: totalmem() };
  const state = await readStoredState(places, options, notices);
  const policies = await servicePolicies(options, host);
  const { driver, reason } = await openDriver(options, state, places, log);
  undo.push(['driver', async () => driver.release?.()]);
  // Must come first: undoing a restore also undoes its settings write, which would otherwise be completed afterwards.
  const finished = await finishWrite(places, state);
  const recovered = await recoverBackend({
    ...places,
    kept: driver.keeps,
    ...(state ? { generation: state.generation } : {}),
  });
  notices.push(...recovered.notices);
  const root = places.snapshots;
  const keyless = await prepareKey({ root, wasUsed: state !== undefined, log: log.write });
  if (keyless !== undefined) notices.push(keyless);
  if (finished === 'completed' && !recovered.undone) {
    notices.push('A change of settings that the last service was making when it ended is complete now.');
  }
  const startup = await startupSettings(places, policies, host, Date.now());
  const { firstRun } = startup;
  notices.push(...startup.notices);
  const versions = await clusterVersions(driver, log);
  const kubernetesVersions = () => versions;
  const stored = withOfferedVersion(startup.settings, policies, { firstRun, versions, warnings: notices });
  const settings = initialSettings(stored, options.settings, {
    driver,
    host,
    kubernetesVersions,
    locks: startup.locks,
  });
  const history = await openServiceHistory(places, state, options, log);
  const known = await readWholeHistory(places.historyFile);
  const written = state && !recovered.undone ? await readWrittenSettings(places, host, known.entries) : undefined;
  const found = {
    settings: startup.stored,
    ...(state ? blocksOf(state) : DEFAULT_BLOCKS),
    power: options.power === 'keep' ? (state?.power ?? 'started') : options.power,
    // Incremented on every start, so that a crash between the writes of the two files never gives two states the same number.
    generation: Math.max(state?.generation ?? 0, history.last) + 1,
  };
  const edits = written ? recordedChanges({ ...found, settings: written }, found) : [];
  const isBoth = edits.length > 0 && recordedChanges(found, { ...found, settings }).length > 0;
  const initial = { ...found, settings, generation: found.generation + (isBoth ? 1 : 0) };
  const events = createServiceEvents({ history: known, generation: initial.generation, now: systemClock.now });
  events.emit(serviceEvent('started'));
  // A history without a state outlived a reset.
  if (!state && history.last > 0) await history.beginAgain(initial.generation);
  if (written && edits.length > 0) {
    const edit: Author = { how: 'edit' };
    await history.writing({ ...found, settings: written }, found, edit);
    events.emit(changeEvent(found, edit, edits));
    hooks.onWritten(edit);
    if (startup.isFromFile) notices.push(editedNotice(places.settingsFile, edits));
  }
  // An apply launches a service stopped, so nobody asked for the power at startup.
  // A release that was installed meanwhile may have other fields.
  const undone = recovered.undone?.version === settings.version ? recovered.undone : undefined;
  const before = { ...initial, settings: undone ?? (state ? startup.stored : settings) };
  const byPolicy = !undone && settings === startup.settings && recordedChanges(before, initial).length > 0;
  const starter: Author = { how: byPolicy ? 'policy' : 'start' };
  const isOn = initial.power === 'started' && !options.idle;
  const isStart = isOn && !adopts && !byPolicy && state !== undefined;
  const changes = await history.writing(before, initial, starter, { isStart });
  if (changes.length > 0) events.emit(changeEvent(initial, starter, changes));
  if (lastingChanges({ changes }).length === 0 && !undone) history.continueLeft(initial.power);
  const isChanged = startup.unsaved || settings !== startup.settings;
  if (state && isChanged && !startup.fileIsGarbled) {
    // A copy, because settings that were never saved differ from the file, too.
    const stored = { ...state, settings: { ...startup.stored } };
    await saveDesired(places, driver.name, { before: stored, next: initial });
  } else {
    await saveState(places.stateFile, stateOf(driver.name, initial));
    const previous = startup.fileIsGarbled ? undefined : places.previousSettingsFile;
    if (isChanged) await saveSettings(places.settingsFile, previous, settings);
    if (isChanged || !written || edits.length > 0) await recordWritten(places, initial);
  }
  hooks.onWritten(starter);
  const layers = await serviceLayers(policies, places, { host, firstRun, now: Date.now() });
  setLogLevel(log, settings);
  for (const notice of notices) log.write('warn', notice);

  const files = transactionFiles(places, host);
  const [proven, left] = [await files.readProven(), await files.readTransaction()];
  const lock = backendLock(places.backendLock, undefined, withReserve(places.state));
  const { initialHold } = recovered;
  const hold = initialHold?.hold ?? (options.idle ? IDLE : undefined);
  const controllers = createControllers({
    driver,
    desired: hold ? { ...initial, hold } : initial,
    clock: systemClock,
    random: Math.random,
    log: log.write,
    check,
    mayDelete: hooks.mayDelete,
    givesUp: (failure, ms) => transactions.givesUp(failure, ms),
  });
  undo.push(['history', () => history.close()]);
  const transactions = createTransactions({
    ...{ files, proven, left, initial, controllers, history, driver, locks: startup.locks },
    power: state?.power ?? initial.power,
    desired: () => store.snapshot().desired,
    write: (decide) => store.write(decide),
    isHeld: () => maintenance.heldBy() !== undefined,
    isRestoreUnproven: () => hooks.isRestoreUnproven() ?? recovered.unproven !== undefined,
    idle: options.idle ?? false,
    clock: systemClock,
    log: log.write,
  });
  const unfollow = events.follow(controllers);
  undo.push(['events', async () => unfollow()]);
  history.onOutcome((generation, { result, reason }) =>
    events.emit({ type: 'outcome', outcome: { generation, result, ...defined({ reason }) } }),
  );
  // Must follow the transactions, which decide whether a failure is undone.
  history.follow(controllers, transactions.aftermath);
  const save = (next: Desired, before: Desired) => saveDesired(places, driver.name, { before, next });
  const store = createDesiredStore({
    initial,
    locks: startup.locks,
    async persist(next, before, by, recorded) {
      if (hooks.isStopping()) throw new RdError('ERR_NOT_READY', 'the service is shutting down');
      check();
      const changes = await writeDurably({ history, transactions, save }, { before, next, by, recorded });
      hooks.onWritten(by);
      events.emit(changeEvent(next, by, changes, recorded));
    },
    onChange(next, what, written) {
      if (what === 'number only') controllers.renumber(next.generation);
      else {
        setLogLevel(log, next.settings);
        integration.settingsChanged(next);
        maintenance.desire(next);
      }
      hooks.onDesired(next, what, written);
    },
  });
  const maintenance = createMaintenance({
    lock,
    controllers,
    desired: () => store.snapshot().desired,
    clock: systemClock,
    log: log.write,
    onWork: (maintenance) => events.emit({ type: 'maintenance', maintenance }),
    ...(initialHold ? { initialHold } : {}),
    ...(options.idle ? { idle: IDLE } : {}),
  });
  // Closed after the backend, because it resets the docker context of an engine that has stopped.
  const integration = createHostIntegration({ ...options, places, settings, driver, clock: systemClock, log });
  ending.integration = integration;
  undo.push(['host integration', () => integration.close()]);
  ending.backendStopped = false;
  undo.push([
    'backend',
    async () => {
      await store.idle();
      const { desired } = store.snapshot();
      const by = desired.power === 'started' && !options.idle ? ending.by : undefined;
      const recordEnd = by && history.stopping(desired.generation + 1, by);
      const { hasStopped, phases } = await stopBackend(controllers, desired, log, options.stopLimitMs);
      ending.backendStopped = hasStopped;
      const failure = { result: 'failed', reason: 'The backend did not stop.' } as const;
      await recordEnd?.({ ...(hasStopped ? { result: 'converged' } : failure), phases });
    },
  ]);
  undo.push(['maintenance', () => maintenance.close()]);
  // Before the backend goes off, because that shutdown is not the outcome of a change.
  undo.push(['transactions', () => transactions.close()]);
  undo.push(['outcomes', async () => history.unfollow()]);
  return {
    ...{ driver, reason, host, policies, layers, kubernetesVersions },
    ...{ controllers, store, history, maintenance, recovered, integration, transactions, events },
    isLocked: () => lock.isHeld(),
    isLockedByOther: async () => ((await lock.read()) ?? { holder: true }).holder === undefined,
  };
}

function changeEvent(
  { generation }: Desired,
  by: Author,
  changes: RecordedChange[],
  { loss }: Pick<Recorded, 'loss'> = {},
): EventBody {
  return { type: 'change', change: { generation, by, changes, ...(loss ? { loss } : {}) } };
}

/** Settings that one notice names; the rest are counted. */
const NAMED = 3;

function editedNotice(file: string, edits: readonly RecordedChange[]): string {
  const names = [...new Set(edits.map(({ path }) => `"${path}"`))];
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
  return `${file} was changed while no service ran, and is in force: ${names.slice(0, NAMED).join(', ')}${more}. \`rdctl history\` shows what was there before.`;
}

/** Reads the deployment profiles in force. Throws `ERR_PROFILE_INVALID` for an unusable one. */
function servicePolicies({ env, platform, policies }: ServiceOptions, host: SettingsHost): Promise<Policies> {
  const sources = {
    places: policies?.places ?? policyPlaces(env, platform, userHome(env, platform)),
    programs: policies?.programs ?? policyPrograms(),
  };
  return readPolicies(sources, host);
}

/** Returns the profile layers above and below the stored settings. Records a first run. */
async function serviceLayers(
  policies: Policies,
  places: Places,
  { host, firstRun, now }: { host: SettingsHost; firstRun: boolean; now: number },
): Promise<LayerFacts> {
  const path = places.firstRunFile;
  const current: FirstRun = {
    at: new Date(now).toISOString(),
    ...(policies.defaults ? { defaults: policies.defaults.source } : {}),
  };
  if (firstRun) await recordFirstRun(path, current);
  const recorded = firstRun ? current : await readFirstRun(path);
  return layerFacts(policies, {
    host,
    settingsFile: places.settingsFile,
    ...(recorded ? { firstRun: recorded } : {}),
  });
}

function setLogLevel(log: LogFile, settings: Settings): void {
  log.setLevel(settings.application.debug ? 'debug' : 'info');
}

/** Stops the backend within a limit, without changing the stored desired power. Returns whether it has stopped, and its steps. */
async function stopBackend(
  controllers: Controllers,
  desired: Desired,
  log: LogFile,
  limitMs = BACKEND_STOP_MS,
): Promise<{ hasStopped: boolean; phases: ReturnType<typeof recordedPhases> }> {
  const hold = { keep: 'off', reason: 'The service is stopping.', stopping: true } as const;
  controllers.desire({ ...desired, power: 'stopped', generation: desired.generation + 1, hold });
  const status = await settleAndClose(controllers, AbortSignal.timeout(limitMs), limitMs);
  const { backendState } = status;
  const hasStopped = backendState === 'STOPPED';
  if (!hasStopped) log.write('error', 'the backend did not stop', { backendState });
  return { hasStopped, phases: recordedPhases(status) };
}

/** Closes the loop once it has settled or the signal aborts. Waits for a step in progress, up to the limit. */
export async function settleAndClose(
  controllers: Controllers,
  signal: AbortSignal,
  limitMs: number,
): Promise<LoopStatus> {
  const status = await controllers.quiesce(signal);
  const closed = new AbortController();
  await Promise.race([controllers.close(), systemClock.sleep(limitMs, closed.signal)]);
  closed.abort();
  return status;
}

/** Returns the initial settings with the caller's changes. Throws if the driver cannot enforce a requested protection. */
function initialSettings(settings: Settings, changes: JsonObject | undefined, context: UpdateContext): Settings {
  const update =
    changes && decideUpdate({ version: SCHEMA_VERSION, ...changes }, settings, { ...context, locksFirst: true });
  if (update?.kind === 'refused') {
    throw updateError(update.problems, { advice: 'Nothing was started or changed.' });
  }
  const chosen = update?.kind === 'changed' ? update.settings : settings;
  const [missing] = unprotected(chosen, context.driver);
  if (!missing) return chosen;
  const { name } = context.driver;
  throw new RdError(
    'ERR_SETTING_UNSUPPORTED',
    `${missing.path} is true, and the ${name} driver cannot enforce it: ${missing.reason}`,
    { advice: 'Set it to false in the settings file or the deployment profile, or use a driver that enforces it.' },
  );
}
