import { policyPlaces, policyPrograms } from '../../profiles/policies/places.ts';
import type { Policies, PolicyHost } from '../../profiles/policies/policy.ts';
import { type PolicySources, readPolicies } from '../../profiles/policies/read.ts';
import { userHome } from '../../src/os/user-directories.ts';
import type { Platform } from '../../src/settings/field.ts';
import type { Io } from '../command.ts';

/** The deployment profiles that a service started now would use. Throws `ERR_PROFILE_INVALID` as it would. */
export async function policiesOf(io: Io, host: PolicyHost): Promise<Policies> {
  return readPolicies(policySources(io, host.platform), host);
}

/** Their locations, with readers. */
export function policySources({ env, policies }: Io, platform: Platform): PolicySources {
  return policies ?? { places: policyPlaces(env, platform, userHome(env, platform)), programs: policyPrograms() };
}
