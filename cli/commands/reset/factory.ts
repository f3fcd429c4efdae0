import { existsSync } from 'node:fs';
import { createClient } from '../../../src/client/client.ts';
import type { Connection } from '../../../src/client/connection.ts';
import { homeService } from '../../../src/client/home-service.ts';
import { sentenceOf } from '../../../src/client/plain-call.ts';
import { RdError } from '../../../src/errors.ts';
import { COMPATIBLE, PRODUCT } from '../../../src/product.ts';
import { requireMarked } from '../../../src/state/adoption.ts';
import { checkPlaces, factoryReset, type ResetSummary, untouchedSummary } from '../../../src/state/factory-reset.ts';
import { lockHome } from '../../../src/state/home-lock.ts';
import { isInstalled } from '../../../src/state/own-files.ts';
import type { Places } from '../../../src/state/places.ts';
import type { Invocation, Io } from '../../command.ts';
import { homeOf, leftoverText, namesService } from '../../session/absence.ts';
import { hostTargets } from '../../session/host-targets.ts';
import { askYes } from '../../views/consent.ts';
import { summaryText } from '../../views/reset-summary.ts';
import { shutdown } from '../shutdown.ts';

/** Names for `--target`, for when two applications are found. */
export const TARGETS = [PRODUCT.name, COMPATIBLE.target] as const;

export interface FactoryResetInput {
  /** Also remove downloads. */
  cache: boolean;
  /** Skip the prompt. */
  yes: boolean;
  target?: string;
  json: boolean;
}

type Caller = Pick<Invocation, 'connect' | 'globals' | 'io'>;

/**
 * Factory reset. The service of this home is stopped and its data removed by this process; a named service or another
 * application is asked to reset itself. Prints the result and returns the exit code.
 * @throws RdError `ERR_WRONG_TARGET` when another application answers and was not named, and any failure to stop the
 * service; nothing is removed then.
 */
export async function resetEverything(wish: FactoryResetInput, caller: Caller): Promise<number> {
  const { io } = caller;
  const elsewhere = await remoteConnection(wish, caller);
  if (elsewhere) return overTheApi(elsewhere, wish, io);
  const here = homeOf(io);
  await requireMarked(here);
  checkPlaces(here, wish.cache);
  if (!(await isInstalled(here))) return report(await untouchedSummary(here, wish.cache), wish, io);
  await consent(`everything of ${PRODUCT.name} in ${here.data}`, wish, io);
  // A backend that does not stop is reported in terms of the reset.
  await stopService(wish, caller).catch(async (error: unknown) => {
    await requireStoppedBackend(here);
    throw error;
  });
  await requireStoppedBackend(here);
  // The lock file itself is not reported.
  const hadState = existsSync(here.state);
  const lock = await lockHome(here.serviceLock, here.data);
  try {
    const { removed, ...rest } = await removeAll(here, wish, io);
    return report({ removed: removed.filter((path) => hadState || path !== here.state), ...rest }, wish, io);
  } finally {
    await lock.release();
  }
}

/** The connection that must perform the reset; `undefined` for this home. */
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
  throw new RdError('ERR_WRONG_TARGET', `what runs is ${COMPATIBLE.productName}, found through ${found.file}`, {
    advice: `Say which one is to be reset: --target ${COMPATIBLE.target}, or --target ${PRODUCT.name} for what is ours.`,
  });
}

async function answers(connection: Connection, io: Io): Promise<boolean> {
  return createClient(connection)
    .backendState({ signal: io.signal })
    .then(
      () => true,
      (error: unknown) => !(error instanceof RdError && error.code === 'ERR_NOT_RUNNING'),
    );
}

async function overTheApi(connection: Connection, wish: FactoryResetInput, io: Io): Promise<number> {
  const client = createClient(connection);
  // Check first: the listener may be another program.
  await client.backendState({ signal: io.signal });
  const who = connection.foreign ? COMPATIBLE.productName : 'the application';
  await consent(`everything of ${who} at ${connection.host}:${connection.port}`, wish, io);
  const body = JSON.stringify({ keepSystemImages: !wish.cache });
  const sentence = await sentenceOf(client, { method: 'PUT', path: '/v1/factory_reset', body, signal: io.signal });
  io.err(`${sentence}\nIt is done by ${who} itself; what was removed is not known here.\n`);
  return 0;
}

async function consent(what: string, { yes }: FactoryResetInput, io: Io): Promise<void> {
  if (yes || !io.interactive) return;
  await askYes(`This removes ${what}: settings, containers, images, volumes. Snapshots stay. Go on?`, io);
}

/** Like `rdctl shutdown`, including anything left by a killed service. */
async function stopService({ target }: FactoryResetInput, { connect, globals, io }: Caller): Promise<void> {
  const own =
    target === undefined
      ? connect
      : () => Promise.reject(new RdError('ERR_NOT_RUNNING', 'the other application was not meant'));
  const quiet: Io = Object.create(io, { out: { value: () => undefined } });
  await shutdown.run({ flags: { wait: true }, given: [], args: [], globals, io: quiet, connect: own });
}

/** Keep the state that identifies a backend that did not stop. */
async function requireStoppedBackend(here: Places): Promise<void> {
  const home = await homeService(here);
  if (home.kind !== 'left') return;
  throw new RdError('ERR_DRIVER_FAILED', 'the backend did not stop, and nothing was removed', {
    details: [leftoverText(home, '.')],
    advice: `Look into ${here.logs} for what keeps it from stopping, and try again.`,
  });
}

async function removeAll(here: Places, { cache }: FactoryResetInput, io: Io): Promise<ResetSummary> {
  const targets = hostTargets(io);
  const failed: ResetSummary['failed'] = [];
  if (!('offBecause' in targets)) {
    const { undoIntegration } = await import('../../../src/features/host-integration/undo.ts');
    for (const { state, file, message = '' } of await undoIntegration(targets)) {
      if (state === 'failed') failed.push({ path: file, reason: message });
    }
  }
  const summary = await factoryReset(here, { cache });
  return { ...summary, failed: [...failed, ...summary.failed] };
}

function report(summary: ResetSummary, { json }: FactoryResetInput, io: Io): number {
  if (json) io.out(`${JSON.stringify(summary, null, 2)}\n`);
  else io.err(summaryText(summary));
  return summary.failed.length === 0 ? 0 : 1;
}
