import { rm } from 'node:fs/promises';
import type { Locate } from '../../../profiles/document/load.ts';
import type { ApplyInput } from '../../../src/client/carry-out.ts';
import type { EventClient } from '../../../src/client/contract.ts';
import type { SavedPlan } from '../../../src/client/saved-plan.ts';
import { refuseOtherDriver } from '../../../src/client/session/driver.ts';
import { stopOwnService } from '../../../src/client/session/exit.ts';
import { lastingService, requireNamed, type Service, targetOf } from '../../../src/client/session/find.ts';
import { RdError } from '../../../src/errors.ts';
import { defined } from '../../../src/json.ts';
import type { PlanRequest, WantedForwards } from '../../../src/plan/change.ts';
import type { Allowed } from '../../../src/plan/losses.ts';
import { NO_FORWARDS, withForwards } from '../../../src/plan/port-forwards.ts';
import type { OnFailure } from '../../../src/plan/rollback.ts';
import type { UserFileChange } from '../../../src/plan/user-files.ts';
import type { Places } from '../../../src/state/places.ts';
import { errorWithPositions } from '../../arguments/profile-files.ts';
import type { Caller, Io } from '../../command.ts';
import type { View } from '../../views/view.ts';
import type { Keepable, KeepChoice } from './keep.ts';

/** The requested state and forwards. */
interface Asked {
  request: PlanRequest;
  /** Port forwards; absent for a rollback of another application, where they cannot be listed. */
  portForwards?: WantedForwards;
}

/** The state to apply. With `saved`, exactly that plan is applied, or nothing. */
export interface RequestedState {
  asked: Asked;
  saved?: SavedPlan;
  /** Whether this is a rollback: a setting that is no longer supported must not block the others. */
  isRollback?: boolean;
  /** The `home` of the target that had this state before. */
  home?: string | undefined;
  /** Returns the author of this write for the history. */
  author?: NonNullable<ApplyInput['author']>;
  /** Finds the profile line for a change; absent without a profile. */
  locate?: Locate;
  /** The profile whose values are applied, to report the fields that it takes over from others; absent if it takes none over. */
  profile?: { files: readonly string[]; profile?: string };
  /** A profile that a service can keep. */
  keepable?: Keepable;
}

export interface ApplyOptions {
  wanted: RequestedState;
  caller: Caller;
  view: View;
  where: Places;
  timeoutMs: number;
  /** Consent from the command line. */
  allowed: Allowed;
  /** Whether to make a snapshot before data is destroyed. */
  snapshot: boolean;
  skipLocked: boolean;
  skipUnsupported: boolean;
  wait: boolean;
  onFailure: OnFailure;
  /** Whether to start a service if none is running. */
  start: boolean;
  driver?: string;
  /** The value of `--target`: the other application to change. */
  target?: string;
  /** The values of `--keep` and `--now`; neither by default. */
  choice?: KeepChoice;
  /** Called with the service before anything is planned. */
  onService?(client: EventClient): Promise<void>;
}

/** A service, and the way in which this apply started it. */
export interface Found extends Service {
  started?: true;
  /** Whether the last service was killed rather than stopped; also set when this one is refused. */
  wasCut?: boolean;
  /** Whether the last service was not stopped cleanly. */
  again?: boolean;
  /** The process of a service whose backend stays off, and which ends with this apply. */
  idle?: { pid: number };
  /** The process of a service that only this apply needs. */
  onlyForThis?: { pid: number };
  /** Files of the user that the start of the service has changed. */
  files?: readonly UserFileChange[];
  /** Whether something was sent to the service, or may have been. */
  isTouched?: boolean;
  /** Reverts the records of the service's start, after it has ended. */
  takeBack?(): Promise<void>;
}

/** Returns the running service, or starts one for this apply; starts none for a request that it would refuse. */
export async function serviceFor(
  options: ApplyOptions,
  state: PlanRequest['state'],
  leftMs: () => number,
): Promise<Found> {
  const { wanted, where, caller, view, start, driver, target } = options;
  const running = await lastingService(caller, leftMs);
  if (running) {
    if (running.client.foreign) requireNamed('apply …', running.client.connection, target, caller);
    else refuseOtherDriver(running.status.driver.name, driver);
    return running;
  }
  if (!start) {
    throw new RdError('ERR_NOT_RUNNING', 'No service is running, and --no-start is set.', {
      advice: 'Start one with `rdctl start`, or omit --no-start.',
    });
  }
  const [{ readRecordedState }, { homeService, mayRun, wasUnclean }] = await Promise.all([
    import('../../../src/client/offline.ts'),
    import('../../../src/client/home-service.ts'),
  ]);
  const recorded = await readRecordedState(where);
  refuseOtherDriver(recorded.driver, driver);
  const home = await homeService(where);
  const shouldRun = wasUnclean(home) && recorded.power === 'started';
  const first = firstStart(state, { saved: wanted.saved !== undefined, running: mayRun(home), shouldRun });
  const { refuseAtStart } = await import('./refuse-at-start.ts');
  const { request, portForwards = NO_FORWARDS } = wanted.asked;
  await refuseAtStart(
    {
      request: withForwards(request, portForwards),
      ...{ driver, skipLocked: options.skipLocked, how: wanted.isRollback ? 'rollback' : 'apply' },
      skipUnsupported: options.skipUnsupported || wanted.isRollback === true,
      name: wanted.keepable?.desired.metadata.name,
    },
    caller.io,
  ).catch((error: unknown) => {
    throw errorWithPositions(error, wanted.locate);
  });
  const { filesAtStart } = await import('./files-at-start.ts');
  const atStart = await filesAtStart(caller.io, driver);
  const { files } = atStart;
  view.event({ type: 'starting', ...defined({ driver }), ...atStart });
  const [{ launchService }, { createClient }, { withinTime }] = await Promise.all([
    import('../../../src/client/session/launch.ts'),
    import('../../../src/client/client.ts'),
    import('../../../src/client/http.ts'),
  ]);
  const { io, globals } = caller;
  const takeBack = await startRecord(where);
  const { connection, pid } = await launchService({ io, globals, ...first, leftMs, driver });
  const client = createClient(connection, withinTime(leftMs));
  const status = await client.status({ signal: io.signal });
  view.event({ type: 'started', target: targetOf(status) });
  // This apply must not end a service that another command started.
  const own = pid === undefined ? undefined : { pid };
  if (first.idle) return { client, status, files, ...(own ? { idle: own, takeBack } : {}) };
  const isOnlyForThis = own !== undefined && !shouldRun && !mayRun(home);
  const held = { ...(isOnlyForThis ? { onlyForThis: own, files, takeBack } : {}), started: true } as const;
  if (first.power === 'keep') return { client, status, ...held, again: shouldRun };
  return { client, status, ...held, wasCut: recorded.power === 'started' && shouldRun };
}

/**
 * Returns the power with which a service starts for this apply. For a profile with a power state it begins stopped, so that it does not start a
 * backend that the settings then restart. A backend left running by an earlier service stays up, and a saved plan assumes the power as it is. A
 * profile that leaves power alone starts nothing that was stopped.
 */
function firstStart(
  state: PlanRequest['state'],
  { saved, running, shouldRun }: { saved: boolean; running: boolean; shouldRun: boolean },
): { power: 'keep' | 'stopped'; idle?: boolean } {
  if (state === 'unmanaged') return running || shouldRun ? { power: 'keep' } : { power: 'keep', idle: true };
  return saved || running ? { power: 'keep' } : { power: 'stopped' };
}

/**
 * Notes the records that the start of a service is about to change. Returns a function that reverts them after that service has ended: driver and
 * settings of a home that had none, and the power, which a launch for an apply changes.
 */
async function startRecord(where: Places): Promise<() => Promise<void>> {
  const [{ loadState, saveState }, { tryLock }, { isThere }] = await Promise.all([
    import('../../../src/state/state-file.ts'),
    import('../../../src/state/home-lock.ts'),
    import('../../../src/os/regular-file.ts'),
  ]);
  const before = await loadState(where.stateFile);
  const hadSettings = await isThere(where.settingsFile);
  return async () => {
    // Another service that has started meanwhile continues with the records.
    const outcome = await tryLock(where.serviceLock);
    if ('holder' in outcome) return;
    try {
      if (before.kind === 'missing') {
        const made = [where.stateFile, where.writtenSettingsFile, where.firstRunFile];
        for (const file of hadSettings ? made : [...made, where.settingsFile]) await rm(file, { force: true });
      }
      const now = await loadState(where.stateFile);
      if (before.kind !== 'loaded' || now.kind !== 'loaded' || now.state.power === before.state.power) return;
      await saveState(where.stateFile, { ...now.state, power: before.state.power });
    } finally {
      await outcome.lock.release();
    }
  };
}

/** Undoes the start of a service by a refused apply. */
export async function withdraw({ client, files = [], ...service }: Found, io: Io): Promise<void> {
  if (service.wasCut) await client.setBackendState('STARTED').catch(() => undefined);
  const { onlyForThis } = service;
  if (!onlyForThis) {
    if (service.started) io.err('The service that was started keeps running; `rdctl down` stops it.\n');
    return;
  }
  try {
    await stopOwnService(client, onlyForThis.pid, { io, quiet: true });
    await giveBack(files, io);
    await service.takeBack?.();
    io.err('The service that was started for this has ended again.\n');
  } catch (error) {
    if (!(error instanceof RdError)) throw error;
    io.err(`The service that was started has not ended: ${error.message}\n`);
  }
}

/** Ends a service whose backend stays off. */
export async function endIdle(
  { client, idle, files = [], isTouched = false, takeBack }: Found,
  { io, isRefused }: { io: Io; isRefused: boolean },
): Promise<void> {
  if (!idle) return;
  await stopOwnService(client, idle.pid, { io, quiet: true });
  if (isTouched) return;
  await giveBack(files, io);
  if (isRefused) await takeBack?.();
}

async function giveBack(files: readonly UserFileChange[], io: Io): Promise<void> {
  if (files.length > 0) await (await import('./files-at-start.ts')).giveBackFiles(io, files);
}
