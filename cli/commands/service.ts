import { homedir, userInfo } from 'node:os';
import { join } from 'node:path';
import { homeService } from '../../src/client/home-service.ts';
import { homeOf } from '../../src/client/session/home.ts';
import { serviceProgram } from '../../src/client/session/launch.ts';
import { RdError } from '../../src/errors.ts';
import { launchd, type ServiceManager, taskScheduler } from '../../src/features/service-units/manager.ts';
import { systemd } from '../../src/features/service-units/systemd.ts';
import { defined } from '../../src/json.ts';
import { run } from '../../src/os/run.ts';
import { userHome } from '../../src/os/user-directories.ts';
import { activationSocket, unitName } from '../../src/state/unit-name.ts';
import { noArguments } from '../arguments/arguments.ts';
import { defineCommand, type FlagTable, type Io } from '../command.ts';
import { defineGroup } from '../group.ts';
import { installedText, unitText } from '../views/service-unit.ts';
import { jsonText } from '../views/text.ts';
import { OUTPUT_FLAG } from '../views/view.ts';
import { refuseExposedUnit } from './service/private-unit.ts';

const SCOPE = {
  system: { type: 'boolean', summary: 'For the whole computer instead of this user; as root' },
} as const satisfies FlagTable;

const serviceInstall = defineCommand({
  name: 'service install',
  summary: 'Start the service at login, or with --system at boot, and again after a crash',
  usage: '',
  description: `Installs a systemd unit, a launchd job or a Windows task that runs \`rdctl serve\` for this home, and starts it unless a
service is already running. With --on-first-use (systemd), the first command that needs the service starts it.
A unit, job or task that rdctl did not create is left alone. Of a program that other users can change it makes none, and
with --system none with a PATH that leads to such programs.

  rdctl service install
  sudo rdctl service install --system`,
  flags: {
    ...SCOPE,
    'on-first-use': { type: 'boolean', summary: 'Start when first used, not at login', platforms: ['linux'] },
    driver: { type: 'string', summary: 'Driver to use at the first start of the service', placeholder: 'NAME' },
  },
  classic: false,
  async run({ flags, args, io }) {
    noArguments(args, 'service install');
    const onFirstUse = flags['on-first-use'] === true;
    const system = flags.system === true;
    const manager = managerOf(io, { system, onFirstUse });
    const words = ['serve', ...(flags.driver === undefined ? [] : ['--driver', flags.driver])];
    const content = { command: [...serviceProgram(io.self), ...words], environment: variables(io) };
    const again = [
      ...io.self,
      'service',
      'install',
      '--system',
      ...(onFirstUse ? ['--on-first-use'] : []),
      ...words.slice(1),
    ];
    refuseExposedUnit(content, { system, again });
    await refuseSecond(io, system);
    const home = await homeService(homeOf(io));
    const running = home.kind === 'running' ? home.holder.pid : undefined;
    await manager.install(content, { start: running === undefined });
    io.err(installedText(await manager.state(), { system, running }));
    return 0;
  },
});

const serviceUninstall = defineCommand({
  name: 'service uninstall',
  summary: 'Stop starting the service, and stop it if it was started so',
  usage: '',
  description: `Removes the unit, job or task of this home. Settings, images, containers and volumes stay.

  rdctl service uninstall`,
  flags: SCOPE,
  classic: false,
  async run({ flags, args, io }) {
    noArguments(args, 'service uninstall');
    const removed = await managerOf(io, { system: flags.system === true }).uninstall();
    io.err(removed ? 'Removed.\n' : 'There was nothing to remove.\n');
    return 0;
  },
});

const serviceStatus = defineCommand({
  name: 'service status',
  summary: 'Show whether the service manager starts the service, and runs it',
  usage: '',
  description: `Shows the unit that is in force: the one that \`rdctl service install\` wrote, or else that of a package.

Exit codes: 0 it runs the service; 2 otherwise.

  rdctl service status -o json`,
  flags: { ...SCOPE, output: OUTPUT_FLAG },
  classic: false,
  async run({ flags, args, io }) {
    noArguments(args, 'service status');
    const system = flags.system === true;
    const state = await managerOf(io, { system }).state();
    if (flags.output === 'json') io.out(jsonText({ kind: 'ServiceUnit', formatVersion: 1, ...state }));
    else io.say(unitText(state, { system, name: unitName(homeOf(io)) }));
    return state.from !== undefined && state.active ? 0 : 2;
  },
});

export const service = defineGroup({
  name: 'service',
  summary: 'Run the service at login, and again after a crash',
  description: `Uses systemd on Linux, launchd on macOS and the Task Scheduler on Windows.

  rdctl service install`,
  flags: {},
  classic: false,
  subcommands: [serviceInstall, serviceUninstall, serviceStatus],
});

/**
 * Root has two service managers for one home, and each would restart its service when it ends beside the other's. Throws `ERR_IO` if the other
 * manager starts the service already.
 */
async function refuseSecond(io: Io, system: boolean): Promise<void> {
  if (io.platform !== 'linux' || process.getuid?.() !== 0) return;
  // Root often has no manager of its own.
  const other = await managerOf(io, { system: !system })
    .state()
    .catch(() => undefined);
  if (!other?.enabled && !other?.active) return;
  const [option, scope] = system ? ['', '--user '] : [' --system', ''];
  const removal =
    other.from === 'install'
      ? `rdctl service uninstall${option}`
      : `systemctl ${scope}disable --now ${unitName(homeOf(io))}`;
  throw new RdError('ERR_IO', `${other.unit} starts this service already; nothing was changed`, {
    advice: `Keep it, or disable it first: ${removal}`,
  });
}

/** Returns the service manager of this computer. Throws `ERR_USAGE` for an unsupported option, `ERR_NOT_PRIVATE` without root. */
function managerOf(io: Io, { system, onFirstUse = false }: { system: boolean; onFirstUse?: boolean }): ServiceManager {
  const places = homeOf(io);
  const withEnvironment: typeof run = (argv, options) => run(argv, { ...options, env: io.env });
  const base = { run: withEnvironment, name: unitName(places) };
  const home = userHome(io.env, io.platform) || homedir();
  if (system && io.platform !== 'win32' && process.getuid?.() !== 0) {
    throw new RdError('ERR_NOT_PRIVATE', '--system changes files of the whole computer, which needs root', {
      advice: 'Run it with sudo -H, or leave out --system.',
    });
  }
  switch (io.platform) {
    case 'linux': {
      const { XDG_CONFIG_HOME } = io.env;
      const config = XDG_CONFIG_HOME?.startsWith('/') ? XDG_CONFIG_HOME : join(home, '.config');
      const socket = onFirstUse ? activationSocket(places) : undefined;
      const directory = system ? '/etc/systemd/system' : join(config, 'systemd', 'user');
      const packages = join('/usr/lib/systemd', system ? 'system' : 'user');
      return systemd({ ...base, directory, packages, user: !system, ...defined({ socket }) });
    }
    case 'darwin': {
      const directory = system ? '/Library/LaunchDaemons' : join(home, 'Library', 'LaunchAgents');
      return launchd({ ...base, directory, domain: system ? 'system' : `gui/${process.getuid?.() ?? 0}` });
    }
    case 'win32':
      if (system) throw new RdError('ERR_USAGE', '--system is not available on Windows: the service runs as a user');
      return taskScheduler({ ...base, user: userInfo().username, draft: join(places.state, 'task.xml') });
  }
}

/** Variables that name the installation, and the paths of its programs. A service manager passes on little else. */
const VARIABLES = [
  ...['RDCTL_HOME', 'RDCTL_COMPAT', 'RDCTL_DRIVER', 'PATH', 'HOME'],
  ...['XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'XDG_STATE_HOME', 'XDG_CACHE_HOME'],
];

function variables({ env, platform }: Pick<Io, 'env' | 'platform'>): Record<string, string> {
  const names = platform === 'win32' ? VARIABLES.filter((name) => name.startsWith('RDCTL_')) : VARIABLES;
  return Object.fromEntries(names.flatMap((name) => (env[name] ? [[name, env[name]]] : [])));
}
