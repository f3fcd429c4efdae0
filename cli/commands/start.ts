import { createClient } from '../../src/client/client.ts';
import type {
  Client,
  EventClient,
  LifecycleClient,
  PlanClient,
  Server,
  SettingsClient,
} from '../../src/client/contract.ts';
import { waitConverged, watchStatus } from '../../src/client/converge.ts';
import { homeService } from '../../src/client/home-service.ts';
import { refuseSuperseded } from '../../src/client/overtaken.ts';
import { checkDriver } from '../../src/client/session/driver.ts';
import { isStaying } from '../../src/client/session/exit.ts';
import { askService } from '../../src/client/session/find.ts';
import { homeOf, isElsewhere } from '../../src/client/session/home.ts';
import { launchService } from '../../src/client/session/launch.ts';
import { areFilesDone, hasFailedFiles, userFilesError } from '../../src/client/user-files.ts';
import { type ErrorCode, RdError } from '../../src/errors.ts';
import type { JsonObject } from '../../src/json.ts';
import { type Clock, steadyClock } from '../../src/os/clock.ts';
import { type WaitingLine, waitingLine } from '../../src/os/waiting-line.ts';
import type { PlanRequest } from '../../src/plan/change.ts';
import { COMPATIBLE } from '../../src/product.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
import { noting } from '../../src/state/drop-in.ts';
import { noArguments } from '../arguments/arguments.ts';
import {
  type GivenSetting,
  givenSettings,
  SETTING_FLAG_TABLE,
  settingsPayload,
  valueAdvice,
} from '../arguments/setting-flags.ts';
import { ADOPT } from '../arguments/shared-flags.ts';
import { formatDuration, platformName, quote, usage } from '../arguments/values.ts';
import { type Caller, defineCommand, type Io } from '../command.ts';
import { driverText, showNotices } from '../views/service-activity.ts';
import { plainText, style } from '../views/text.ts';
import { workText } from '../views/work-text.ts';
import type { filesOfStart } from './apply/files-at-start.ts';
import { writeSettings } from './set.ts';

const TEN_MINUTES = 600_000;

export const start = defineCommand({
  name: 'start',
  summary: 'Start the service in the background, or update the running one',
  usage: '',
  description: `Returns when the API responds; with --wait, when the backend is ready.
Settings given as flags take effect before anything starts. If the service is already running, its
settings are changed as with \`set\`, and a stopped backend is started. --dry-run shows the plan of that instead.

  rdctl start --container-engine.name moby --wait`,
  flags: {
    ...SETTING_FLAG_TABLE,
    driver: { type: 'string', summary: 'Driver to use at the first start', placeholder: 'NAME' },
    adopt: { type: 'boolean', summary: ADOPT },
    'dry-run': { type: 'boolean', summary: 'Only show what would change, and what it would cost' },
    path: {
      type: 'string',
      short: 'p',
      summary: 'rdctl executable to run as the service, instead of this one',
      placeholder: 'FILE',
    },
    'no-modal-dialogs': { type: 'boolean', summary: 'Accepted for compatibility; has no effect' },
    wait: { type: 'boolean', summary: 'Wait until the backend is ready' },
    'wait-timeout': { type: 'duration', any: true, summary: 'How long --wait waits (default 10m0s)' },
  },
  classic: true,
  async run(invocation) {
    const { args, given, flags, globals, io } = invocation;
    noArguments(args, 'start', valueAdvice(args, given));
    const settings = givenSettings(given, platformName(io.platform));
    const path = text(flags.path);
    const driver = text(flags.driver);
    if (flags['dry-run'] === true) {
      checkDriver(driver, io.env);
      const { dryRun } = await import('./set/dry-run.ts');
      return dryRun(settings, 'started', invocation, driver);
    }
    await noting(homeOf(io), () => checkDriver(driver, io.env));
    let running = await runningService(invocation);
    if (running && path !== undefined) {
      throw usage(`--path ${quote(path)} specified but ${COMPATIBLE.productName} is already running`);
    }
    let done = running && (await changeRunning(running, { driver, settings }, invocation));
    if (!done) await nameFiles({ driver, settings: settingsPayload(settings), adopt: flags.adopt === true }, io);
    while (!done) {
      const { connection, pid } = await launchService({
        io,
        globals,
        power: 'started',
        driver,
        path,
        adopt: flags.adopt === true,
        noModalDialogs: flags['no-modal-dialogs'] === true,
        settings: settings.length === 0 ? undefined : settingsPayload(settings),
      });
      running = createClient(connection);
      // A service that another command started has not received this command's request.
      done = pid === undefined ? await changeRunning(running, { driver, settings }, invocation) : { client: running };
      if (!done) continue;
      const status = await running.status({ signal: io.signal });
      io.err(`Service running: pid ${status.pid}, ${driverText(status.driver)}\n`);
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

/** Prints to stderr the files of the user that the start of a service is about to change. */
async function nameFiles(request: Parameters<typeof filesOfStart>[1], io: Io): Promise<void> {
  const { filesOfStart } = await import('./apply/files-at-start.ts');
  const { files, advice } = await filesOfStart(io, request);
  if (advice !== undefined) io.err(`notice: ${advice}\n`);
  if (files.length === 0) return;
  const { userFilesText } = await import('../views/plan-text.ts');
  io.err(`${userFilesText('The start changes your files:', files, style(io.color))}\n`);
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/**
 * Returns the running service. Undefined when a local one may be launched: none was named, and the home's lock shows no live service, whatever
 * answers at the address of a stale connection file.
 */
async function runningService(caller: Caller): Promise<Client | undefined> {
  const asked = await askService(caller, async (connection) => {
    const client = createClient(connection);
    await client.settings({ signal: caller.io.signal });
    return client;
  });
  if (!('answer' in asked)) return undefined;
  return (await isStaying(asked.answer, caller)) ? asked.answer : undefined;
}

function isOfThisHome({ connection }: Server, { globals, io }: Caller): boolean {
  return !globals.port && !isElsewhere(connection, globals, io);
}

interface Changed {
  client: Client;
  /** Version of the desired state, when a start was requested. */
  generation?: number | undefined;
  /** The settings that were sent. */
  sent?: JsonObject;
}

/** Sends the requests to a running service. Returns undefined when it exits, or is about to, before it took all of them. */
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
    if (!(error instanceof RdError) || !SHUTDOWN_ERRORS.includes(error.code) || !isOfThisHome(client, caller))
      throw error;
    if ((await homeService(homeOf(io))).kind === 'running') throw error;
    return undefined;
  }
}

/** Errors caused by a service that is shutting down. */
const SHUTDOWN_ERRORS: readonly ErrorCode[] = ['ERR_NOT_RUNNING', 'ERR_CONNECTION', 'ERR_NOT_READY'];

/** Throws for another driver than that of existing state, which `start` never changes. */
async function sameDriver(client: Server & LifecycleClient, driver: string | undefined, io: Io): Promise<void> {
  if (driver === undefined || client.connection.foreign) return;
  const status = await client.status({ signal: io.signal });
  if (status.driver.name === driver) return;
  throw new RdError('ERR_WRONG_TARGET', `the running service uses the driver ${status.driver.name}, not ${driver}`, {
    advice: 'Leave --driver out, or use another home: RDCTL_HOME.',
  });
}

/** States in which a start must be requested. The cause of an earlier failure may be gone. */
const START_STATES: readonly string[] = ['STOPPED', 'STOPPING', 'ERROR'];

/** Requests a start if needed. Returns the version of the desired state then. */
async function startBackend(client: LifecycleClient, io: Io): Promise<number | undefined> {
  const { vmState } = await client.backendState({ signal: io.signal });
  if (!START_STATES.includes(vmState)) return undefined;
  return (await client.setBackendState('STARTED', { signal: io.signal })).generation;
}

/** A client for the wait: our service reports its status, another application its state and what it would restart for. */
export type StartedClient = Server &
  EventClient &
  Pick<LifecycleClient, 'status' | 'backendState' | 'setBackendState'> &
  Pick<PlanClient, 'planWithLive' | 'history'> &
  Pick<SettingsClient, 'proposal'>;

export interface WaitInput {
  client: StartedClient;
  /** The requested version of the desired state; if undefined, the one in force. */
  generation: number | undefined;
  /** The body that was sent. Proposing it again shows whether an application without generations still has to restart. */
  sent: JsonObject | undefined;
  timeoutMs: number;
  io: Io;
  clock?: Clock;
}

/**
 * Waits until the backend has converged and the files of the user are in place.
 * @throws RdError `ERR_CONVERGE_FAILED`, `ERR_USER_FILES`, `ERR_DEADLINE`, `ERR_CANCELLED`.
 */
export async function waitStarted(input: WaitInput): Promise<void> {
  const { client, timeoutMs, io, clock = steadyClock } = input;
  const line = waitingLine(io, { afterMs: 1_000 }, clock);
  try {
    if (client.connection.foreign) await waitOther(input, clock, line);
    else
      await waitOwn(input, clock, line).catch((error: unknown) => {
        // Another application given by flags is only recognized here.
        if (!(error instanceof RdError) || error.code !== 'ERR_NOT_FOUND') throw error;
        return waitOther(input, clock, line);
      });
  } catch (error) {
    if (error instanceof RdError && error.code === 'ERR_DEADLINE') {
      const message = `timed out after ${formatDuration(timeoutMs)} waiting for ${COMPATIBLE.productName} to start`;
      throw new RdError('ERR_DEADLINE', message, { cause: error, details: [error.message] });
    }
    if (error instanceof RdError && error.code === 'ERR_CONVERGE_FAILED') {
      const message = `the ${COMPATIBLE.productName} backend failed to start; check the application logs`;
      throw new RdError('ERR_CONVERGE_FAILED', message, { cause: error, details: [error.message] });
    }
    throw error;
  } finally {
    line.end();
  }
}

async function waitOther({ io, ...input }: WaitInput, clock: Clock, line: WaitingLine): Promise<void> {
  const { waitUntilReady } = await import('../../src/client/rancher-desktop/index.ts');
  await waitUntilReady({ ...input, clock, signal: io.signal, show: (text) => line.show(text) });
}

async function waitOwn(
  { client, generation, sent, timeoutMs, io }: WaitInput,
  clock: Clock,
  line: WaitingLine,
): Promise<void> {
  const { signal } = io;
  const wanted = generation ?? (await generationInForce(client, signal));
  let noticed: string | undefined;
  const started: PlanRequest = { settings: sent ?? { version: SCHEMA_VERSION }, state: 'started', prune: [] };
  const feed = watchStatus(client, { clock, signal });
  try {
    const status = await waitConverged({
      feed,
      generation: wanted,
      onLater: () => refuseSuperseded({ client, request: started, generation: wanted }),
      isOver: (now) => areFilesDone(now, wanted),
      timeoutMs,
      clock,
      signal,
      onStatus(status) {
        const held = status.conditions.find(({ reason }) => reason === 'Held');
        // A held backend may need user action, so its notice is shown at once.
        if (held && noticed === undefined) {
          noticed = plainText(held.message);
          line.interrupt();
          io.err(`notice: ${noticed}\n`);
        }
        const work = workText(status);
        if (work !== noticed) line.show(work);
      },
    });
    const error = userFilesError(status);
    if (error) throw error;
  } finally {
    feed.close();
  }
}

/** Returns the generation in force. A request to start also retries files that could not be changed. */
async function generationInForce(client: StartedClient, signal: AbortSignal): Promise<number> {
  const status = await client.status({ signal });
  if (hasFailedFiles(status)) await client.setBackendState('STARTED', { signal });
  return status.generation;
}
