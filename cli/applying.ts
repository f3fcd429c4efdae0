import { existsSync } from 'node:fs';
import type { Locate } from '../profiles/places.ts';
import { type ApplyInput, applyDesired } from '../src/client/apply.ts';
import type { WantedForward } from '../src/client/port-forwards.ts';
import type { SavedPlan } from '../src/client/saved-plan.ts';
import { RdError } from '../src/errors.ts';
import type { PlanRequest } from '../src/plan/change.ts';
import { lockApply } from '../src/storage/home-lock.ts';
import type { Places } from '../src/storage/places.ts';
import { wallClock } from './clock.ts';
import type { Invocation } from './command.ts';
import { withWayBack } from './convergence-failure.ts';
import { showNotices } from './notices.ts';
import { withPlaces } from './placed-errors.ts';
import { runningService, type Service, targetOf } from './service.ts';
import type { View } from './views/view.ts';

/** What is to be made so. With `saved`, exactly that plan or nothing. */
export interface Wanted {
  request: PlanRequest;
  portForwards: readonly WantedForward[];
  saved?: SavedPlan;
  /** Where the profile asks for something; absent without a profile. */
  locate?: Locate;
}

export interface ApplyOptions {
  wanted: Wanted;
  caller: Pick<Invocation, 'connect' | 'globals' | 'io'>;
  view: View;
  where: Places;
  timeoutMs: number;
  /** Consent was given on the command line. */
  agreed: boolean;
  skipLocked: boolean;
  wait: boolean;
  /** Start a service when none runs. */
  start: boolean;
  driver?: string;
}

/** Takes the lock of this home, finds or starts the service, applies, and shows what happened. */
export async function applyNow(options: ApplyOptions): Promise<void> {
  const { wanted, caller, view, where, timeoutMs } = options;
  const { io } = caller;
  const begun = wallClock.now();
  const lock = await lockApply(where.applyLock, {
    timeoutMs,
    onWait: ({ pid, since }) => view.event({ type: 'lock-held', pid, since }),
    signal: io.signal,
  });
  try {
    const service = await serviceFor(options);
    showNotices(service.status, io);
    const { client } = service;
    const target = targetOf(service.status);
    const { checkTarget, checkFresh } = wanted.saved ? await import('../src/client/saved-plan.ts') : {};
    if (wanted.saved) checkTarget?.(wanted.saved, target);
    const left = Math.max(0, timeoutMs - (wallClock.now() - begun));
    const input: ApplyInput = {
      client,
      request: wanted.request,
      portForwards: wanted.portForwards,
      skipLocked: options.skipLocked,
      wait: options.wait,
      timeoutMs: left,
      clock: wallClock,
      signal: io.signal,
      exact: wanted.saved !== undefined,
      consent: async (plan) => options.agreed || (await ask(plan, io)),
      async inspect(plan, live) {
        const { power } = service.status;
        if (wanted.saved)
          checkFresh?.(wanted.saved, plan, { settings: live.settings, locks: await client.locked(), power });
        if (plan.changes.length === 0) return;
        const { keepPrevious } = await import('../src/client/previous.ts');
        await keepPrevious(where, { target, settings: live.settings, power }, new Date());
      },
      onEvent: (event) => view.event(event, wanted.locate),
    };
    const outcome = await applyDesired(input)
      .catch((error: unknown) => withWayBack(withPlaces(error, wanted.locate), service, where))
      .finally(() => view.endEvents());
    view.applied(outcome);
  } finally {
    await lock.release();
  }
}

async function ask(plan: Parameters<ApplyInput['consent']>[0], io: Invocation['io']): Promise<boolean> {
  const { askConsent } = await import('./consent.ts');
  return askConsent(plan, io);
}

async function serviceFor({ wanted, where, caller, view, start, driver }: ApplyOptions): Promise<Service> {
  const running = await runningService(caller);
  if (running) {
    refuseOtherDriver(running, driver);
    return running;
  }
  if (!start) {
    throw new RdError('ERR_NOT_RUNNING', 'No service is running, and --no-start forbids starting one.', {
      advice: 'Start one with `rdctl start`, or leave --no-start out.',
    });
  }
  view.event({ type: 'starting', ...(driver === undefined ? {} : { driver }) });
  const [{ launchService }, { createClient }] = await Promise.all([
    import('./launch.ts'),
    import('../src/client/client.ts'),
  ]);
  const { io, globals } = caller;
  const connection = await launchService({
    io,
    globals,
    power: firstPower(wanted, where),
    ...(driver === undefined ? {} : { driver }),
  });
  const client = createClient(connection);
  const status = await client.status({ signal: io.signal });
  view.event({ type: 'started', target: targetOf(status) });
  return { client, status };
}

/** The very first service begins stopped, so that it does not start an engine that this apply replaces at once. */
function firstPower({ request }: Wanted, where: Places): 'keep' | 'stopped' {
  return request.state === 'unmanaged' || existsSync(where.stateFile) ? 'keep' : 'stopped';
}

/** The driver is chosen once; another one on the same state would be another desktop. */
function refuseOtherDriver({ status }: Service, driver: string | undefined): void {
  if (driver === undefined || driver === status.driver.name) return;
  throw new RdError('ERR_WRONG_TARGET', `The running service uses the driver ${status.driver.name}, not ${driver}.`, {
    advice: `Leave --driver out, or use another home: RDCTL_HOME=DIR rdctl apply --driver ${driver} …`,
  });
}
