import type { FirstRun, LayerFacts, ProfileLayer } from '../plan/layers.ts';
import { defaultSettings, type Host } from '../settings/defaults.ts';
import type { Policies, Policy } from './policy.ts';

/** The layers of a home, as far as they come from profiles and the computer. */
export function layerFacts(
  { looked, defaults, locked }: Policies,
  home: { host: Host; settingsFile: string; firstRun?: FirstRun },
): LayerFacts {
  const { host, settingsFile, firstRun } = home;
  return {
    platform: host.platform,
    builtIn: defaultSettings(host),
    settingsFile,
    looked,
    ...(defaults ? { defaultsProfile: layerOf(defaults) } : {}),
    ...(locked ? { lockedProfile: layerOf(locked) } : {}),
    ...(firstRun ? { firstRun } : {}),
  };
}

function layerOf({ source, version, settings }: Policy): ProfileLayer {
  return { source, version, settings };
}
