import { type Client, createClient } from '../../src/client/client.ts';
import { RdError } from '../../src/errors.ts';
import type { JsonObject } from '../../src/json.ts';
import { COMPATIBLE } from '../../src/product.ts';
import { ADOPT } from '../adopt.ts';
import { noArguments, usage } from '../arguments.ts';
import { defineCommand, type GlobalFlags, type Io } from '../command.ts';
import { checkDriver } from '../driver-name.ts';
import { driverText } from '../driver-text.ts';
import { launchService } from '../launch.ts';
import { quote } from '../literals.ts';
import { showNotices } from '../notices.ts';
import { platformName } from '../platform-name.ts';
import { givenSettings, SETTING_FLAG_TABLE, settingsPayload, valueAdvice } from '../setting-flags.ts';
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
  async run({ args, given, flags, globals, io, connect }) {
    noArguments(args, 'start', valueAdvice(args, given));
    const settings = givenSettings(given, platformName(io.platform));
    const path = text(flags.path);
    const driver = text(flags.driver);
    checkDriver(driver, io.env);
    const running = await runningService(connect, globals, io);
    let client: Client;
    let generation: number | undefined;
    let sent: JsonObject | undefined;
    if (running) {
      if (path !== undefined) {
        throw usage(`--path ${quote(path)} specified but ${COMPATIBLE.productName} is already running`);
      }
      client = running;
      await sameDriver(client, driver, io);
      if (settings.length > 0) ({ body: sent, generation } = await writeSettings(client, settings, io));
      generation = (await startBackend(client, io)) ?? generation;
    } else {
      const connection = await launchService({
        io,
        globals,
        power: 'started',
        ...(flags.adopt === true ? { adopt: true } : {}),
        ...(flags['no-modal-dialogs'] === true ? { noModalDialogs: true } : {}),
        ...(driver === undefined ? {} : { driver }),
        ...(path === undefined ? {} : { path }),
        ...(settings.length === 0 ? {} : { settings: settingsPayload(settings) }),
      });
      client = createClient(connection);
      const status = await client.status({ signal: io.signal });
      io.err(`The service runs: pid ${status.pid}, ${driverText(status.driver)}\n`);
      showNotices(status, io);
    }
    if (flags.wait === true) {
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
 * none lives, whatever answers where an old connection file leads.
 */
async function runningService(
  connect: () => Promise<Client['connection']>,
  globals: GlobalFlags,
  io: Io,
): Promise<Client | undefined> {
  let connection: Client['connection'] | undefined;
  try {
    connection = await connect();
    const client = createClient(connection);
    await client.settings({ signal: io.signal });
    return client;
  } catch (error) {
    const { absentService } = await import('../absence.ts');
    await absentService(error, { globals, io }, connection);
    return undefined;
  }
}

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
