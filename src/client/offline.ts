import { RdError } from '../errors.ts';
import { isObject, type JsonObject } from '../json.ts';
import type { Plan, PlanRequest } from '../plan/change.ts';
import { estimatePlan } from '../plan/offline.ts';
import { PRODUCT } from '../product.ts';
import { defaultSettings, fillDefaults, type Host } from '../settings/defaults.ts';
import type { Platform } from '../settings/field.ts';
import { migrate } from '../settings/migrate.ts';
import type { Settings } from '../settings/settings.gen.ts';
import { readIfThere } from '../storage/atomic-file.ts';
import { ioError } from '../storage/io-error.ts';
import type { Places } from '../storage/places.ts';

/** For settings that are complete already, so that no default is ever taken. */
export const ANY_HOST: Omit<Host, 'memoryBytes'> = { platform: 'linux', arch: 'x64' };

/** Settings as the next service would find them, and where they come from. */
export interface StoredSettings {
  settings: Settings;
  from: 'file' | 'defaults';
  /** Driver that a service of this home has used; absent before the first start. */
  driver?: string;
}

/** Reads the stored settings, or gives those of a first run where nothing is stored. Throws `ERR_SETTINGS_FILE` for a corrupt file. */
export async function storedSettings(
  where: Places,
  platform: Platform,
  host: Omit<Host, 'platform'>,
): Promise<StoredSettings> {
  const facts = { ...host, platform };
  const text = await readIfThere(where.settingsFile).catch((cause: unknown) => {
    throw ioError('read', where.settingsFile, cause);
  });
  const driver = await recordedDriver(where);
  const rest = driver === undefined ? {} : { driver };
  if (text === undefined) return { settings: defaultSettings(facts), from: 'defaults', ...rest };
  const settings = fillDefaults(migrate(parse(text, where.settingsFile), { platform }), facts);
  return { settings, from: 'file', ...rest };
}

/** For the sentence that names the target; the service alone judges that file. */
export async function recordedDriver({ stateFile }: Places): Promise<string | undefined> {
  try {
    const value: unknown = JSON.parse((await readIfThere(stateFile)) ?? '{}');
    return isObject(value) && typeof value.driver === 'string' ? value.driver : undefined;
  } catch {
    return undefined;
  }
}

/** The plan that can be made while no service runs. */
export function offlinePlan(request: PlanRequest, stored: StoredSettings, where: Places): Plan {
  const target = {
    product: PRODUCT.name,
    home: where.data,
    driver: stored.driver ?? 'not chosen yet',
    simulated: stored.driver === 'simulated',
  };
  const plan = estimatePlan({ request, base: stored.settings, target });
  const note =
    stored.from === 'file'
      ? 'No service is running: compared with the stored settings.'
      : 'No service is running and nothing is stored: compared with the defaults.';
  return { ...plan, warnings: [note, ...plan.warnings] };
}

function parse(text: string, path: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch (cause) {
    throw corrupt(path, cause);
  }
  throw corrupt(path, undefined);
}

function corrupt(path: string, cause: unknown): RdError {
  return new RdError('ERR_SETTINGS_FILE', `the settings file ${path} is not a JSON object`, {
    cause,
    advice: 'Start the service with `rdctl start`: it sets the file aside and goes on.',
  });
}
