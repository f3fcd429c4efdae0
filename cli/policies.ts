import { homedir } from 'node:os';
import { policyPlaces } from '../src/policies/places.ts';
import type { Policies, PolicyHost } from '../src/policies/policy.ts';
import { policyPrograms } from '../src/policies/programs.ts';
import { readPolicies } from '../src/policies/read.ts';
import type { Io } from './command.ts';

/** The deployment profiles that a service started now would obey. Throws `ERR_PROFILE_INVALID` as it would. */
export async function policiesOf({ env, policies }: Io, host: PolicyHost): Promise<Policies> {
  const sources = policies ?? { places: policyPlaces(env, host.platform, homedir()), programs: policyPrograms() };
  return readPolicies(sources, host);
}
