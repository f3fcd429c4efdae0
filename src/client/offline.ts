import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Policies } from '../../profiles/policies/policy.ts';
import type { ClusterStatus, DriverAtRest, DriverInfo, SupportMatrix } from '../drivers/driver.ts';
import { RdError } from '../errors.ts';
import { defined, type JsonObject, parseObject } from '../json.ts';
import { readIfThere } from '../os/atomic-file.ts';
import { assumeObserved } from '../plan/assumed.ts';
import type { Observed } from '../plan/backend.ts';
import type { Plan, PlanRequest } from '../plan/change.ts';
import type { PlannedDeed } from '../plan/deed.ts';
import { differences } from '../plan/diff.ts';
import { changeName } from '../plan/kept.ts';
import { type LayerFacts, type SettingLayers, settingLayers } from '../plan/layers.ts';
import type { PartialRequest } from '../plan/leave-out.ts';
import { lossesOf } from '../plan/losses.ts';
import { makePlan } from '../plan/plan.ts';
import { type ForwardsReport, isWantedForwards, noCluster } from '../plan/port-forwards.ts';
import { validateRequest } from '../plan/requested.ts';
import { SERVICE_START } from '../plan/runtime-changes.ts';
import { extendPlan } from '../plan/summary.ts';
import type { UserFileFacts } from '../plan/user-files.ts';
import { PRODUCT } from '../product.ts';
import { type Blocks, DEFAULT_BLOCKS } from '../settings/blocks.gen.ts';
import { blocksOf } from '../settings/blocks.ts';
import { defaultSettings, type Host } from '../settings/defaults.ts';
import type { Platform } from '../settings/field.ts';
import { FIELDS } from '../settings/fields.gen.ts';
import { fieldAt, MANAGED_FIELDS } from '../settings/fields.ts';
import { leafAt } from '../settings/leaf-paths.ts';
import { lockRecord } from '../settings/locks.ts';
import { mergeSettings } from '../settings/merge.ts';
import type { Settings } from '../settings/settings.gen.ts';
import type { Places } from '../state/places.ts';
import { loadSettings, usableSettings } from '../state/settings-file.ts';
import { loadState } from '../state/state-file.ts';

/** The host of complete settings, for which no default applies. */
export const ANY_HOST: Omit<Host, 'memoryBytes'> = { platform: 'linux', arch: 'x64' };

/** The settings of the next service, their origin, and the blocks in force, which are absent before the first start. */
export interface StoredSettings extends Partial<Blocks> {
  settings: Settings;
  from: 'file' | 'defaults';
  /** The driver last used in this home; absent before the first start. */
  driver?: string;
  /** Version of the desired state of the last service; absent before the first start. */
  generation?: number;
  /** Desired power when the last service exited; absent before the first start. */
  power?: 'started' | 'stopped';
  /** Lock record of a deployment profile, and its file or registry key. */
  locks?: JsonObject;
  lockedBy?: string;
  /** The settings without a locked profile, if that changes any. */
  unlocked?: Settings;
  /** Warnings about deployment profiles. */
  warnings?: readonly string[];
  /** Whether the last service exited without stopping its backend, which may be running. */
  left?: boolean;
  /** Whether the last service was asked to stop and has not exited. */
  ending?: boolean;
  /** Whether the last service was not stopped: `left`, or the computer was shut down. */
  cut?: boolean;
}

/**
 * Reads the stored settings, or those of a first run if there are none, with deployment profiles applied, as the next service would. Throws
 * `ERR_SETTINGS_FILE` for a corrupt file, as the service does.
 */
export async function readStoredSettings(
  where: Places,
  platform: Platform,
  host: Omit<Host, 'platform'>,
  policies: Pick<Policies, 'defaults' | 'locked' | 'warnings'> = { warnings: [] },
): Promise<StoredSettings> {
  const facts = { ...host, platform };
  const { defaults, locked, warnings } = policies;
  const rest = {
    ...(locked ? { locks: lockRecord(locked.settings), lockedBy: locked.source } : {}),
    ...(warnings.length === 0 ? {} : { warnings }),
    ...(await readRecordedState(where)),
  };
  const inForce = (unlocked: Settings) => {
    const settings = locked ? mergeSettings(unlocked, locked.settings) : unlocked;
    return { settings, ...(isDeepStrictEqual(settings, unlocked) ? {} : { unlocked }) };
  };
  const loaded = await loadSettings(where.settingsFile, where.previousSettingsFile, facts);
  if (loaded.kind === 'missing') {
    const before = await usableSettings(where.previousSettingsFile, facts);
    if (before) return { ...inForce(before), from: 'file', ...rest };
    const first = defaultSettings(facts);
    return { ...inForce(defaults ? mergeSettings(first, defaults.settings) : first), from: 'defaults', ...rest };
  }
  if (loaded.kind === 'loaded') return { ...inForce(loaded.settings), from: 'file', ...rest };
  throw new RdError('ERR_SETTINGS_FILE', `the settings file ${where.settingsFile} is truncated or not JSON`, {
    advice: 'Start the service with `rdctl start`: it moves the file aside and continues.',
  });
}

/**
 * Returns the layers that the next service of this home would have. `facts` are its deployment profiles. Throws the errors of `readStoredSettings`.
 */
export async function layersOfFiles(
  where: Places,
  host: Host,
  policies: Policies,
  facts: LayerFacts,
): Promise<SettingLayers> {
  const found = await readStoredSettings(where, host.platform, host, policies);
  const stored = await readStoredSettings(where, host.platform, host);
  const kept = stored.from === 'file' ? { stored: stored.settings } : {};
  return settingLayers(facts, { basis: 'files', inForce: found.settings, ...kept, ...blocksInForce(found) });
}

/** Returns the stored blocks, or the defaults before the first start. */
function blocksInForce(stored: StoredSettings): Blocks {
  return { ...DEFAULT_BLOCKS, ...blocksOf(stored) };
}

/** Reads the last service's recorded state; empty if the file is missing or corrupt, because only the service may judge it. */
export async function readRecordedState({
  stateFile,
}: Places): Promise<Pick<StoredSettings, 'driver' | 'generation' | 'power' | keyof Blocks>> {
  const loaded = await loadState(stateFile);
  if (loaded.kind !== 'loaded') return {};
  return loaded.state;
}

/** Returns the request in the canonical form of the next service. Throws `ERR_SETTINGS_INVALID` for a request that the service would refuse. */
export function canonicalRequest(
  request: PlanRequest,
  { settings: current }: StoredSettings,
  { platform, arch }: Pick<Host, 'platform' | 'arch'>,
): PlanRequest {
  return validateRequest(request, { platform, arch, current });
}

/** A driver on this computer while no service runs. */
export type RestingDriver = DriverInfo & DriverAtRest;

/** Facts for a plan without a running service. */
export interface OfflineFacts {
  /** The driver of the next service; absent if none can be chosen yet. */
  driver?: RestingDriver;
  /** The state of the user's files. If absent, no file is touched. */
  userFiles?: UserFileFacts;
  /** The forwards of this home; only read when the request has some. */
  forwards?: ForwardsReport;
}

/**
 * Plans without a running service: the plan that the next service would make right after its start, except that nothing was observed. A backend that
 * may have been left running is assumed to run.
 */
export function offlinePlan(
  request: PartialRequest,
  stored: StoredSettings,
  where: Places,
  { driver = ANY_DRIVER, userFiles, forwards }: OfflineFacts,
): PlannedDeed {
  const name = driver === ANY_DRIVER ? (stored.driver ?? 'not chosen yet') : driver.name;
  const { settings, locks = {}, lockedBy, warnings = [] } = stored;
  const runs = mayRun(request, stored);
  const blocks = blocksInForce(stored);
  const { plan: planned, deed } = makePlan({
    ...{ request, live: settings, ...blocks, locks, driver, observed: unobserved(stored, { runs, driver }) },
    ...defined({ lockedBy }),
    power: runs ? (stored.power ?? 'stopped') : 'stopped',
    target: { product: PRODUCT.name, home: where.data, driver: name, simulated: name === 'simulated' },
    generation: 0,
    ...(forwards ? { forwards } : {}),
    ...(userFiles ? { userFiles: filesAfterStart(userFiles, request, settings) } : {}),
  });
  const { tag: _, ...plan } = planned;
  const begins = runs && stored.power === 'started' && request.state !== 'stopped';
  const { changes, summary } = begins ? extendPlan(plan, { before: [SERVICE_START] }) : plan;
  const who = stored.ending ? 'The service is ending' : 'No service is running';
  const note =
    stored.from === 'file'
      ? `${who}: compared with the stored settings.`
      : `${who} and nothing is stored: compared with the defaults.`;
  const estimated: Plan = {
    ...plan,
    basis: 'estimated',
    changes,
    summary: { ...summary, text: summary.text.replace(', nothing is lost', ', estimated') },
    warnings: [note, ...warnings, ...policyWarnings(stored), ...plan.warnings],
  };
  const needsSafetySnapshot = lossesOf(estimated).length > 0 && request.snapshot !== false;
  return { plan: needsSafetySnapshot ? { ...estimated, snapshot: {} } : estimated, deed };
}

/** Returns warnings about the changes that a locked profile makes at the next start, before any plan. */
function policyWarnings({ settings, unlocked, lockedBy, from }: StoredSettings): string[] {
  if (unlocked === undefined || from === 'defaults') return [];
  const prune = FIELDS.filter(({ type }) => type.startsWith('map<')).map(({ path }) => path);
  const changes = differences({ settings: unlocked }, { settings: JSON.parse(JSON.stringify(settings)), prune });
  return changes.map((difference) => {
    const isSecret = fieldAt(difference.path)?.sensitive === true;
    const [old, now] = [difference.before, difference.after].map((value) => JSON.stringify(value ?? null));
    const values = isSecret ? '' : ` from ${old} to ${now}`;
    return `The next start sets ${changeName(difference)}${values}, as ${lockedBy} says.`;
  });
}

/** The driver of a plan that is made before one can run here, or of another application: it supports everything. */
export const ANY_DRIVER: RestingDriver = {
  name: 'qemu',
  simulated: false,
  summary: '',
  support: Object.fromEntries(
    MANAGED_FIELDS.map(({ path }) => [path, { level: 'enforced' }]),
  ) as unknown as SupportMatrix,
  liveFields: [],
  hasCluster: true,
};

/**
 * Whether the backend may be running: it outlived the last service, or the next one starts it before it gets the request, because a shutdown of the
 * computer cut it off.
 */
function mayRun({ state }: PlanRequest, { left, cut, power }: StoredSettings): boolean {
  return left === true || (state === 'unmanaged' && cut === true && power === 'started');
}

/** Returns the assumed observation. Nothing runs if the last service stopped its backend. */
function unobserved(stored: StoredSettings, { runs, driver }: { runs: boolean; driver: RestingDriver }): Observed {
  const { hasCluster, installedCluster: installedVersion } = driver;
  const resting: ClusterStatus =
    installedVersion === undefined ? { state: 'absent' } : { state: 'stopped', installedVersion };
  const seen: Observed = {
    machine: { state: 'off' },
    engines: { moby: { state: 'stopped' }, containerd: { state: 'stopped' } },
    cluster: hasCluster ? resting : { state: 'unsupported' },
  };
  if (!runs) return seen;
  return assumeObserved({
    seen,
    last: { settings: stored.unlocked ?? stored.settings, ...blocksInForce(stored) },
    driver,
    reason: 'no service is running',
  });
}

/**
 * Returns the user's files after the start of a service. It does not remove an autostart entry that it did not create, and first follows the stored
 * settings.
 */
function filesAfterStart(facts: UserFileFacts, { settings: wanted }: PlanRequest, settings: Settings): UserFileFacts {
  const ends = settings.application.autoStart && leafAt(wanted, 'application.autoStart') === false;
  return ends ? { ...facts, done: { autoStart: true } } : facts;
}

/** Reads the forwards of this home's next service. A file that the service could not use counts as empty. */
export async function readStoredForwards({ state }: Places, driver: DriverInfo | undefined): Promise<ForwardsReport> {
  const text = await readIfThere(join(state, 'port-forwards.json')).catch(() => undefined);
  const reason = 'no service is running';
  return {
    kind: 'PortForwards',
    formatVersion: 1,
    ...(driver?.hasCluster === false ? { supported: false, reason: noCluster(driver.name) } : { supported: true }),
    portForwards: entriesIn(text).map((entry) => ({ ...entry, state: 'waiting', reason, connections: 0 })),
  };
}

function entriesIn(text: string | undefined) {
  const wanted = { entries: parseObject(text ?? '')?.portForwards ?? null, exclusive: false };
  if (!isWantedForwards(wanted)) return [];
  return wanted.entries.flatMap((entry) => (entry.hostPort === null ? [] : [{ ...entry, hostPort: entry.hostPort }]));
}
