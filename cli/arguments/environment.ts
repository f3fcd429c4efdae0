import { arch, release, totalmem } from 'node:os';
import type { LoadContext } from '../../profiles/document/load.ts';
import { policyPlaces, policyPrograms } from '../../profiles/policies/places.ts';
import type { Policies, PolicyHost } from '../../profiles/policies/policy.ts';
import { type PolicySources, readPolicies } from '../../profiles/policies/read.ts';
import { homeOf } from '../../src/client/session/home.ts';
import { type IntegrationTargets, integrationTargets } from '../../src/features/host-integration/targets.ts';
import { userHome } from '../../src/os/user-directories.ts';
import type { Host } from '../../src/settings/defaults.ts';
import type { Platform } from '../../src/settings/field.ts';
import type { Io } from '../command.ts';

/** Returns the facts of this computer that defaults and rules depend on. Throws `ERR_USAGE` on an unsupported operating system. */
export function hostOf({ platform }: Pick<Io, 'platform'>): Host & { osRelease: string } {
  return { platform, arch: arch(), osRelease: release(), memoryBytes: totalmem() };
}

/** Returns the context in which documents are read and validated. Throws `ERR_USAGE` on an unsupported operating system. */
export function documentContext(io: Io): LoadContext {
  const { platform, arch, osRelease } = hostOf(io);
  return { cwd: io.cwd, env: io.env, platform, arch, osRelease, readStdin: (limit) => io.readStdin(limit) };
}

/** Returns the targets of the host integration, or a clause saying why it is off. */
export function hostTargets(io: Io): IntegrationTargets | { offBecause: string } {
  return integrationTargets({
    env: io.env,
    platform: io.platform,
    homedir: userHome(io.env, io.platform),
    places: homeOf(io),
    self: io.self,
  });
}

/** Reads the deployment profiles that a service started now would use. Throws `ERR_PROFILE_INVALID` as it would. */
export async function policiesOf(io: Io, host: PolicyHost): Promise<Policies> {
  return readPolicies(policySources(io, host.platform), host);
}

/** Returns the locations of deployment profiles, with readers. */
export function policySources({ env, policies }: Io, platform: Platform): PolicySources {
  return policies ?? { places: policyPlaces(env, platform, userHome(env, platform)), programs: policyPrograms() };
}
