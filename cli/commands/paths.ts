import { dirname, join } from 'node:path';
import { noteOtherApplication } from '../../src/client/rancher-desktop/index.ts';
import { placesOf } from '../../src/client/session/home.ts';
import { type Environment, userHome } from '../../src/os/user-directories.ts';
import { COMPATIBLE } from '../../src/product.ts';
import type { Places } from '../../src/state/places.ts';
import { noArguments } from '../arguments/arguments.ts';
import { packageRoot } from '../arguments/files.ts';
import { defineCommand, type Io } from '../command.ts';

export const paths = defineCommand({
  name: 'paths',
  summary: 'Show the directories in use',
  usage: '',
  description: `Prints one line of JSON, with the same keys as Rancher Desktop's rdctl. With RDCTL_COMPAT, prints the directories of
Rancher Desktop.`,
  flags: {
    output: { type: 'string', short: 'o', summary: 'Output format', values: ['json'] },
  },
  classic: true,
  async run({ args, globals, io }) {
    noArguments(args, 'paths');
    const here = placesOf(io);
    if (here.dropIn === undefined) {
      await noteOtherApplication(
        { globals, io },
        'These are the directories of rdctl; `RDCTL_COMPAT=rancher-desktop rdctl paths` prints those of that application.',
      );
    }
    io.out(`${JSON.stringify(pathsOf(here, io))}\n`);
    return 0;
  },
});

/** Returns the paths in the order of Rancher Desktop's `rdctl`; those that do not exist on this platform or in this product are absent. */
function pathsOf(here: Places, io: Io): Record<string, string> {
  const { platform, env } = io;
  const windows = platform === 'win32';
  const dropIn = here.dropIn !== undefined;
  const own = dirname(here.config);
  return {
    appHome: here.data,
    altAppHome: windows ? here.data : dirname(here.bin),
    config: here.config,
    logs: here.logs,
    cache: here.cache,
    ...(dropIn && !windows ? { lima: join(here.data, 'lima') } : {}),
    ...(windows ? {} : { integration: here.bin }),
    resources: packageRoot(io) ?? dirname(io.self.at(-1) ?? ''),
    ...(platform === 'linux' ? linuxProfiles(env) : {}),
    ...(platform === 'darwin' ? darwinProfiles(env) : {}),
    extensionRoot: here.extensions,
    snapshots: here.snapshots,
    containerdShims: join(here.data, 'containerd-shims'),
    ...(dropIn ? { oldUserData: oldUserData(here, platform, own) } : {}),
  };
}

function oldUserData({ data, cache }: Places, platform: Io['platform'], config: string): string {
  const parent = { linux: config, darwin: dirname(data), win32: cache }[platform];
  return join(parent, COMPATIBLE.productName);
}

function linuxProfiles(env: Environment): Record<string, string> {
  const { XDG_CONFIG_HOME } = env;
  const home = userHome(env, 'linux');
  const user = XDG_CONFIG_HOME?.startsWith('/') ? XDG_CONFIG_HOME : home && join(home, '.config');
  return {
    deploymentProfileSystem: COMPATIBLE.policyDirectory,
    altDeploymentProfileSystem: join('/usr', COMPATIBLE.policyDirectory),
    ...(user === '' ? {} : { deploymentProfileUser: user }),
  };
}

function darwinProfiles(env: Environment): Record<string, string> {
  const home = userHome(env, 'darwin');
  return {
    deploymentProfileSystem: '/Library/Managed Preferences',
    altDeploymentProfileSystem: '/Library/Preferences',
    ...(home === '' ? {} : { deploymentProfileUser: join(home, 'Library', 'Preferences') }),
  };
}
