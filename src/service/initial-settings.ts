import { decideUpdate, type UpdateSurroundings } from '../api/settings-update.ts';
import { RdError } from '../errors.ts';
import type { JsonObject } from '../json.ts';
import { unprotected } from '../plan/fail-closed.ts';
import { SCHEMA_VERSION, type Settings } from '../settings/settings.gen.ts';

/** The settings to begin with, after those of the caller. Throws rather than start without a protection that was asked for. */
export function initialSettings(
  settings: Settings,
  wanted: JsonObject | undefined,
  around: UpdateSurroundings,
): Settings {
  const update = wanted && decideUpdate({ version: SCHEMA_VERSION, ...wanted }, settings, around);
  if (update?.kind === 'refused') {
    throw new RdError('ERR_SETTINGS_INVALID', update.message, { advice: 'Nothing was started or changed.' });
  }
  const chosen = update?.kind === 'changed' ? update.settings : settings;
  const [missing] = unprotected(chosen, around.driver);
  if (!missing) return chosen;
  const { name } = around.driver;
  throw new RdError(
    'ERR_SETTING_UNSUPPORTED',
    `${missing.path} is true, and the ${name} driver cannot enforce it: ${missing.reason}`,
    {
      advice: 'Set it to false in the settings file or the deployment profile, or use a driver that enforces it.',
    },
  );
}
