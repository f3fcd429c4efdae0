import type { Policies } from '../../profiles/policies/policy.ts';
import type { JsonObject } from '../json.ts';
import { fillDefaults, type Host } from '../settings/defaults.ts';
import { FIELDS } from '../settings/fields.gen.ts';
import type { Settings } from '../settings/settings.gen.ts';
import { readStoredSettings } from './offline.ts';
import { runningService } from './session/find.ts';
import { type Caller, homeOf } from './session/home.ts';

/** The settings in force, or those of the next service. */
export interface LiveSettings {
  settings: Settings;
  state: 'started' | 'stopped';
  /** Source of the settings, for display: `the running service`. */
  origin: string;
  /** Returns the locked settings, in the shape of the settings. */
  locked(): Promise<JsonObject>;
  /** Returns the settings that the driver does not support; none if no service can be asked. */
  refused(): Promise<readonly string[]>;
}

/**
 * Returns the settings of the running service; without one the stored ones, or the defaults.
 * @param readPolicies reads the deployment profiles that a service started now would use.
 */
export async function liveSettings(
  invocation: Caller,
  host: Host,
  readPolicies: () => Promise<Policies>,
): Promise<LiveSettings> {
  const { io } = invocation;
  const service = await runningService(invocation);
  if (service) {
    const { client, status } = service;
    const { settings } = await client.settings({ signal: io.signal });
    return {
      settings: fillDefaults(settings, host),
      state: status.power,
      origin: client.owner,
      locked: () => client.locked({ signal: io.signal }),
      async refused() {
        const paths = FIELDS.map(({ path }) => path).filter((path) => path !== 'version');
        return client.unsupported(settings, paths, { signal: io.signal });
      },
    };
  }
  const where = homeOf(io);
  const policies = await readPolicies();
  const { settings, from } = await readStoredSettings(where, host.platform, host, policies);
  return {
    settings,
    state: 'started',
    origin: from === 'file' ? 'the stored settings' : 'the defaults',
    refused: async () => [],
    async locked() {
      const { lockRecord } = await import('../settings/locks.ts');
      return policies.locked ? lockRecord(policies.locked.settings) : {};
    },
  };
}
