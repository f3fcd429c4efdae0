import { createClient } from '../../src/client/client.ts';
import { checkDriver } from '../../src/client/session/driver.ts';
import { homeOf } from '../../src/client/session/home.ts';
import { failureLine } from '../../src/client/session/launch.ts';
import { RdError } from '../../src/errors.ts';
import { defined, isObject, type JsonObject } from '../../src/json.ts';
import { PRODUCT } from '../../src/product.ts';
import { noting } from '../../src/state/drop-in.ts';
import { APPLICATION_FLAGS, applicationRequest, applicationWords } from '../arguments/application-arguments.ts';
import { noArguments } from '../arguments/arguments.ts';
import { ADOPT } from '../arguments/shared-flags.ts';
import { defineCommand, type Io } from '../command.ts';
import { resetText } from '../views/reset-text.ts';
import { driverText, showNotices } from '../views/service-activity.ts';

/** Milliseconds between checks of the parent process. */
const PARENT_MS = 500;
/** Maximum bytes of settings on standard input. Longer input is truncated and then fails to parse. */
const MAX_SETTINGS_BYTES = 1024 * 1024;
/** Name of the executable that other clients start, installed beside `rdctl`. */
const APPLICATION = 'rdctl-app';
const APPLICATION_HELP = `Run the service in the foreground, with settings as arguments

Usage:
  ${APPLICATION} [--SETTING=VALUE ...] [--no-modal-dialogs]

For clients that start the application themselves. A setting is named by its path, as in
--kubernetes.enabled=false; \`rdctl explain\` lists all of them. Unknown arguments before the first setting
are ignored; after it they are errors. Ctrl-C and \`rdctl shutdown\` stop the service.

  -h, --help     Show this help
      --version  Show the version
`;
const POWERS = ['keep', 'started', 'stopped'] as const;

export const serve = defineCommand({
  name: 'serve',
  summary: 'Run the service in the foreground',
  usage: '',
  description: `Listens on 127.0.0.1, writes the connection file that other commands read, and keeps the
machine, engine and cluster in sync with the settings. Ctrl-C, SIGTERM and \`rdctl shutdown\` stop
all of them; the settings stay unchanged. Without --port, the first free port from 6107 up is used.

The driver is chosen at the first start and never changes: --driver, RDCTL_DRIVER, or the first
real driver that can run on this computer. \`simulated\` runs nothing and is never chosen automatically.

  rdctl serve --driver host`,
  flags: {
    ...APPLICATION_FLAGS,
    driver: { type: 'string', summary: 'Driver to use at the first start', placeholder: 'NAME' },
    'allow-host': {
      type: 'strings',
      summary: 'Additional host name that clients may use besides localhost; repeatable',
      placeholder: 'NAME',
    },
    adopt: { type: 'boolean', summary: ADOPT },
    power: { type: 'string', summary: 'Initial desired power state', values: POWERS, hidden: true },
    idle: {
      type: 'integer',
      summary: 'Keep the backend off, and exit with the parent process',
      hidden: true,
    },
    launched: { type: 'boolean', summary: 'Print the error code if startup fails', hidden: true },
    'stop-left': { type: 'boolean', summary: 'Stop what a killed service left running, and exit', hidden: true },
    settings: {
      type: 'string',
      summary: 'Initial settings (partial): `-` reads them',
      values: ['-'],
      hidden: true,
    },
    'as-application': {
      type: 'boolean',
      summary: 'Read the arguments as those of the compatible application',
      hidden: true,
    },
  },
  classic: true,
  async run({ flags, given, args, globals, io }) {
    if (!flags['as-application']) noArguments(args, 'serve');
    if (flags['stop-left']) {
      const { stopLeft } = await import('../../src/service/stop-left.ts');
      await stopLeft({ env: io.env, platform: io.platform, signal: io.signal, self: io.self });
      return 0;
    }
    if (flags['as-application']) {
      const { asks } = await noting(homeOf(io), () => applicationRequest(args));
      if (asks) {
        io.out(asks === 'version' ? `${APPLICATION} v${PRODUCT.version}\n` : APPLICATION_HELP);
        return 0;
      }
    }
    const driver = typeof flags.driver === 'string' ? flags.driver : undefined;
    const { settings, noModalDialogs } = await noting(homeOf(io), async () => {
      checkDriver(driver, io.env);
      const fromLauncher = flags.settings === undefined ? undefined : await readSettings(io);
      return applicationRequest([...applicationWords(given), ...args], fromLauncher);
    });
    // Install the handlers first: from here on a signal stops everything that was started.
    const { signal } = io;
    const { runService } = await import('../../src/service.ts');
    const service = await runService({
      env: io.env,
      platform: io.platform,
      self: io.self,
      adopt: flags.adopt === true,
      power: POWERS.find((power) => power === flags.power) ?? 'keep',
      idle: flags.idle !== undefined,
      noModalDialogs,
      signal,
      say: (text) => io.err(`notice: ${text}\n`),
      allowHosts: Array.isArray(flags['allow-host']) ? flags['allow-host'] : [],
      ...defined({ driver }),
      ...(globals.port ? { port: globals.port } : {}),
      ...defined({ settings }),
      ...(io.policies ? { policies: io.policies } : {}),
      ...inheritedSocket(io),
    }).catch((error: unknown) => {
      if (flags.launched && error instanceof RdError) io.err(failureLine(error.code));
      throw error;
    });
    const status = await createClient(service.connection).status();
    io.err(`rdctl listens on http://127.0.0.1:${service.port}, ${driverText(status.driver)}\n`);
    showNotices(status, io);
    await Promise.race([
      service.stopped,
      waitForAbort(signal),
      ...(flags.idle === undefined ? [] : [waitForParentExit(flags.idle, signal)]),
    ]);
    await service.stop(signal.aborted ? String(signal.reason) : 'the command that started it has exited');
    await service.stopped;
    const summary = service.resetSummary();
    if (summary) {
      io.err(resetText(summary));
      return summary.failed.length === 0 ? 0 : 1;
    }
    if (service.backendStopped()) return 0;
    throw new RdError('ERR_DRIVER_FAILED', 'the service exited, but its backend did not stop', {
      advice: 'Check its log (`rdctl paths logs`). `rdctl shutdown` tries again; `rdctl start` takes the backend over.',
    });
  },
});

/** Returns the socket of a service manager that started this process by it (sd_listen_fds(3)). */
function inheritedSocket({ env: { LISTEN_PID, LISTEN_FDS } }: Pick<Io, 'env'>): { inherited?: number } {
  return Number(LISTEN_PID) === process.pid && Number(LISTEN_FDS) >= 1 ? { inherited: 3 } : {};
}

/** Resolves when the parent process has exited for any reason: nothing else ends a service that runs for one command. */
function waitForParentExit(parent: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      if (process.ppid === parent && !signal.aborted) return;
      clearInterval(timer);
      resolve();
    }, PARENT_MS);
    timer.unref();
  });
}

function waitForAbort(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

async function readSettings(io: Io): Promise<JsonObject> {
  const text = (await io.readStdin(MAX_SETTINGS_BYTES)).toString('utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message quotes the text, which may contain a password.
    value = undefined;
  }
  if (!isObject(value))
    throw new RdError('ERR_SETTINGS_INVALID', 'the settings on standard input are not a JSON object');
  return value;
}
