import { existsSync, realpathSync } from 'node:fs';
import { isAbsolute, relative } from 'node:path';
import { createClient } from '../../src/client/client.ts';
import type { Connection } from '../../src/client/connection.ts';
import type { ServiceClient } from '../../src/client/contract.ts';
import { homeOf } from '../../src/client/session/home.ts';
import { STALE_FILE_ERRORS, warnStale } from '../../src/client/session/missing.ts';
import { RdError } from '../../src/errors.ts';
import { runAttached } from '../../src/os/launch.ts';
import { COMPATIBLE } from '../../src/product.ts';
import type { MachineAccess, StatusDocument } from '../../src/reconcile/status-document.ts';
import { defineCommand, type Invocation, type Io } from '../command.ts';
import { commandHelp } from '../views/help-text.ts';
import { plainText } from '../views/text.ts';

export const shell = defineCommand({
  name: 'shell',
  summary: 'Open a shell, or run a command, configured for the engine',
  usage: '[COMMAND [ARGUMENT]...]',
  description: `Opens your shell ($SHELL), or runs the command, with \`docker\`, \`ctr\` and \`nerdctl\` configured for the running engine:
sets DOCKER_HOST, or CONTAINERD_ADDRESS and CONTAINERD_NAMESPACE. With a driver
that has a virtual machine (qemu), the shell or command runs in that machine, in the working directory
if the machine shows it. Everything after \`shell\` is part of the command, including flags. The exit status is that of the command, or 128
plus the number of the signal that terminated it.

  rdctl shell
  rdctl shell docker run --rm busybox:1.36 true`,
  flags: {},
  classic: true,
  passesWords: true,
  async run(invocation) {
    const { args, io } = invocation;
    if (args[0] === '-h' || args[0] === '--help') {
      io.say(commandHelp(shell, io.platform, io.columns));
      return 0;
    }
    const client = await running(invocation);
    if (!client) return refuse(NOT_RUNNING, io);
    if (client.connection.foreign) return otherShell(client.connection, args, io);
    return ownShell(await client.status(), args, io);
  },
});

// No signal for these requests: the handlers would end this process while a child owns the terminal.

/** Returns the running service; undefined if there is none. */
async function running({ connect, io }: Invocation): Promise<ServiceClient | undefined> {
  let connection: Connection | undefined;
  try {
    connection = await connect();
    const client = createClient(connection);
    // The address of a stopped service may be taken by another program.
    await client.backendState();
    return client;
  } catch (error) {
    if (!(error instanceof RdError) || error.code === 'ERR_UNAUTHORIZED' || !STALE_FILE_ERRORS.includes(error.code))
      throw error;
    warnStale(error, connection, io);
    return undefined;
  }
}

/**
 * The service only reports state. The command, its options and paths come from this disk: the reply of another program
 * must not become a command.
 */

async function ownShell(status: StatusDocument, args: readonly string[], io: Io): Promise<number> {
  const { home, machine, engine } = status;
  const here = homeOf(io);
  if (home !== here.data) throw otherHome(home, here.data);
  const { backendAccess } = await import('../../src/drivers/backend-access.ts');
  const way = await backendAccess(here);
  if (way.in === 'nothing' && way.simulated) {
    throw new RdError('ERR_NOT_READY', 'The desktop is simulated, so there is no engine to open a shell for.', {
      advice: 'Use another home with a real driver: RDCTL_HOME=DIR rdctl start --driver host',
    });
  }
  if (machine.state !== 'on')
    return refuse(notInState(machine.state === 'absent' ? 'Stopped' : STATES[status.backendState]), io);
  const command = withoutSeparator(args);
  if (way.in === 'machine') return guestShell(way.access, command, shownDirectory(machine, workingDirectory()), io);
  const name = engine.name === 'moby' ? 'moby' : 'containerd';
  const endpoint = way.in === 'host' && engine.state === 'running' ? way.endpoints[name] : undefined;
  if (endpoint === undefined) {
    throw new RdError('ERR_NOT_READY', `The engine ${name} is not running: it is ${plainText(engine.state)}.`, {
      advice: 'Wait for it, or check `rdctl status`.',
    });
  }
  const { bin } = here;
  const env = engineEnvironment({ name, endpoint }, io.env, existsSync(bin) ? [bin] : []);
  const { runAttached } = await import('../../src/os/launch.ts');
  const argv = command.length > 0 ? command : [io.env.SHELL || '/bin/sh'];
  return runAttached({ argv, env, terminal: io.interactive });
}

function otherHome(home: unknown, here: string): RdError {
  return new RdError(
    'ERR_WRONG_TARGET',
    `the service that answered does not belong to the home ${here}; no command was run`,
    {
      advice: `It reports the home ${plainText(String(home))}. Run as the user of that home, with RDCTL_HOME set to it, and without --host and --port.`,
    },
  );
}

/** Removes one `--`: `limactl`, which gets all words in Rancher Desktop's `rdctl`, also strips one. */
function withoutSeparator(args: readonly string[]): readonly string[] {
  return args[0] === '--' ? args.slice(1) : args;
}

function workingDirectory(): string | undefined {
  try {
    return process.cwd();
  } catch {
    // The directory was deleted.
    return undefined;
  }
}

/** Returns the directory if the machine shows it at the same path: the innermost of the mounts that contain it decides. */
export function shownDirectory(
  machine: StatusDocument['machine'],
  directory: string | undefined,
  realPath: (path: string) => string = realpathSync,
): string | undefined {
  if (machine.state !== 'on' || directory === undefined) return undefined;
  const around = (machine.shared?.mounts ?? []).flatMap((mount) => {
    let real = mount.path;
    try {
      real = realPath(mount.path);
    } catch {
      // A missing directory contains nothing.
    }
    const below = relative(real, directory);
    return below === '..' || below.startsWith('../') || isAbsolute(below) ? [] : [{ mount, real }];
  });
  const [innermost] = around.sort((one, other) => other.real.length - one.real.length);
  return innermost !== undefined && 'by' in innermost.mount ? directory : undefined;
}

/**
 * Opens a shell in the machine, in which the engine is at its default endpoint. ssh takes over the terminal and returns the exit status.
 * @param directory where it starts, if the machine has it; else in the home of its root.
 */
async function guestShell(
  access: MachineAccess,
  command: readonly string[],
  directory: string | undefined,
  io: Io,
): Promise<number> {
  const { runAttached } = await import('../../src/os/launch.ts');
  const { shellLine } = await import('../../src/os/program.ts');
  const enter = directory === undefined ? '' : `${shellLine(['cd', '--', directory])}; `;
  const line = command.length > 0 ? signalExitLine(shellLine([...access.before, ...command])) : LOGIN_LINE;
  const words = command.length > 0 || enter !== '' ? [`${enter}${line}`] : [];
  const argv = [...access.ssh, io.interactive ? '-t' : '-T', access.target, ...words];
  return runAttached({ argv, env: io.env, terminal: io.interactive });
}

/** The line that ssh runs if no command is given. */
const LOGIN_LINE = 'exec "$SHELL" -l';

/**
 * Returns the line with the exit status of a shell. ssh exits with 255 for any death by signal. A waiting shell maps it to 128 plus the signal
 * number; its own message is discarded, and Ctrl-C goes to the command alone.
 */
function signalExitLine(line: string): string {
  return `trap : INT QUIT; exec 3>&2 2>/dev/null; ${line} 2>&3 3>&-; exit $?`;
}

/** State names of Rancher Desktop's `rdctl` for a machine that is not running. */
const STATES: Readonly<Record<StatusDocument['backendState'], string>> = {
  STOPPED: 'Stopped',
  STARTING: 'Starting',
  STARTED: 'Starting',
  STOPPING: 'Stopping',
  DISABLED: 'Starting',
  ERROR: 'Broken',
};

type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that would redirect a client to another engine or change its protocol. */
const ENGINE_VARIABLES = [
  'DOCKER_CONTEXT',
  'DOCKER_TLS',
  'DOCKER_TLS_VERIFY',
  'DOCKER_CERT_PATH',
  'DOCKER_API_VERSION',
];

/**
 * Returns the user's environment with the engine configured. An explicit namespace is kept.
 * @param engine its name and its endpoint from the status, such as `unix:///run/docker.sock`.
 */
export function engineEnvironment(
  engine: { name: 'moby' | 'containerd'; endpoint: string },
  env: Environment,
  directories: readonly string[] = [],
): Record<string, string | undefined> {
  const kept = Object.fromEntries(Object.entries(env).filter(([name]) => !ENGINE_VARIABLES.includes(name)));
  const path = [...directories, ...(env.PATH ? [env.PATH] : [])].join(':');
  const common = { ...kept, ...(path === '' ? {} : { PATH: path }) };
  if (engine.name === 'moby') return { ...common, DOCKER_HOST: engine.endpoint };
  return {
    ...common,
    CONTAINERD_ADDRESS: engine.endpoint.replace(/^unix:\/\//, ''),
    CONTAINERD_NAMESPACE: env.CONTAINERD_NAMESPACE || 'default',
  };
}

async function otherShell(connection: Connection, args: readonly string[], io: Io): Promise<number> {
  const { machineShell } = await import('../../src/client/rancher-desktop/index.ts');
  const way = await machineShell(connection, io);
  if ('state' in way) return refuse(notInState(way.state), io);
  if ('failure' in way) {
    io.err(`${way.failure}\n`);
    return way.exitCode;
  }
  return runAttached({ argv: [...way.argv, ...args], env: way.env, terminal: io.interactive });
}

const PRODUCT_VM = `The ${COMPATIBLE.productName} VM needs to be`;
const TO_RUN = "in order to execute 'rdctl shell', but it";
/** Message when no service is running. */
export const NOT_RUNNING = `${PRODUCT_VM} running ${TO_RUN} currently is not.`;

/** Returns the message for a machine that is not running. @param state Rancher Desktop's name for it: `Stopped`. */
function notInState(state: string): string {
  return `${PRODUCT_VM} in state "Running" ${TO_RUN} is current in state "${state}".`;
}

/** Prints a refusal and returns the exit code. Sentences about the state have no `Error:` prefix; scripts match them. */
export function refuse(sentence: string, io: Io): number {
  io.err(`${sentence}\nStart it with 'rdctl start', and wait with 'rdctl start --wait'.\n`);
  return 1;
}
