import { existsSync } from 'node:fs';
import { createClient } from '../../src/client/client.ts';
import type { Connection } from '../../src/client/connection.ts';
import { homeService } from '../../src/client/home-service.ts';
import { sentenceOf } from '../../src/client/replies.ts';
import { homeOf, namesService } from '../../src/client/session/home.ts';
import { leftoverText } from '../../src/client/session/missing.ts';
import { RdError } from '../../src/errors.ts';
import { type Allowed, type Consent, LOSS_OF, missingConsent } from '../../src/plan/losses.ts';
import { COMPATIBLE, PRODUCT } from '../../src/product.ts';
import { requireMarked } from '../../src/state/drop-in.ts';
import {
  checkPlaces,
  clearCache,
  factoryReset,
  type ResetSummary,
  untouchedSummary,
} from '../../src/state/factory-reset.ts';
import { lockHome } from '../../src/state/home-lock.ts';
import { isInstalled } from '../../src/state/own-files.ts';
import type { Places } from '../../src/state/places.ts';
import { ALLOW_FLAG, allowedBy } from '../arguments/allow-flag.ts';
import { noArguments } from '../arguments/arguments.ts';
import { hostTargets } from '../arguments/environment.ts';
import { mistake } from '../arguments/values.ts';
import { type Caller, defineCommand, type GlobalFlags, type Io } from '../command.ts';
import { askYes } from '../views/consent.ts';
import { resetText } from '../views/reset-text.ts';
import { jsonText } from '../views/text.ts';
import { OUTPUT_FLAG } from '../views/view.ts';
import { stopService } from './shutdown.ts';

/** Names for `--target`, for when two applications are found. */
const TARGETS = [PRODUCT.name, COMPATIBLE.target] as const;

/** Milliseconds until the reply, which the server sends once the backend is up again. */
const LIMIT_MS = 30 * 60_000;
/** Milliseconds with a snapshot: copying terabytes is slow. */
const COPY_LIMIT_MS = 24 * 3_600_000;

export const reset = defineCommand({
  name: 'reset',
  summary: 'Remove the cluster, the machine, downloads, or everything',
  usage: '',
  description: `--k8s deletes everything in the cluster and keeps images and containers. --vm deletes the machine with
all images, containers and volumes, and creates a new one. --cache deletes downloads. --factory stops the
service and removes settings, data, guest images, extensions and logs, and what rdctl has added to shell files,
docker configuration and autostart. It never removes snapshots, and removes downloads only with --cache.

--k8s and --vm make a snapshot first, and reset nothing if there is no room for it; --no-snapshot does without.

On a terminal, the command asks for confirmation; --yes or --allow skips the prompt. The command reports on stderr what was
removed, and exits with 1 if something could not be removed. With --dry-run, it only shows what would be removed or lost.

  rdctl reset --k8s
  rdctl reset --factory --keep-history`,
  flags: {
    vm: { type: 'boolean', summary: 'Delete the machine, with images, containers and volumes' },
    k8s: { type: 'boolean', summary: 'Delete everything in the cluster' },
    cache: { type: 'boolean', summary: 'Delete downloads' },
    factory: { type: 'boolean', summary: 'Remove everything in this installation' },
    'dry-run': { type: 'boolean', summary: 'Only show what would be removed' },
    'keep-history': { type: 'boolean', summary: 'With --factory: keep the history of changes' },
    'no-snapshot': { type: 'boolean', summary: 'With --k8s or --vm: make no snapshot first' },
    allow: ALLOW_FLAG,
    yes: { type: 'boolean', short: 'y', summary: 'Do not ask' },
    target: { type: 'string', summary: 'Which application to reset, if another one is running', values: TARGETS },
    output: { ...OUTPUT_FLAG, summary: 'Output format of --factory' },
  },
  classic: true,
  async run(invocation) {
    const { flags, args, io } = invocation;
    noArguments(args, 'reset');
    const { target } = flags;
    const yes = flags.yes === true;
    const dryRun = flags['dry-run'] === true;
    if (flags.factory === true) {
      const keepsHistory = flags['keep-history'] === true;
      const json = flags.output === 'json';
      const options = { cache: flags.cache === true, keepsHistory, yes, json, dryRun };
      return resetEverything({ ...options, ...(target ? { target } : {}) }, invocation);
    }
    const mode = flags.vm === true ? 'wipe' : flags.k8s === true ? 'fast' : undefined;
    if (mode === undefined && flags.cache !== true) {
      throw mistake('no reset options specified. Use --help to see available options');
    }
    const allowed: Allowed | undefined = yes ? 'all' : flags.allow && allowedBy(flags.allow);
    if (mode !== undefined) {
      const options: BackendReset = {
        ...{ mode, snapshot: !flags['no-snapshot'], dryRun },
        ...(allowed ? { allowed } : {}),
        ...(target ? { target } : {}),
      };
      const answer = await resetBackend(options, invocation);
      if (answer !== undefined) io.out(`${answer}\n`);
    }
    if (flags.cache === true) {
      const here = homeOf(io);
      await requireMarked(here);
      if (dryRun) {
        await (await import('./reset/dry-run.ts')).showDownloads(here, io);
        return 0;
      }
      await clearCache(here);
      io.out('Cache cleared successfully\n');
    }
    return 0;
  },
});

const LOSSES = {
  wipe: 'the machine with all images, containers and volumes',
  fast: 'everything in the cluster',
};

interface BackendReset {
  mode: keyof typeof LOSSES;
  snapshot: boolean;
  dryRun: boolean;
  /** Consent from the command line, if any. */
  allowed?: Allowed;
  target?: string;
}

/** Resets the backend. Returns the reply of the service; undefined for a dry run. */
async function resetBackend(
  { mode, snapshot, dryRun, allowed, target }: BackendReset,
  { connect, globals, io }: Caller,
): Promise<string | undefined> {
  const client = createClient(await connect());
  // Checked first: the listener may be another program.
  await client.backendState({ signal: io.signal });
  const { foreign, file } = client.connection;
  if (foreign !== (target === COMPATIBLE.target) && !(foreign && consents(target, globals, io))) {
    throw wrongTarget(foreign, file);
  }
  const whose = foreign ? ` of ${COMPATIBLE.productName}` : '';
  if (dryRun) {
    const { showLoss } = await import('./reset/dry-run.ts');
    await showLoss(client, `${LOSSES[mode]}${whose}`, foreign ? undefined : snapshot, io);
    return undefined;
  }
  const consent = await consentToReset(mode, allowed, whose, io);
  const body = JSON.stringify(foreign ? { mode } : { mode, snapshot, ...(consent ? { consent } : {}) });
  const timeoutMs = snapshot && !foreign ? COPY_LIMIT_MS : LIMIT_MS;
  const request = { method: 'PUT', path: '/v1/k8s_reset', body, timeoutMs, signal: io.signal } as const;
  if (foreign) return sentenceOf(client, request);
  const { serviceLine } = await import('../views/service-activity.ts');
  const { workText } = await import('../views/work-text.ts');
  const stopShowing = serviceLine(client, io, { text: workText, afterMs: 1_000, prints: true });
  return sentenceOf(client, request).finally(stopShowing);
}

/** Returns how a person has consented; undefined if nobody could be asked. Throws `ERR_CONSENT_NEEDED`. */
async function consentToReset(
  mode: keyof typeof LOSSES,
  allowed: Allowed | undefined,
  whose: string,
  io: Io,
): Promise<Consent['by'] | undefined> {
  const loss = LOSS_OF[mode];
  if (allowed) {
    if (missingConsent([loss], allowed).length === 0) return 'flag';
    throw new RdError('ERR_CONSENT_NEEDED', `This deletes ${LOSSES[mode]}${whose}; nothing was changed.`, {
      advice: `Add --allow ${loss}, or --yes.`,
    });
  }
  if (!io.interactive) return undefined;
  await askYes(`This deletes ${LOSSES[mode]}${whose}`, io);
  return 'prompt';
}

/** Whether flags or the environment consent to the reset of an auto-discovered application, which is not reset otherwise. */
function consents(target: string | undefined, globals: GlobalFlags, io: Io): boolean {
  return target === undefined && Boolean(globals['config-path'] || io.env.RDCTL_CONFIG_PATH || io.env.RDCTL_COMPAT);
}

function wrongTarget(foreign: boolean, file: string | undefined): RdError {
  const what = foreign ? COMPATIBLE.productName : 'a service of rdctl';
  return new RdError(
    'ERR_WRONG_TARGET',
    `the running application is ${what}${file === undefined ? '' : `, found through ${file}`}`,
    {
      advice: foreign
        ? `To reset it, add --target ${COMPATIBLE.target}`
        : 'Leave --target out, or name the other application with --config-path.',
    },
  );
}

interface FactoryResetInput {
  /** Whether to remove downloads, too. */
  cache: boolean;
  /** Whether the history of this home stays. */
  keepsHistory?: boolean;
  /** Whether to skip the prompt. */
  yes: boolean;
  target?: string;
  json: boolean;
  dryRun?: boolean;
}

/**
 * Performs a factory reset. The service of this home is stopped and its data removed by this process; a named service or another application is asked
 * to reset itself. Prints the result and returns the exit code.
 * @throws RdError `ERR_WRONG_TARGET` when another application answers and was not named, and any failure to stop the service; nothing is
 *   removed then.
 */
async function resetEverything(options: FactoryResetInput, caller: Caller): Promise<number> {
  const { io } = caller;
  const elsewhere = await remoteConnection(options, caller);
  if (elsewhere) return overTheApi(elsewhere, options, io);
  const here = homeOf(io);
  await requireMarked(here);
  checkPlaces(here, options.cache);
  const { dryRun = false } = options;
  if (dryRun) {
    const { showFactoryReset, showSummary } = await import('./reset/dry-run.ts');
    if (await isInstalled(here)) {
      const { cache, keepsHistory = false, json } = options;
      await showFactoryReset(here, { cache, keepsHistory, json }, caller);
    } else showSummary(await untouchedSummary(here, options.cache), options.json, io);
    return 0;
  }
  if (!(await isInstalled(here))) return report(await untouchedSummary(here, options.cache), options, io);
  await consent(`all ${PRODUCT.name} data in ${here.data}`, options, io);
  // The error for a backend that does not stop names the reset.
  await stopOwn(options, caller).catch(async (error: unknown) => {
    await requireStoppedBackend(here);
    throw error;
  });
  await requireStoppedBackend(here);
  // The lock file itself is not reported.
  const hadState = existsSync(here.state);
  const lock = await lockHome(here.serviceLock, here.data);
  try {
    const { removed, ...rest } = await removeAll(here, options, io);
    return report({ removed: removed.filter((path) => hadState || path !== here.state), ...rest }, options, io);
  } finally {
    await lock.release();
  }
}

/** Returns the connection that must perform the reset; undefined for this home. */
async function remoteConnection(
  { target }: FactoryResetInput,
  { connect, globals, io }: Caller,
): Promise<Connection | undefined> {
  if (target === PRODUCT.name) return undefined;
  const named = namesService(globals, io) || Boolean(globals.port) || target === COMPATIBLE.target;
  if (named) return connect();
  const found = await connect().catch((error: unknown) => {
    if (error instanceof RdError) return undefined;
    throw error;
  });
  if (!found?.foreign || !(await answers(found, io))) return undefined;
  throw new RdError(
    'ERR_WRONG_TARGET',
    `the running application is ${COMPATIBLE.productName}, found through ${found.file}`,
    {
      advice: `Choose which one to reset: --target ${COMPATIBLE.target}, or --target ${PRODUCT.name} for this installation.`,
    },
  );
}

async function answers(connection: Connection, io: Io): Promise<boolean> {
  return createClient(connection)
    .backendState({ signal: io.signal })
    .then(
      () => true,
      (error: unknown) => !(error instanceof RdError && error.code === 'ERR_NOT_RUNNING'),
    );
}

async function overTheApi(connection: Connection, options: FactoryResetInput, io: Io): Promise<number> {
  const client = createClient(connection);
  // Checked first: the listener may be another program.
  await client.backendState({ signal: io.signal });
  const who = connection.foreign ? COMPATIBLE.productName : 'the application';
  if (options.dryRun) {
    io.out(
      `Would remove all data of ${who} at ${connection.host}:${connection.port}: settings, containers, images, volumes.\n`,
    );
    return 0;
  }
  await consent(`all data of ${who} at ${connection.host}:${connection.port}`, options, io);
  const body = JSON.stringify({ keepSystemImages: !options.cache });
  const sentence = await sentenceOf(client, { method: 'PUT', path: '/v1/factory_reset', body, signal: io.signal });
  io.err(`${sentence}\n${who} performs the reset itself; details are not available.\n`);
  return 0;
}

async function consent(what: string, { yes }: FactoryResetInput, io: Io): Promise<void> {
  if (yes || !io.interactive) return;
  await askYes(`This removes ${what}: settings, containers, images, volumes. Snapshots are kept`, io);
}

/** Stops the service like `rdctl shutdown`, including anything left by a killed one. */
async function stopOwn({ target }: FactoryResetInput, { connect, globals, io }: Caller): Promise<void> {
  const own =
    target === undefined
      ? connect
      : () => Promise.reject(new RdError('ERR_NOT_RUNNING', 'another application responded'));
  const quiet: Io = Object.create(io, { out: { value: () => undefined } });
  await stopService({ wait: true }, { globals, io: quiet, connect: own });
}

/** Throws for a backend that did not stop, to keep the state that identifies it. */
async function requireStoppedBackend(here: Places): Promise<void> {
  const home = await homeService(here);
  if (home.kind !== 'left') return;
  throw new RdError('ERR_DRIVER_FAILED', 'the backend did not stop; nothing was removed', {
    details: [leftoverText(home, '.')],
    advice: `Check the logs in ${here.logs}, then try again.`,
  });
}

async function removeAll(
  here: Places,
  { cache, keepsHistory = false }: FactoryResetInput,
  io: Io,
): Promise<ResetSummary> {
  const targets = hostTargets(io);
  const failed: ResetSummary['failed'] = [];
  if (!('offBecause' in targets)) {
    const { undoIntegration } = await import('../../src/features/host-integration/parts.ts');
    for (const { state, file, message = '' } of await undoIntegration(targets)) {
      if (state === 'failed') failed.push({ path: file, reason: message });
    }
  }
  const summary = await factoryReset(here, { cache, keepsHistory });
  return { ...summary, failed: [...failed, ...summary.failed] };
}

function report(summary: ResetSummary, { json }: FactoryResetInput, io: Io): number {
  if (json) io.out(jsonText(summary));
  else io.err(resetText(summary));
  return summary.failed.length === 0 ? 0 : 1;
}

export const factoryResetCommand = defineCommand({
  name: 'factory-reset',
  summary: 'Remove everything in this installation',
  usage: '',
  description: 'Former name of `rdctl reset --factory`.',
  flags: {
    'remove-kubernetes-cache': { type: 'boolean', summary: 'Also remove downloads' },
    yes: { type: 'boolean', short: 'y', summary: 'Do not ask' },
    target: { type: 'string', summary: 'Which application to reset, if another one is running', values: TARGETS },
    output: OUTPUT_FLAG,
  },
  classic: true,
  endsService: true,
  deprecated: "Use 'rdctl reset --factory' instead.",
  async run(invocation) {
    const { flags, args } = invocation;
    noArguments(args, 'factory-reset');
    const { target } = flags;
    return resetEverything(
      {
        cache: flags['remove-kubernetes-cache'] === true,
        yes: flags.yes === true,
        json: flags.output === 'json',
        ...(target ? { target } : {}),
      },
      invocation,
    );
  },
});
