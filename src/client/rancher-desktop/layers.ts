import { isObject, type JsonObject } from '../../json.ts';
import { type LayerFacts, type SettingLayers, settingLayers } from '../../plan/layers.ts';
import { leafAt, leaves, setLeaf } from '../../settings/leaf-paths.ts';
import { isLocked } from '../../settings/locks.ts';
import type { SettingsClient } from '../contract.ts';
import { locksAtNewest, readForeign } from './shape.ts';

/**
 * Returns the known layers of another application: its settings and its locks. It reads the same deployment profiles, so a profile with its locked
 * values is their source.
 */
export async function layersOfApplication(
  client: SettingsClient,
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
