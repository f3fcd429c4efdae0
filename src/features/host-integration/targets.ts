import { posix, win32 } from 'node:path';
import { defined } from '../../json.ts';
import { programPath } from '../../os/program.ts';
import type { Environment } from '../../os/user-directories.ts';
import { type Identity, PRODUCT } from '../../product.ts';
import type { Platform } from '../../settings/field.ts';
import { identityOf, type Places } from '../../state/places.ts';

/** The files of one user's environment. All paths are absolute. */
export interface IntegrationTargets {
  platform: Platform;
  identity: Identity;
  /** Home directory: shell files are below it, and links must not lead out of it. */
  home: string;
  /** Directory that holds `config.json` and `contexts` of the docker command line. */
  dockerConfig: string;
  /** Files that kubectl merges, in order of precedence; never empty. */
  kubeconfigs: readonly string[];
  /** Socket of a system docker engine, which the docker command line uses by default. */
  systemSocket: string;
  /** Autostart entry; absent on Windows, where it is a registry value. */
  autostartFile?: string;
  /** Our directory for the PATH. */
  bin: string;
  /** Command that starts this tool: `[node, script]`. */
  self: readonly string[];
  /** Search path on which the user's shells are found. */
  searchPath: string;
  /** Directory of configuration files (`XDG_CONFIG_HOME`). */
  configDirectory: string;
  /** `ZDOTDIR`, the directory of zsh's files; if absent, they are in the home directory, or where `.zshenv` says. */
  zshDirectory?: string;
  /** The program of the user's login shell. */
  loginShell?: string;
}

export interface TargetInput {
  env: Environment;
  platform: Platform;
  homedir: string;
  places: Places;
  self: readonly string[];
  /** Whether the driver is a model. */
  simulated?: boolean;
}

/**
 * Returns the integration targets, or a clause that says why the integration is off. With `RDCTL_HOME` an installation is isolated: several may
 * exist, and none may change the user's environment.
 */
export function integrationTargets(input: TargetInput): IntegrationTargets | { offBecause: string } {
  const { env, platform, homedir, places, self } = input;
  if (places.home !== undefined) return { offBecause: 'RDCTL_HOME keeps this installation to itself' };
  if (input.simulated) return { offBecause: 'the simulated driver touches nothing real' };
  if (homedir === '') return { offBecause: 'the home directory of the user is not known' };
  if (self.length === 0) return { offBecause: 'the command that starts the service is not known' };
  const { join, isAbsolute } = platform === 'win32' ? win32 : posix;
  const identity = identityOf(places);
  const { DOCKER_CONFIG, KUBECONFIG = '', XDG_CONFIG_HOME, ZDOTDIR, SHELL } = env;
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
    ...defined({ autostartFile: autostart }),
    bin: places.bin,
    self,
    searchPath: programPath(env.PATH),
    configDirectory: config,
    ...(ZDOTDIR && isAbsolute(ZDOTDIR) ? { zshDirectory: ZDOTDIR } : {}),
    ...(SHELL ? { loginShell: SHELL } : {}),
  };
}

/** Returns the launcher of this tool, for the PATH and for the autostart entry. */
export function launcherOf({ bin, platform }: Pick<IntegrationTargets, 'bin' | 'platform'>): string {
  return platform === 'win32' ? win32.join(bin, `${PRODUCT.name}.cmd`) : posix.join(bin, PRODUCT.name);
}
