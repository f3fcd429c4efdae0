import { join } from 'node:path';
import { policyPlaces, policyPrograms } from '../../profiles/policies/places.ts';
import { layerFacts, type Policies } from '../../profiles/policies/policy.ts';
import { type PolicySources, readPolicies } from '../../profiles/policies/read.ts';
import { type Environment, userHome } from '../os/user-directories.ts';
import type { FirstRun, LayerFacts } from '../plan/layers.ts';
import type { Platform } from '../settings/field.ts';
import type { Places } from '../state/places.ts';
import type { SettingsHost } from '../state/startup-settings.ts';
import { recordedFirstRun, recordFirstRun } from '../state/state-file.ts';

/** What tests put in the place of the system's own. */
export type PolicyOptions = Partial<PolicySources>;

/** The deployment profiles that count for this service. Throws `ERR_PROFILE_INVALID` for one that cannot be used. */
export async function servicePolicies(
  options: { env: Environment; platform: Platform; policies?: PolicyOptions },
  host: SettingsHost,
): Promise<Policies> {
  const { places, programs } = options.policies ?? {};
  const sources = {
    places: places ?? policyPlaces(options.env, options.platform, userHome(options.env, options.platform)),
    programs: programs ?? policyPrograms(),
  };
  return readPolicies(sources, host);
}

/** What lies around the stored settings; on a first run that is recorded for those who ask later. */
export async function serviceLayers(
  policies: Policies,
  here: Places,
  { host, firstRun, now }: { host: SettingsHost; firstRun: boolean; now: number },
): Promise<LayerFacts> {
  const path = join(here.state, 'first-run.json');
  const begun: FirstRun = {
    at: new Date(now).toISOString(),
    ...(policies.defaults ? { defaults: policies.defaults.source } : {}),
  };
  if (firstRun) await recordFirstRun(path, begun);
  const recorded = firstRun ? begun : await recordedFirstRun(path);
  return layerFacts(policies, {
    host,
    settingsFile: here.settingsFile,
    ...(recorded ? { firstRun: recorded } : {}),
  });
}
