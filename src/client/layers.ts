import { RdError } from '../errors.ts';
import { isObject, type JsonObject } from '../json.ts';
import { type LayerFacts, type SettingLayers, settingLayers } from '../plan/layers.ts';
import { leafAt, leaves, setLeaf } from '../settings/leaf-paths.ts';
import { isLocked } from '../settings/locks.ts';
import type { Client } from './client.ts';
import type { HttpResponse } from './connection.ts';
import { locksAtNewest, readForeign } from './foreign-shape.ts';

export { settingLayers } from '../plan/layers.ts';

const PARTS: readonly (keyof SettingLayers)[] = ['builtIn', 'inForce', 'driver'];

/** The layers reported by our service. Throws for an invalid reply. */
export async function layersOfService(client: Client, signal: AbortSignal): Promise<SettingLayers> {
  const response = await client.request({ method: 'GET', path: '/v2/settings/layers', signal });
  const value = documentOf(response);
  if (value?.kind !== 'SettingLayers' || !PARTS.every((name) => isObject(value[name]))) {
    throw new RdError('ERR_NOT_FOUND', 'the service does not report where its settings come from', {
      advice: 'It may be an older release: restart it with `rdctl shutdown` and `rdctl start`.',
    });
  }
  return value as unknown as SettingLayers;
}

function documentOf({ status, body }: HttpResponse): JsonObject | undefined {
  if (status !== 200) return undefined;
  try {
    const value: unknown = JSON.parse(body.toString());
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The known layers of another application: its settings and its locks. It reads the same deployment profiles, so a
 * profile with its locked values is their source.
 */
export async function layersOfApplication(
  client: Client,
  facts: LayerFacts,
  signal: AbortSignal,
): Promise<SettingLayers> {
  const { text } = await client.settings({ signal });
  const raw: unknown = JSON.parse(text);
  const { known: inForce, version } = readForeign(isObject(raw) ? raw : {});
  const locks = locksAtNewest(await client.locked({ signal }), version);
  const held: JsonObject = {};
  for (const [path, value] of leaves(inForce)) if (isLocked(locks, path)) setLeaf(held, path, value);
  const { lockedProfile, ...rest } = facts;
  const known = lockedProfile && leaves(held).every(([path]) => leafAt(lockedProfile.settings, path) !== undefined);
  const profile = {
    source: known ? lockedProfile.source : 'a deployment profile read by the application',
    version: known ? lockedProfile.version : version,
    settings: held,
  };
  const layers: LayerFacts = {
    ...rest,
    settingsFile: 'the application',
    ...(Object.keys(held).length === 0 ? {} : { lockedProfile: profile }),
  };
  return settingLayers(layers, { basis: 'application', inForce, stored: inForce });
}
