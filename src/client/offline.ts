import { join } from 'node:path';
import type { Policies } from '../../profiles/policies/policy.ts';
import { RdError } from '../errors.ts';
import { type JsonObject, parseObject } from '../json.ts';
import { readIfThere } from '../os/atomic-file.ts';
import type { Change, Plan, PlanRequest } from '../plan/change.ts';
import { lossesOf } from '../plan/losses.ts';
import { type EstimatedFiles, estimatePlan } from '../plan/offline.ts';
import { type ForwardsReport, isWantedForwards } from '../plan/port-forwards.ts';
import { checkedRequest } from '../plan/requested.ts';
import { powerChange, SERVICE_START } from '../plan/runtime-changes.ts';
import { PRODUCT } from '../product.ts';
import { defaultSettings, type Host } from '../settings/defaults.ts';
import type { Platform } from '../settings/field.ts';
import { lockRecord } from '../settings/locks.ts';
import { DEFAULT_MACHINE_OPTIONS, type MachineOptions } from '../settings/machine-options.gen.ts';
import { mergeSettings } from '../settings/merge.ts';
import type { Settings } from '../settings/settings.gen.ts';
import type { Places } from '../state/places.ts';
import { loadSettings, usableSettings } from '../state/settings-file.ts';
import { loadState } from '../state/state-file.ts';

/** For complete settings, where no default applies. */
export const ANY_HOST: Omit<Host, 'memoryBytes'> = { platform: 'linux', arch: 'x64' };

/** The settings of the next service, and their origin. */
export interface StoredSettings {
  settings: Settings;
  from: 'file' | 'defaults';
  /** The driver last used in this home; absent before the first start. */
  driver?: string;
  /** Version of the desired state of the last service; absent before the first start. */
  generation?: number;
  /** Desired power when the last service exited; absent before the first start. */
  power?: 'started' | 'stopped';
  /** The `machine` block in force; absent before the first start. */
  machine?: MachineOptions;
  /** Lock record of a deployment profile, and its file or registry key. */
  locks?: JsonObject;
  lockedBy?: string;
  /** Warnings about deployment profiles. */
  warnings?: readonly string[];
  /** The last service exited without stopping its backend, which may be running. */
  left?: boolean;
  /** The last service was asked to stop and has not exited. */
  ending?: boolean;
  /** The last service was not stopped: `left`, or the computer was shut down. */
  cut?: boolean;
}

/**
 * Reads the stored settings, or those of a first run if there are none, with deployment profiles applied, as the next
 * service would. Throws `ERR_SETTINGS_FILE` as the service does, also for a corrupt file.
 */
export async function storedSettings(
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
    ...(await recordedState(where)),
  };
  const inForce = (settings: Settings) => (locked ? mergeSettings(settings, locked.settings) : settings);
  const loaded = await loadSettings(where.settingsFile, where.previousSettingsFile, facts);
  if (loaded.kind === 'missing') {
    const before = await usableSettings(where.previousSettingsFile, facts);
    if (before) return { settings: inForce(before), from: 'file', ...rest };
    const first = defaultSettings(facts);
    return { settings: inForce(defaults ? mergeSettings(first, defaults.settings) : first), from: 'defaults', ...rest };
  }
  if (loaded.kind === 'loaded') return { settings: inForce(loaded.settings), from: 'file', ...rest };
  throw new RdError('ERR_SETTINGS_FILE', `the settings file ${where.settingsFile} is truncated or not JSON`, {
    advice: 'Start the service with `rdctl start`: it moves the file aside and continues.',
  });
}

/** The last service's recorded state; empty where the file is missing or corrupt, because only the service may judge it. */
export async function recordedState({
  stateFile,
}: Places): Promise<Pick<StoredSettings, 'driver' | 'generation' | 'power' | 'machine'>> {
  const loaded = await loadState(stateFile);
  if (loaded.kind !== 'loaded') return {};
  const { driver, generation, power, machine } = loaded.state;
  return { driver, generation, power, machine };
}

/** The request in canonical form, as the next service would take it. Throws `ERR_SETTINGS_INVALID` for what it would refuse. */
export function acceptedRequest(
  request: PlanRequest,
  { settings: current }: StoredSettings,
  { platform, arch }: Pick<Host, 'platform' | 'arch'>,
): PlanRequest {
  return checkedRequest(request, { platform, arch, current });
}

/** The plan without a running service. `userFiles`: the known state of the user's files. */
export function offlinePlan(
  request: PlanRequest,
  stored: StoredSettings,
  where: Places,
  userFiles: Omit<EstimatedFiles, 'on'>,
): Plan {
  const target = {
    product: PRODUCT.name,
    home: where.data,
    driver: stored.driver ?? 'not chosen yet',
    simulated: stored.driver === 'simulated',
  };
  const { locks, lockedBy, warnings = [] } = stored;
  const on = request.state === 'unmanaged' ? shouldRun(stored) : request.state === 'started';
  const plan = estimatePlan({
    request,
    base: stored.settings,
    machine: stored.machine ?? DEFAULT_MACHINE_OPTIONS,
    target,
    idle: isIdle(request, stored),
    userFiles: { ...userFiles, on },
    power: powerChanges(request, stored),
    ...(locks ? { locks } : {}),
    ...(lockedBy === undefined ? {} : { lockedBy }),
  });
  const who = stored.ending ? 'The service is ending' : 'No service is running';
  const note =
    stored.from === 'file'
      ? `${who}: compared with the stored settings.`
      : `${who} and nothing is stored: compared with the defaults.`;
  const cover = lossesOf(plan).length > 0 && request.snapshot !== false ? { snapshot: {} } : {};
  return { ...plan, ...cover, warnings: [note, ...warnings, ...plan.warnings] };
}

/**
 * True when the settings are applied to a stopped backend. After an unclean shutdown, a profile that does not manage
 * power has the next service start what ran, and the settings then restart it; a profile that stops it does so before
 * the settings.
 */
function isIdle(request: PlanRequest, stored: StoredSettings): boolean {
  if (request.state === 'stopped') return true;
  return !stored.left && !(request.state === 'unmanaged' && shouldRun(stored));
}

/** It was meant to run, and was not stopped. */
function shouldRun({ power, cut }: StoredSettings): boolean {
  return cut === true && power === 'started';
}

function powerChanges({ state }: PlanRequest, stored: StoredSettings): Change[] {
  const ran = stored.left === true && stored.power === 'started';
  // Where nothing can still be running, this is an ordinary start.
  if (state === 'started') return [ran ? SERVICE_START : powerChange('started')];
  if (state === 'stopped') return ran ? [STOP_LEFT] : [];
  return shouldRun(stored) ? [SERVICE_START] : [];
}

const STOP_LEFT = powerChange('stopped', {
  severity: 'restart',
  reason: 'stops everything left running by the last service',
});

/** The forwards of this home's next service. A file that the service could not use counts as empty. */
export async function storedForwards({ state }: Places): Promise<ForwardsReport> {
  const text = await readIfThere(join(state, 'port-forwards.json')).catch(() => undefined);
  const reason = 'no service is running';
  return {
    kind: 'PortForwards',
    formatVersion: 1,
    supported: true,
    portForwards: entriesIn(text).map((entry) => ({ ...entry, state: 'waiting', reason, connections: 0 })),
  };
}

function entriesIn(text: string | undefined) {
  const wanted = { entries: parseObject(text ?? '')?.portForwards ?? null, exclusive: false };
  if (!isWantedForwards(wanted)) return [];
  return wanted.entries.flatMap((entry) => (entry.hostPort === null ? [] : [{ ...entry, hostPort: entry.hostPort }]));
}
