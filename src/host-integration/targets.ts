import { posix, win32 } from 'node:path';
import { programPath } from '../process/program.ts';
import { type Identity, PRODUCT } from '../product.ts';
import type { Platform } from '../settings/field.ts';
import { type Environment, identityOf, type Places } from '../storage/places.ts';

/** Where the environment of one user is changed. All paths are absolute. */
export interface IntegrationTargets {
  platform: Platform;
  identity: Identity;
  /** Home directory: shell files are below it, and links must not lead out of it. */
  home: string;
  /** Directory of `config.json` and `contexts` of the docker command line. */
  dockerConfig: string;
  /** Files that kubectl reads as one, the first before the others; never none. */
  kubeconfigs: readonly string[];
  /** Socket of a docker engine of the system, which the docker command line uses unless told. */
  systemSocket: string;
  /** Absent on Windows, where it is a value in the registry. */
  autostartFile?: string;
  /** Directory of ours that goes on the PATH. */
  bin: string;
  /** Command that starts this tool: `[node, script]`. */
  self: readonly string[];
  /** Where the shells of the user are looked for. */
  searchPath: string;
}

export interface TargetInput {
  env: Environment;
  platform: Platform;
  homedir: string;
  here: Places;
  self: readonly string[];
  /** The driver is a model. */
  simulated?: boolean;
}

/**
 * Where the integration works, or a clause that says why it does not. With `RDCTL_HOME` an installation keeps to itself: several
 * may exist, and none of them may speak for the user.
 */
export function integrationTargets(input: TargetInput): IntegrationTargets | { offBecause: string } {
  const { env, platform, homedir, here, self } = input;
  if (here.home !== undefined) return { offBecause: 'RDCTL_HOME keeps this installation to itself' };
  if (input.simulated) return { offBecause: 'the simulated driver touches nothing real' };
  if (homedir === '') return { offBecause: 'the home directory of the user is not known' };
  if (self.length === 0) return { offBecause: 'the command that starts the service is not known' };
  const { join, isAbsolute } = platform === 'win32' ? win32 : posix;
  const identity = identityOf(here);
  const { DOCKER_CONFIG, KUBECONFIG = '', XDG_CONFIG_HOME } = env;
  const named = KUBECONFIG.split(platform === 'win32' ? ';' : ':').filter((path) => isAbsolute(path));
  const config = XDG_CONFIG_HOME && isAbsolute(XDG_CONFIG_HOME) ? XDG_CONFIG_HOME : join(homedir, '.config');
  const autostart = {
    linux: join(config, 'autostart', identity.autostart.linux),
    darwin: join(homedir, 'Library', 'LaunchAgents', identity.autostart.darwin),
    win32: undefined,
  }[platform];
  return {
    platform,
    identity,
    home: homedir,
    dockerConfig: DOCKER_CONFIG && isAbsolute(DOCKER_CONFIG) ? DOCKER_CONFIG : join(homedir, '.docker'),
    kubeconfigs: named.length > 0 ? named : [join(homedir, '.kube', 'config')],
    systemSocket: '/var/run/docker.sock',
    ...(autostart === undefined ? {} : { autostartFile: autostart }),
    bin: here.bin,
    self,
    searchPath: programPath(env.PATH),
  };
}

/** File that starts this tool, for the PATH and for the autostart entry. */
export function launcherOf({ bin, platform }: Pick<IntegrationTargets, 'bin' | 'platform'>): string {
  return platform === 'win32' ? win32.join(bin, `${PRODUCT.name}.cmd`) : posix.join(bin, PRODUCT.name);
}
