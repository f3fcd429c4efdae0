import { type Client, createClient } from '../../src/client/client.ts';
import { homeService } from '../../src/client/home-service.ts';
import { type ErrorCode, RdError } from '../../src/errors.ts';
import type { JsonObject } from '../../src/json.ts';
import { COMPATIBLE } from '../../src/product.ts';
import { noting } from '../../src/storage/background-log.ts';
import { homeOf, namesService } from '../absence.ts';
import { ADOPT } from '../adopt.ts';
import { noArguments, usage } from '../arguments.ts';
import { askService, type Caller } from '../asking.ts';
import { defineCommand, type Io } from '../command.ts';
import { checkDriver } from '../driver-name.ts';
import { driverText } from '../driver-text.ts';
import { launchService } from '../launch.ts';
import { stays } from '../leaving.ts';
import { quote } from '../literals.ts';
import { showNotices } from '../notices.ts';
import { platformName } from '../platform-name.ts';
import {
  type GivenSetting,
  givenSettings,
  SETTING_FLAG_TABLE,
  settingsPayload,
  valueAdvice,
} from '../setting-flags.ts';
import { writeSettings } from '../setting-write.ts';
import { waitStarted } from '../wait-started.ts';

const TEN_MINUTES = 600_000;

export const start = defineCommand({
  name: 'start',
  summary: 'Start the service in the background, or act as set when it runs',
  usage: '',
  description: `Returns when the API answers; with --wait when everything that was asked for runs.
The settings that are named are in force before anything is started. On a running service they
are changed as \`set\` does, and a stopped backend is started.`,
  flags: {
    ...SETTING_FLAG_TABLE,
    driver: { type: 'string', summary: 'What carries the desktop, at the first start', placeholder: 'NAME' },
    adopt: { type: 'boolean', summary: ADOPT },
    path: {
      type: 'string',
      short: 'p',
      summary: 'Executable of rdctl to run as the service, instead of this one',
      placeholder: 'FILE',
    },
    'no-modal-dialogs': { type: 'boolean', summary: 'Accepted for scripts; there are no dialogs' },
    wait: { type: 'boolean', summary: 'Return only when the backend is ready' },
    'wait-timeout': { type: 'duration', summary: 'Limit for --wait (default 10m0s)' },
  },
  classic: true,
  async run(invocation) {
    const { args, given, flags, globals, io } = invocation;
    noArguments(args, 'start', valueAdvice(args, given));
    const settings = givenSettings(given, platformName(io.platform));
    const path = text(flags.path);
    const driver = text(flags.driver);
    await noting(homeOf(io), () => checkDriver(driver, io.env));
    let running = await runningService(invocation);
    if (running && path !== undefined) {
      throw usage(`--path ${quote(path)} specified but ${COMPATIBLE.productName} is already running`);
    }
    let done = running && (await changeRunning(running, { driver, settings }, invocation));
    while (!done) {
      const { connection, pid } = await launchService({
        io,
        globals,
        power: 'started',
        ...(flags.adopt === true ? { adopt: true } : {}),
        ...(flags['no-modal-dialogs'] === true ? { noModalDialogs: true } : {}),
        ...(driver === undefined ? {} : { driver }),
        ...(path === undefined ? {} : { path }),
        ...(settings.length === 0 ? {} : { settings: settingsPayload(settings) }),
      });
      running = createClient(connection);
      // One that another command has started knows nothing of what is asked for here.
      done = pid === undefined ? await changeRunning(running, { driver, settings }, invocation) : { client: running };
      if (!done) continue;
      const status = await running.status({ signal: io.signal });
      io.err(`The service runs: pid ${status.pid}, ${driverText(status.driver)}\n`);
      showNotices(status, io);
    }
    if (flags.wait === true) {
      const { client, generation, sent } = done;
      const timeoutMs = typeof flags['wait-timeout'] === 'number' ? flags['wait-timeout'] : TEN_MINUTES;
      await waitStarted({ client, generation, sent, timeoutMs, io });
    }
    return 0;
  },
});

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/**
 * The service that answers, or nothing when a local one may be launched: none was named, and the lock of this home shows that
 * none lives that stays, whatever answers where an old connection file leads.
 */
async function runningService(caller: Caller): Promise<Client | undefined> {
  const asked = await askService(caller, async (connection) => {
    const client = createClient(connection);
    await client.settings({ signal: caller.io.signal });
    return client;
  });
  if (!('answer' in asked)) return undefined;
  return (await stays(asked.answer, caller)) ? asked.answer : undefined;
}

function isOfThisHome({ connection }: Client, { globals, io }: Caller): boolean {
  return !connection.foreign && !globals.port && !namesService(globals, io);
}

interface Changed {
  client: Client;
  /** Version of the desired state, when anything had to be asked for. */
  generation?: number | undefined;
  /** The settings as they were sent. */
  sent?: JsonObject;
}

/** What is asked of a service that runs; nothing when it has ended, or is about to end, before it had taken all of it. */
async function changeRunning(
  client: Client,
  { driver, settings }: { driver: string | undefined; settings: readonly GivenSetting[] },
  caller: Caller,
): Promise<Changed | undefined> {
  const { io } = caller;
  try {
    await sameDriver(client, driver, io);
    const written = settings.length > 0 ? await writeSettings(client, settings, io) : undefined;
    const generation = (await startBackend(client, io)) ?? written?.generation;
    return { client, generation, ...(written ? { sent: written.body } : {}) };
  } catch (error) {
    if (!(error instanceof RdError) || !OF_AN_END.includes(error.code) || !isOfThisHome(client, caller)) throw error;
    if ((await homeService(homeOf(io))).kind === 'running') throw error;
    return undefined;
  }
}

/** What a service that ends in the middle of something makes of it. */
const OF_AN_END: readonly ErrorCode[] = ['ERR_NOT_RUNNING', 'ERR_CONNECTION', 'ERR_NOT_READY'];

/** The driver of existing state never changes by a start. */
async function sameDriver(client: Client, driver: string | undefined, io: Io): Promise<void> {
  if (driver === undefined || client.connection.foreign) return;
  const status = await client.status({ signal: io.signal });
  if (status.driver.name === driver) return;
  throw new RdError('ERR_WRONG_TARGET', `the running service uses the driver ${status.driver.name}, not ${driver}`, {
    advice: 'Leave --driver out, or use another home: RDCTL_HOME.',
  });
}

/** States in which a start has to be asked for. What stood in the way of one that was given up may be gone. */
const ASK_IN: readonly string[] = ['STOPPED', 'STOPPING', 'ERROR'];

/** Returns the version of the desired state when the backend had to be asked to start. */
async function startBackend(client: Client, io: Io): Promise<number | undefined> {
  const { vmState } = await client.backendState({ signal: io.signal });
  if (!ASK_IN.includes(vmState)) return undefined;
  return (await client.setBackendState('STARTED', { signal: io.signal })).generation;
}
