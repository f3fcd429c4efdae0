import { type IntegrationTargets, integrationTargets } from '../../src/features/host-integration/targets.ts';
import { userHome } from '../../src/os/user-directories.ts';
import { supportedPlatform } from '../arguments/values.ts';
import type { Io } from '../command.ts';
import { homeOf } from './absence.ts';

/** Where host integration applies, or a clause saying why it is off. */
export function hostTargets(io: Io): IntegrationTargets | { offBecause: string } {
  return integrationTargets({
    env: io.env,
    platform: supportedPlatform(io.platform),
    homedir: userHome(io.env, io.platform),
    here: homeOf(io),
    self: io.self,
  });
}
