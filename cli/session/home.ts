import { policyPlaces, policyPrograms } from '../../profiles/policies/places.ts';
import type { Policies, PolicyHost } from '../../profiles/policies/policy.ts';
import { type PolicySources, readPolicies } from '../../profiles/policies/read.ts';
import { RdError } from '../../src/errors.ts';
import { type IntegrationTargets, integrationTargets } from '../../src/features/host-integration/targets.ts';
import { userHome } from '../../src/os/user-directories.ts';
import { DRIVER_NAMES } from '../../src/product.ts';
import type { Platform } from '../../src/settings/field.ts';
import { requirePrivate } from '../../src/state/ownership.ts';
import { type Places, places } from '../../src/state/places.ts';
import { quote, usage } from '../arguments/values.ts';
import type { GlobalFlags, Io } from '../command.ts';

/** The paths of this home, for a command that only prints them. */
export function placesOf(io: Io): Places {
  return places(io.env, io.platform, userHome(io.env, io.platform));
}

/** The paths of this home. Throws `ERR_NOT_PRIVATE` where another user could have written the files. */
export function homeOf(io: Io): Places {
  const here = placesOf(io);
  requirePrivate(here);
  return here;
}

/** True when flags or the environment name a service: no other one may answer instead. */
export function namesService(globals: GlobalFlags, io: Io): boolean {
  return Boolean(globals['config-path'] || globals.host || globals.user || io.env.RDCTL_CONFIG_PATH);
}

/** `--driver` of read-only commands. */
export const DRIVER_FLAG = {
  type: 'string',
  summary: 'Driver to plan for if no service has run yet',
  placeholder: 'NAME',
} as const;

/** The driver is chosen once; another driver on the same state would be another desktop. Throws `ERR_WRONG_TARGET`. */
export function refuseOtherDriver(used: string | undefined, asked: string | undefined): void {
  if (asked === undefined || asked === '' || used === undefined || asked === used) return;
  throw new RdError('ERR_WRONG_TARGET', `The driver here is ${used}, not ${asked}.`, {
    advice: `${used === 'simulated' ? 'Remove the simulation with `rdctl reset --factory`' : 'Leave --driver out'}, or use another home: RDCTL_HOME=DIR rdctl … --driver ${asked}`,
  });
}

/** Rejects an unknown driver before anything is created for it. Throws `ERR_USAGE`. */
export function checkDriver(flag: string | undefined, env: Readonly<Record<string, string | undefined>>): void {
  const name = flag ?? env.RDCTL_DRIVER;
  if (name === undefined || name === '' || DRIVER_NAMES.some((known) => known === name)) return;
  const source = flag === undefined ? ' (RDCTL_DRIVER)' : '';
  throw usage(`there is no driver ${quote(name)}${source}`, `Available drivers: ${DRIVER_NAMES.join(', ')}.`);
}

/**
 * The driver of this home's next service, and why it cannot run yet. Those reasons are warnings: a plan may be made on
 * a computer where it is never applied, or before a dependency is installed. `driver` is absent where none can run.
 */
export async function nextDriver(
  io: Io,
  recorded: string | undefined,
  flag: string | undefined,
): Promise<{ driver?: string; warnings: string[] }> {
  const requested = flag || io.env.RDCTL_DRIVER;
  const choose = io.chooseDriver ?? (await import('../../src/drivers/index.ts')).chooseDriver;
  const known = recorded ?? requested;
  try {
    const { factory } = await choose({
      env: io.env,
      ...(recorded === undefined ? {} : { recorded }),
      ...(requested ? { requested } : {}),
    });
    return { driver: factory.name, warnings: [] };
  } catch (error) {
    if (!(error instanceof RdError)) throw error;
    const { message, details, advice } = error;
    const warnings = [`Nothing can be applied yet: ${message}.`, ...details, ...(advice ? [advice] : [])];
    return { ...(known ? { driver: known } : {}), warnings };
  }
}

/** Where host integration applies, or a clause saying why it is off. */
export function hostTargets(io: Io): IntegrationTargets | { offBecause: string } {
  return integrationTargets({
    env: io.env,
    platform: io.platform,
    homedir: userHome(io.env, io.platform),
    here: homeOf(io),
    self: io.self,
  });
}

/** The deployment profiles that a service started now would use. Throws `ERR_PROFILE_INVALID` as it would. */
export async function policiesOf(io: Io, host: PolicyHost): Promise<Policies> {
  return readPolicies(policySources(io, host.platform), host);
}

/** Their locations, with readers. */
export function policySources({ env, policies }: Io, platform: Platform): PolicySources {
  return policies ?? { places: policyPlaces(env, platform, userHome(env, platform)), programs: policyPrograms() };
}
