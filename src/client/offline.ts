import type { Policies } from '../../profiles/policies/policy.ts';
import { RdError } from '../errors.ts';
import type { JsonObject } from '../json.ts';
import type { Change, Plan, PlanRequest } from '../plan/change.ts';
import { type EstimatedFiles, estimatePlan, START } from '../plan/offline.ts';
import { SERVICE_START } from '../plan/runtime-changes.ts';
import { PRODUCT } from '../product.ts';
import { defaultSettings, type Host } from '../settings/defaults.ts';
import type { Platform } from '../settings/field.ts';
import { lockRecord } from '../settings/locks.ts';
import { mergeSettings } from '../settings/merge.ts';
import type { Settings } from '../settings/settings.gen.ts';
import type { Places } from '../storage/places.ts';
import { loadSettings, usableSettings } from '../storage/settings-file.ts';
import { loadState } from '../storage/state-file.ts';

/** For settings that are complete already, so that no default is ever taken. */
export const ANY_HOST: Omit<Host, 'memoryBytes'> = { platform: 'linux', arch: 'x64' };

/** Settings as the next service would find them, and where they come from. */
export interface StoredSettings {
  settings: Settings;
  from: 'file' | 'defaults';
  /** Driver that a service of this home has used; absent before the first start. */
  driver?: string;
  /** Desired power when the last service ended; absent before the first start. */
  power?: 'started' | 'stopped';
  /** Record of what a deployment profile locks, and the file or registry key of that profile. */
  locks?: JsonObject;
  lockedBy?: string;
  /** Sentences about deployment profiles. */
  warnings?: readonly string[];
  /** The last service ended without a stop, so that its backend may run. */
  left?: boolean;
  /** Nobody stopped the last service: `left`, or it ended with the computer. */
  cut?: boolean;
}

/**
 * Reads the stored settings, or gives those of a first run where nothing is stored, as the next service would begin with them:
 * with the deployment profiles. Throws `ERR_SETTINGS_FILE` as the service does, and for a corrupt file.
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
  throw new RdError('ERR_SETTINGS_FILE', `the settings file ${where.settingsFile} is cut off or not JSON`, {
    advice: 'Start the service with `rdctl start`: it sets the file aside and goes on.',
  });
}

/** What the last service recorded; nothing where the file is missing or broken, because the service alone judges it. */
export async function recordedState({ stateFile }: Places): Promise<Pick<StoredSettings, 'driver' | 'power'>> {
  const loaded = await loadState(stateFile);
  if (loaded.kind !== 'loaded') return {};
  const { driver, power } = loaded.state;
  return { driver, power };
}

/** The plan that can be made while no service runs. `userFiles`: what is known of the files of the user. */
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
    target,
    idle: isIdle(request, stored),
    userFiles: { ...userFiles, on },
    power: powerChanges(request, stored),
    ...(locks ? { locks } : {}),
    ...(lockedBy === undefined ? {} : { lockedBy }),
  });
  const note =
    stored.from === 'file'
      ? 'No service is running: compared with the stored settings.'
      : 'No service is running and nothing is stored: compared with the defaults.';
  return { ...plan, warnings: [note, ...warnings, ...plan.warnings] };
}

/**
 * True when the settings meet a stopped backend. After a service that nobody stopped, a profile that leaves power alone has the next one
 * start what ran, and the settings then restart it; one that stops it does so before the settings.
 */
function isIdle(request: PlanRequest, stored: StoredSettings): boolean {
  if (request.state === 'stopped') return true;
  return !stored.left && !(request.state === 'unmanaged' && shouldRun(stored));
}

/** Nobody stopped what was to run. */
function shouldRun({ power, cut }: StoredSettings): boolean {
  return cut === true && power === 'started';
}

function powerChanges({ state }: PlanRequest, stored: StoredSettings): Change[] {
  const ran = stored.left === true && stored.power === 'started';
  // Where nothing can run any more, a start is a start like every other.
  if (state === 'started') return [ran ? SERVICE_START : START];
  if (state === 'stopped') return ran ? [STOP_LEFT] : [];
  return shouldRun(stored) ? [SERVICE_START] : [];
}

const STOP_LEFT: Change = {
  path: 'state',
  action: 'update',
  before: 'started',
  after: 'stopped',
  severity: 'restart',
  reason: 'everything that the last service left running is stopped',
};
