import { storedSettings } from '../../src/client/offline.ts';
import type { JsonObject } from '../../src/json.ts';
import { fillDefaults, type Host } from '../../src/settings/defaults.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import type { Settings } from '../../src/settings/settings.gen.ts';
import type { Caller } from '../command.ts';
import { homeOf, policiesOf } from './home.ts';
import { runningService } from './service.ts';

/** The settings in force, or those of the next service. */
export interface LiveSettings {
  settings: Settings;
  state: 'started' | 'stopped';
  /** Their source, for display: `the running service`. */
  origin: string;
  /** Locked settings, in the shape of the settings. */
  locked(): Promise<JsonObject>;
  /** Settings that the driver does not support; none when no service can be asked. */
  refused(): Promise<readonly string[]>;
}

/** The settings of the running service; without one the stored ones, or the defaults. */
export async function liveSettings(invocation: Caller, host: Host): Promise<LiveSettings> {
  const { io } = invocation;
  const service = await runningService(invocation);
  if (service) {
    const { client, status } = service;
    const { settings } = await client.settings({ signal: io.signal });
    const { connection, foreign } = client;
    return {
      settings: fillDefaults(settings, host),
      state: status.power,
      origin: foreign ? `the running application (${connection.file ?? connection.host})` : 'the running service',
      locked: () => client.locked({ signal: io.signal }),
      async refused() {
        if (foreign) return [];
        const wishes = FIELDS.map(({ path }) => path).filter((path) => path !== 'version');
        const plan = await client.plan({ settings, state: 'unmanaged', prune: [], wishes }, { signal: io.signal });
        return plan.changes.filter(({ blocked }) => blocked?.by === 'unsupported').map(({ path }) => path);
      },
    };
  }
  const where = homeOf(io);
  const policies = await policiesOf(io, host);
  const { settings, from } = await storedSettings(where, host.platform, host, policies);
  return {
    settings,
    state: 'started',
    origin: from === 'file' ? 'the stored settings' : 'the defaults',
    refused: async () => [],
    async locked() {
      const { lockRecord } = await import('../../src/settings/locks.ts');
      return policies.locked ? lockRecord(policies.locked.settings) : {};
    },
  };
}
